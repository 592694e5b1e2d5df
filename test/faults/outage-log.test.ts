import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { type SilentProxy, startSilentProxy } from '../support/upstreams/silent-proxy.ts';

describe('the log of a database outage', () => {
  let postgres: TestPostgres;
  let proxy: SilentProxy;
  let dataDir: string;
  let url: URL;
  let service: ChildToolhost;
  let logged: string;
  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'toolhost-outage-'));
    postgres = await startPostgres();
    url = new URL(await postgres.createDatabase());
    proxy = await startSilentProxy({ host: url.hostname, port: Number(url.port) });
    url.port = String(proxy.port);
    const MASTER_KEY = randomBytes(32).toString('base64');
    service = await startChildToolhost({ DATABASE_URL: url.href, MASTER_KEY, PORT: '0', DEMO: '0', DATA_DIR: dataDir });
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
    logged = service.output('stderr');
    await service.end();
  });
  after(async () => {
    await proxy.close();
    await postgres.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('[find C4] contains one line per loop at the beginning and one with a count at the end, without stacks', () => {
    assert.equal(logged.match(/could not poll for changes/g)?.length, 1, logged);
    const last = logged.split('\n').find((line) => line.includes('polling for changes works again')) ?? '{}';
    assert.ok((JSON.parse(last) as { failures: number }).failures >= 2, last);
    assert.doesNotMatch(logged, /\.ts:\d+/);
  });

  it('[find C4] contains one line for all connections that were lost at the same moment', () => {
    assert.equal(logged.match(/a database connection was lost/g)?.length, 1, logged);
  });

  it('[find C4] contains neither the password nor the settings of a connection', () => {
    assert.match(logged, /a database connection was lost/);
    assert.ok(!logged.includes(url.password));
    assert.doesNotMatch(logged, /"client"|connectionParameters|secretKey|processID|_events/);
  });
});
