import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/store/postgres-proxy.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('a connection that is lost while PostgreSQL commits a change', () => {
  let postgres: TestPostgres;
  let proxy: PostgresProxy;
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  before(async () => {
    [postgres, upstream] = await Promise.all([startPostgres(), startRecordingUpstream()]);
    proxy = await startPostgresProxy(await postgres.createDatabase());
    const env = { DATABASE_URL: proxy.url, MASTER_KEY: randomBytes(32).toString('base64') };
    toolhost = await startToolhost({ egressPorts: [upstream.port], env });
  });
  after(async () => {
    await toolhost.stop();
    await proxy.close();
    await Promise.all([postgres.stop(), upstream.close()]);
  });
  const slugs = async () =>
    ((await toolhost.rest('GET', '/servers')).body.servers as Json[]).map(({ slug }) => String(slug));
  const countAuditEvents = async (slug: string) =>
    ((await toolhost.rest('GET', '/audit')).body.events as Json[]).filter(({ target }) => target === slug).length;

  for (const [when, isStored] of [
    ['before', false],
    ['after', true],
  ] as const) {
    it(`[find C4] reports an unknown outcome if the connection is lost ${when} the COMMIT arrives, and stores the change once or not at all`, async () => {
      const slug = `lost-${when}`;
      proxy.dropAtCommit(when, slug);
      const reply = await toolhost.rest('POST', '/servers', { body: buildServerAt(slug, upstream.url) });
      assert.equal(reply.status, 503, reply.text);
      assert.match(reply.text, /may or may not have been stored; check before you try again/);
      assert.equal(reply.headers.get('retry-after'), null, 'a client must not repeat this request automatically');
      assert.equal((await slugs()).includes(slug), isStored);
      assert.equal(await countAuditEvents(slug), isStored ? 1 : 0);
      const repeated = await toolhost.rest('POST', '/servers', { body: buildServerAt(slug, upstream.url) });
      assert.equal(repeated.status, isStored ? 409 : 201, repeated.text);
      assert.equal(await countAuditEvents(slug), 1);
    });

    it(`[find C4] neither loses nor duplicates call records if the connection is lost ${when} the COMMIT arrives`, async () => {
      const slug = `called-${when}`;
      await toolhost.createServer(buildServerAt(slug, upstream.url));
      proxy.dropAtCommit(when, slug);
      for (let n = 0; n < 3; n += 1) assert.notEqual((await toolhost.callTool(slug, 'token', 'get')).isError, true);
      await eventually(async () => {
        const { body } = await toolhost.rest('GET', `/calls?slug=${slug}`);
        assert.equal((body.calls as Json[]).length, 3);
      });
      const { body } = await toolhost.rest('GET', `/statistics?slug=${slug}`);
      assert.deepEqual(
        (body.by_server as Json[]).map(({ calls }) => calls),
        [3],
      );
    });
  }
});
