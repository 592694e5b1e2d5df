import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { serverAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/store/postgres.ts';
import { scrape } from '../support/toolhost/scrape.ts';
import { type Json, type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const stored = { authentication: { type: 'Bearer', token: 'stored-token' } };

describe('PostgreSQL outage', () => {
  let postgres: OwnPostgres;
  let upstream: RecordingUpstream;
  before(async () => {
    [postgres, upstream] = await Promise.all([startOwnPostgres(), startRecordingUpstream()]);
  });
  after(() => Promise.all([postgres.stop(), upstream.close()]));

  describe('while it is down', () => {
    let toolhost: TestToolhost;
    let key: string;
    let other: string;
    let ahead = 0;
    before(async () => {
      const env = { DATABASE_URL: await postgres.createDatabase(), MASTER_KEY: randomBytes(32).toString('base64') };
      const surroundings = { now: () => Date.now() + ahead, clock: () => performance.now() + ahead };
      toolhost = await startToolhost({ egress: [upstream.port], env, surroundings });
      [key, other] = [await toolhost.key(), await toolhost.key()];
      await toolhost.createServer(serverAt('forwarding', upstream.url, { authentication: { type: 'Bearer' } }));
      await toolhost.createServer(serverAt('storing', upstream.url, stored));
      await toolhost.createServer(serverAt('unused', upstream.url, stored));
    });
    beforeEach(async () => {
      for (const [slug, token] of [
        ['forwarding', 'their-token'],
        ['storing', key],
      ] as const)
        await toolhost.callTool(slug, token, 'get');
      await postgres.crash();
    });
    afterEach(async () => {
      ahead = 0;
      await postgres.restart();
      const restartedAt = performance.now();
      // The first poll for changes after a restart empties the caches. It must not happen between two steps of a test.
      await eventually(async () => {
        const askedAt = performance.now();
        const ageMs = (await scrape(toolhost.url)).value('toolhost_changes_age_seconds') * 1000;
        assert.ok(ageMs < askedAt - restartedAt);
      }, 10_000);
    });
    after(() => toolhost.stop());

    const unavailable = (reply: Reply) => {
      assert.equal(reply.status, 503, reply.text);
      assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
      assert.doesNotMatch(reply.text, /ECONN|127\.0\.0\.1|postgres/i);
    };
    const served = async (slug: string, token: string) =>
      assert.notEqual((await toolhost.callTool(slug, token, 'get')).isError, true);
    const isReady = async () => (await fetch(`${toolhost.url}/readyz`)).status === 200;

    it('[sec G5] keeps serving the servers and keys that were used before, and stays ready', async () => {
      for (let n = 0; n < 3; n += 1) {
        await served('forwarding', 'their-token');
        await served('storing', key);
      }
      assert.equal(await isReady(), true);
      assert.equal((await fetch(`${toolhost.url}/livez`)).status, 200);
    });

    it('[sec G5] reports the outage in the metrics, and when the service is no longer ready', async () => {
      const metrics = await eventually(async () => {
        const metrics = await scrape(toolhost.url);
        assert.equal(metrics.value('toolhost_database_up'), 0);
        return metrics;
      });
      assert.equal(metrics.value('toolhost_ready'), 1);
      ahead = 61_000;
      const later = await scrape(toolhost.url);
      assert.ok(later.value('toolhost_changes_age_seconds') > 60);
      assert.equal(later.value('toolhost_ready'), 0);
    });

    it('[sec G5] answers requests that need the database with 503 and Retry-After, never with 401', async () => {
      unavailable(await toolhost.rest('POST', '/servers', { body: serverAt('lost', upstream.url) }));
      unavailable(await toolhost.rest('PATCH', '/servers/storing', { body: { name: 'Lost' } }));
      unavailable(await toolhost.rest('GET', '/servers'));
      unavailable(await toolhost.rest('GET', '/servers', { key: other }));
      unavailable(await toolhost.rpc('unused', key, 'tools/list'));
      unavailable(await toolhost.rpc('storing', other, 'tools/list'));
      unavailable(await toolhost.rpc('never-made', 'some-token', 'tools/list'));
      unavailable(await toolhost.rpc('manage', other, 'tools/list'));
      assert.equal((await toolhost.rpc('manage', key, 'tools/list')).status, 200);
      const managed = await toolhost.rpc('manage', key, 'tools/call', { name: 'listMcpServers' });
      unavailable(managed);
      assert.equal(managed.body.id, 1);
      assert.equal((managed.body.error as Json).code, 503);
    });

    it('[sec G5] recovers, and records the calls made during the outage', async () => {
      // The service estimates the database time, and records calls by it.
      const since = new Date(toolhost.running.app.runner.deps.now()).toISOString();
      for (let n = 0; n < 5; n += 1) await served('storing', key);
      await postgres.restart();
      const recorded = async () => {
        const { status, body } = await toolhost.rest('GET', `/calls?slug=storing&since=${since}`);
        assert.equal(status, 200);
        assert.equal((body.calls as Json[]).length, 5);
      };
      await eventually(recorded, 10_000);
      assert.equal(
        (await toolhost.rest('POST', '/servers', { body: serverAt('afterwards', upstream.url) })).status,
        201,
      );
      await served('afterwards', 'some-token');
      await postgres.crash();
    });

    it('[sec G5] trusts cached values for a minute, and is not ready after that', async () => {
      ahead = 30_000;
      await served('storing', key);
      ahead = 61_000;
      unavailable(await toolhost.rpc('storing', key, 'tools/list'));
      unavailable(await toolhost.rpc('forwarding', 'their-token', 'tools/list'));
      assert.equal(await isReady(), false);
      assert.equal((await fetch(`${toolhost.url}/livez`)).status, 200);
    });
  });
});
