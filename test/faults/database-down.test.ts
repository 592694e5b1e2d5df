import assert from 'node:assert/strict';
import { afterEach, before, beforeEach, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startDedicatedPostgres } from '../support/store/postgres.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { type Json, type Reply, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const stored = { authentication: { type: 'Bearer', token: 'stored-token' } };

describe('a service whose PostgreSQL server is down', () => {
  const fixtures = useFixtures();
  const { postgres, database } = usePostgres(fixtures, startDedicatedPostgres);
  const upstream = fixtures.start(startRecordingUpstream);
  let clockOffsetMs = 0;
  const toolhost = fixtures.start(() => {
    const runtimeOptions = { now: () => Date.now() + clockOffsetMs, clock: () => performance.now() + clockOffsetMs };
    return startToolhost({ egressPorts: [upstream.port], env: database.env, runtimeOptions });
  });
  let key: string;
  let other: string;
  before(async () => {
    [key, other] = [await toolhost.createKey(), await toolhost.createKey()];
    await toolhost.createServer(buildServerAt('forwarding', upstream.url, { authentication: { type: 'Bearer' } }));
    await toolhost.createServer(buildServerAt('storing', upstream.url, stored));
    await toolhost.createServer(buildServerAt('unused', upstream.url, stored));
  });
  beforeEach(async () => {
    await toolhost.callTool('forwarding', 'their-token', 'get');
    await toolhost.callTool('storing', key, 'get');
    await postgres.crash();
  });
  afterEach(async () => {
    clockOffsetMs = 0;
    await postgres.restart();
    const restartedAt = performance.now();
    // The first poll for changes after a restart empties the caches. It must not happen between two steps of a test.
    await eventually(async () => {
      const scrapedAt = performance.now();
      const ageMs = (await scrapeMetrics(toolhost.url)).value('toolhost_change_poll_age_seconds') * 1000;
      assert.ok(ageMs < scrapedAt - restartedAt);
    }, 10_000);
  });

  const assertUnavailable = (reply: Reply) => {
    assert.equal(reply.status, 503, reply.text);
    assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    assert.doesNotMatch(reply.text, /ECONN|127\.0\.0\.1|postgres/i);
  };
  const assertServed = async (slug: string, token: string) =>
    assert.notEqual((await toolhost.callTool(slug, token, 'get')).isError, true);
  const isReady = async () => (await fetch(`${toolhost.url}/readyz`)).status === 200;

  it('[sec G5] keeps serving the servers and keys that were used before, and stays ready', async () => {
    for (let n = 0; n < 3; n += 1) {
      await assertServed('forwarding', 'their-token');
      await assertServed('storing', key);
    }
    assert.equal(await isReady(), true);
    assert.equal((await fetch(`${toolhost.url}/livez`)).status, 200);
  });

  it('[sec G5] reports the outage in the metrics, and when the service is no longer ready', async () => {
    const metrics = await eventually(async () => {
      const metrics = await scrapeMetrics(toolhost.url);
      assert.equal(metrics.value('toolhost_database_up'), 0);
      return metrics;
    });
    assert.equal(metrics.value('toolhost_ready'), 1);
    clockOffsetMs = 61_000;
    const later = await scrapeMetrics(toolhost.url);
    assert.ok(later.value('toolhost_change_poll_age_seconds') > 60);
    assert.equal(later.value('toolhost_ready'), 0);
  });

  it('[sec G5] answers requests that need the database with 503 and Retry-After, never with 401', async () => {
    assertUnavailable(await toolhost.rest('POST', '/servers', { body: buildServerAt('lost', upstream.url) }));
    assertUnavailable(await toolhost.rest('PATCH', '/servers/storing', { body: { name: 'Lost' } }));
    assertUnavailable(await toolhost.rest('GET', '/servers'));
    assertUnavailable(await toolhost.rest('GET', '/servers', { key: other }));
    assertUnavailable(await toolhost.rpc('unused', key, 'tools/list'));
    assertUnavailable(await toolhost.rpc('storing', other, 'tools/list'));
    assertUnavailable(await toolhost.rpc('never-made', 'some-token', 'tools/list'));
    assertUnavailable(await toolhost.rpc('manage', other, 'tools/list'));
    assert.equal((await toolhost.rpc('manage', key, 'tools/list')).status, 200);
    const managed = await toolhost.rpc('manage', key, 'tools/call', { name: 'listMcpServers' });
    assertUnavailable(managed);
    assert.equal(managed.body.id, 1);
    assert.equal((managed.body.error as Json).code, 503);
  });

  it('[sec G5] recovers, and records the calls made during the outage', async () => {
    // The service estimates the database time, and records calls by it.
    const since = new Date(toolhost.running.app.runner.deps.now()).toISOString();
    for (let n = 0; n < 5; n += 1) await assertServed('storing', key);
    await postgres.restart();
    const recorded = async () => {
      const { status, body } = await toolhost.rest('GET', `/calls?slug=storing&since=${since}`);
      assert.equal(status, 200);
      assert.equal((body.calls as Json[]).length, 5);
    };
    await eventually(recorded, 10_000);
    assert.equal(
      (await toolhost.rest('POST', '/servers', { body: buildServerAt('afterwards', upstream.url) })).status,
      201,
    );
    await assertServed('afterwards', 'some-token');
    await postgres.crash();
  });

  it('[sec G5] trusts cached values for a minute, and is not ready after that', async () => {
    clockOffsetMs = 30_000;
    await assertServed('storing', key);
    clockOffsetMs = 61_000;
    assertUnavailable(await toolhost.rpc('storing', key, 'tools/list'));
    assertUnavailable(await toolhost.rpc('forwarding', 'their-token', 'tools/list'));
    assert.equal(await isReady(), false);
    assert.equal((await fetch(`${toolhost.url}/livez`)).status, 200);
  });
});
