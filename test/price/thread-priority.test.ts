import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

/** Every thread of a process, with its name and its nice value (proc(5), fields 2 and 19 of stat). */
function threadsOf(pid: number): { name: string; nice: number }[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    const file = `/proc/${pid}/task/${thread}/stat`;
    // It may have ended meanwhile.
    if (!existsSync(file)) return [];
    const text = readFileSync(file, 'utf8');
    const nameEnd = text.lastIndexOf(')');
    const nice = Number(text.slice(nameEnd + 2).split(' ')[16]);
    return [{ name: text.slice(text.indexOf('(') + 1, nameEnd), nice }];
  });
}

/** Sends so many requests over one connection, a hundred at a time, and waits for their answers. */
async function askOften(url: string, times: number): Promise<void> {
  const { host, hostname, port } = new URL(url);
  const batch = `GET /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(100);
  const socket = connect(Number(port), hostname);
  const answer = 'HTTP/1.1 200';
  let rest = '';
  let answered = 0;
  let sent = 0;
  await new Promise<void>((resolve, reject) => {
    const more = () => {
      if (answered < sent) return;
      if (answered >= times) resolve();
      else {
        sent += 100;
        socket.write(batch);
      }
    };
    socket.on('connect', more).on('error', reject);
    socket.on('data', (chunk) => {
      const text = rest + chunk.toString('latin1');
      answered += text.split(answer).length - 1;
      rest = text.slice(1 - answer.length);
      more();
    });
  });
  socket.destroy();
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
    it('give way to it too, once what calls run through is compiled', async (t) => {
      const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-priority-'));
      const service = await startChildToolhost({ DATA_DIR: dataDir });
      t.after(async () => {
        await service.end();
        rmSync(dataDir, { recursive: true });
      });
      const niceOf = (name: string) => {
        const found = threadsOf(service.pid).filter((thread) => thread.name.includes(name));
        assert.ok(found.length > 0);
        return [...new Set(found.map(({ nice }) => nice))];
      };
      await askOften(service.url, 1000);
      assert.deepEqual(niceOf('V8Worker'), [0]);
      await askOften(service.url, 50_000);
      assert.deepEqual(niceOf('V8Worker'), [10]);
      assert.deepEqual(niceOf('MainThread'), [0]);
    });
  });
}
