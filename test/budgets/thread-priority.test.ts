import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

/** Returns the nice value of every thread of this process (proc(5): field 19 of stat, after the name). */
function niceValues(): number[] {
  return readdirSync('/proc/self/task').flatMap((thread) => {
    const file = `/proc/self/task/${thread}/stat`;
    // The thread may have ended in the meantime.
    if (!existsSync(file)) return [];
    const text = readFileSync(file, 'utf8');
    return [Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[16])];
  });
}

// Other platforms have one priority for the whole process.
if (process.platform === 'linux') {
  describe('[find A4] report threads', () => {
    let toolhost: TestToolhost;
    before(async () => {
      toolhost = await startToolhost();
    });
    after(() => toolhost.stop());

    it('run at a lower priority than the thread that serves calls', async () => {
      assert.equal((await toolhost.rest('GET', '/statistics')).status, 200);
      assert.ok(niceValues().includes(10), 'a report thread has nice value 10');
      assert.ok(niceValues().includes(getPriority()), 'other threads keep the process priority');
    });
  });
}
