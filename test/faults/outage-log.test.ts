import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { usePostgres, useSilentProxy } from '../support/store/use-postgres.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('the log of a database outage', () => {
  const fixtures = useFixtures();
  const DATA_DIR = fixtures.folder();
  const { database } = usePostgres(fixtures);
  const { proxy, proxied } = useSilentProxy(fixtures, database);

  it('[find C4] has one line per loop at the beginning and one with a count at the end, one for all lost connections, no stacks, and no secrets', async () => {
    const service = await startChildToolhost({ ...proxied.env, DATA_DIR });
    // Each request waits for its own connection, and all connections are idle when they are lost.
    await Promise.all(
      Array.from({ length: 30 }, (_, n) => fetch(`${service.url}/mcp/unknown-${n}`, { method: 'POST' })),
    );
    const age = async () => (await scrapeMetrics(service.url)).sum('toolhost_change_poll_age_seconds');
    proxy.cut();
    // This is long enough for more than one failed poll for changes.
    await eventually(async () => assert.ok((await age()) >= 12), 120_000);
    proxy.heal();
    await eventually(() => assert.match(service.output('stderr'), /polling for changes works again/), 10_000);
    const logged = service.output('stderr');
    await service.end();
    assert.equal(logged.match(/could not poll for changes/g)?.length, 1, logged);
    const last = logged.split('\n').find((line) => line.includes('polling for changes works again')) ?? '{}';
    assert.ok((JSON.parse(last) as { failures: number }).failures >= 2, last);
    assert.equal(logged.match(/a database connection was lost/g)?.length, 1, logged);
    assert.ok(!logged.includes(new URL(proxied.url).password));
    assert.doesNotMatch(logged, /\.ts:\d+|"client"|connectionParameters|secretKey|processID|_events/);
  });
});
