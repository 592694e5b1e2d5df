import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import pg from 'pg';
import { eventually } from '../support/eventually.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/**
 * Simulates a failover. Sessions that begin while the database is set to read-only stay read-only, like sessions with a
 * primary that became a standby. Sessions that begin afterwards can write, like those with the new primary.
 */
describe('PostgreSQL failover', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const upstream = fixtures.start(startRecordingUpstream);
  const admin = fixtures.start(
    () => new pg.Client({ connectionString: database.url }),
    (client) => client.end(),
  );
  const toolhost = fixtures.start(() => startToolhost({ egressPorts: [upstream.port], env: database.env }));
  let name: string;
  let key: string;
  before(async () => {
    name = new URL(database.url).pathname.slice(1);
    await admin.connect();
    key = await toolhost.createKey();
    for (const slug of ['known', 'new']) await toolhost.createServer(buildServerAt(slug, upstream.url));
    await toolhost.callTool('known', key, 'get');
  });
  const endSessions = () =>
    admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`,
    );
  const change = () => toolhost.rest('PATCH', '/servers/known', { body: { description: `At ${Math.random()}` } });
  /** Counts the sessions that tried to send the heartbeat of their process and failed. */
  const countFailedHeartbeats = async () =>
    (await admin.query(`select 1 from pg_stat_activity where query like 'insert into "processes"%' and state = 'idle'`))
      .rows.length;
  const lastHeartbeatAt = async () =>
    (await admin.query('select max(seen_at)::float as at from processes')).rows[0].at as number;

  it('[find C4] refuses changes with a clear message and serves calls while there is only a standby', async () => {
    await admin.query(`alter database ${name} set default_transaction_read_only = on`);
    await endSessions();
    await eventually(async () => {
      const reply = await change();
      assert.equal(reply.status, 503, reply.text);
      assert.match(reply.text, /the database is read-only/);
      assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    });
    await eventually(async () =>
      assert.ok((await countFailedHeartbeats()) > 0, 'the poll for changes uses the standby too'),
    );
    for (const slug of ['known', 'new'])
      await eventually(async () => assert.notEqual((await toolhost.callTool(slug, key, 'get')).isError, true));
    assert.equal((await fetch(`${toolhost.url}/readyz`)).status, 200);
  });

  it('[find C4] finds the new primary on every connection, even if those to the old primary are always in use', async () => {
    await admin.query(`alter database ${name} reset default_transaction_read_only`);
    const before = await lastHeartbeatAt();
    await eventually(async () => assert.equal((await change()).status, 200));
    await eventually(async () => {
      await change();
      assert.ok((await lastHeartbeatAt()) > before, 'the poll for changes uses the new primary too');
    });
    await eventually(async () => {
      const { body } = await toolhost.rest('GET', '/calls');
      assert.equal((body.calls as unknown[]).length, 3);
    });
  });
});
