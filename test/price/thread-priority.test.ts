import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

/** Every thread of a process, with its name and its nice value (proc(5), fields 2 and 19 of stat). */
function threadsOf(pid: number): { name: string; nice: number }[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const text = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
    const nameEnd = text.lastIndexOf(')');
    const nice = Number(text.slice(nameEnd + 2).split(' ')[16]);
    return { name: text.slice(text.indexOf('(') + 1, nameEnd), nice };
  });
}

const niceValues = () => threadsOf(process.pid).map(({ nice }) => nice);

// Elsewhere a priority is of the whole process, and threads keep it.
if (process.platform === 'linux') {
  describe('[find A4] the threads of reports', () => {
    let toolhost: TestToolhost;
    before(async () => {
      toolhost = await startToolhost();
    });
    after(() => toolhost.stop());

    it('give way to the thread that serves calls', async () => {
      const usual = niceValues().length;
      assert.ok(usual > 0);
      assert.equal((await toolhost.rest('GET', '/statistics')).status, 200);
      assert.ok(niceValues().includes(10), 'the thread that reads for reports has a priority of its own');
      assert.ok(niceValues().includes(0), 'the others keep theirs');
    });
  });

  describe('the threads of the garbage collector', () => {
    it('give way to it too', async (t) => {
      const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-priority-'));
      const service = await startChildToolhost({ DATA_DIR: dataDir });
      t.after(async () => {
        await service.end();
        rmSync(dataDir, { recursive: true });
      });
      const threads = threadsOf(service.pid);
      const collectors = threads.filter(({ name }) => name.includes('V8Worker'));
      assert.ok(collectors.length > 0);
      assert.deepEqual(new Set(collectors.map(({ nice }) => nice)), new Set([10]));
      assert.equal(threads.find(({ name }) => name.includes('MainThread'))?.nice, 0);
    });
  });
}
