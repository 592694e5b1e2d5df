import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';

describe('upkeep metric', () => {
  it('has the time at which the last deletion of old rows was completed', async (t) => {
    const since = Date.now() / 1000;
    const toolhost = await startToolhost({ runtimeOptions: { leaderPollIntervalMs: 50 } });
    t.after(toolhost.stop);
    const getLastDoneAt = async (url: string) =>
      (await scrapeMetrics(url)).value('toolhost_leader_job_success_timestamp_seconds', { work: 'upkeep' });
    await eventually(async () => assert.ok((await getLastDoneAt(toolhost.url)) >= since));
    assert.ok((await getLastDoneAt(toolhost.url)) <= Date.now() / 1000);
  });
});
