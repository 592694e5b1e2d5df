import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

/** The nice value of every thread of this process (proc(5), field 19 of stat, behind the name in brackets). */
function niceValues(): number[] {
  return readdirSync('/proc/self/task').flatMap((thread) => {
    const file = `/proc/self/task/${thread}/stat`;
    // It may have ended meanwhile.
    if (!existsSync(file)) return [];
    const text = readFileSync(file, 'utf8');
    return [Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[16])];
  });
}

// Elsewhere a priority is of the whole process, and threads keep it.
if (process.platform === 'linux') {
  describe('[find A4] the threads of reports', () => {
    let toolhost: TestToolhost;
    before(async () => {
      toolhost = await startToolhost();
    });
    after(() => toolhost.stop());

    it('give way to the thread that serves calls', async () => {
      assert.equal((await toolhost.rest('GET', '/statistics')).status, 200);
      assert.ok(niceValues().includes(10), 'the thread that reads for reports has a priority of its own');
      assert.ok(niceValues().includes(getPriority()), 'the others keep theirs');
    });
  });
}
