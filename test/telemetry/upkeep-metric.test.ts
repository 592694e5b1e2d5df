import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { scrape } from '../support/toolhost/scrape.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';

describe('upkeep metric', () => {
  it('contains the time when old rows were last deleted completely', async (t) => {
    const since = Date.now() / 1000;
    const toolhost = await startToolhost({ surroundings: { leaderPollIntervalMs: 50 } });
    t.after(toolhost.stop);
    const doneAt = async (url: string) =>
      (await scrape(url)).value('toolhost_work_done_timestamp_seconds', { work: 'upkeep' });
    await eventually(async () => assert.ok((await doneAt(toolhost.url)) >= since));
    assert.ok((await doneAt(toolhost.url)) <= Date.now() / 1000);
  });
});
