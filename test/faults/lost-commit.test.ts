import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertMapped } from '../support/assert-lists.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgresProxy } from '../support/store/postgres-proxy.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('a connection that is lost while PostgreSQL commits a change', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const upstream = fixtures.start(startRecordingUpstream);
  const proxy = fixtures.start(() => startPostgresProxy(database.url));
  const toolhost = fixtures.start(() =>
    startToolhost({ egressPorts: [upstream.port], env: { ...database.env, DATABASE_URL: proxy.url } }),
  );
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
      assertMapped(body.by_server as Json[], ({ calls }) => calls, [3]);
    });
  }
});
