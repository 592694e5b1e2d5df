import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { eventually } from '../support/eventually.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import { expectTokens } from '../support/oauth/oauth-client.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { createMovableClock } from '../support/toolhost/movable-clock.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const minute = 60_000;

for (const engine of engines)
  describe(`[find B1] an unreported change in the database on ${engine}`, () => {
    let postgres: TestPostgres | undefined;
    let world: LoginWorld;
    /** Time that has passed in addition to the real time, in ms. */
    let clockOffsetMs = 0;
    let advanceTime: (ms: number) => Promise<void>;
    before(async () => {
      postgres = engine === 'postgres' ? await startPostgres() : undefined;
      const url = await postgres?.createDatabase();
      const clock = url === undefined ? undefined : await createMovableClock(url);
      const runtimeOptions = { now: () => Date.now() + clockOffsetMs, clock: () => performance.now() + clockOffsetMs };
      world = await startLoginWorld({ env: url === undefined ? {} : { DATABASE_URL: url }, runtimeOptions });
      advanceTime = async (ms) => {
        await clock?.move(ms);
        clockOffsetMs += ms;
        await world.toolhost.running.app.runner.onCommitted();
      };
    });
    after(async () => {
      await world?.stop();
      await postgres?.stop();
    });

    it('applies unreported changes of keys, servers, logins, and limits within a minute', async () => {
      const { toolhost } = world;
      const { db } = toolhost.running.app.runner;
      const key = await toolhost.createKey();
      const slug = await world.createServer();
      await toolhost.createServer(buildServerAt('open', world.upstream.url));
      await toolhost.createServer(buildServerAt('limited', world.upstream.url));
      const client = await world.registerClient(slug);
      const { code, verifier } = await world.logIn(client);
      const { access_token } = expectTokens(await client.redeem(code, verifier));
      const call = { name: 'get', arguments: {} };
      const statuses = async () => ({
        key: (await toolhost.rest('GET', '/servers', { key })).status,
        login: (await world.listTools(slug, access_token)).status,
        open: (await toolhost.rpc('open', 'token', 'ping')).status,
        limited: Math.max(
          ...(await Promise.all(
            Array.from({ length: 10 }, async () => (await toolhost.rpc('limited', 'token', 'tools/call', call)).status),
          )),
        ),
      });
      const expectedStatuses = { key: 200, login: 200, open: 200, limited: 200 };
      assert.deepEqual(await statuses(), expectedStatuses);
      await db
        .updateTable('api_keys')
        .set({ revoked_at: 1 })
        .where('id', '=', `key_${key.split('_')[1]}`)
        .execute();
      await db.updateTable('servers').set({ deleted_at: 1 }).where('slug', '=', 'open').execute();
      await db.updateTable('servers').set({ limits: '{"callsPerSecond":1}' }).where('slug', '=', 'limited').execute();
      await db.updateTable('grants').set({ revoked_at: 1 }).where('slug', '=', slug).execute();
      await advanceTime(minute - 20_000);
      assert.deepEqual(await statuses(), expectedStatuses, 'a change took effect before the minute was over');
      await advanceTime(20_000);
      assert.deepEqual(await statuses(), { key: 401, login: 401, open: 404, limited: 429 });
    });
  });

describe('a change made by another process', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const startReplica = () => startToolhost({ env: database.env });
  const [one, two] = [fixtures.start(startReplica), fixtures.start(startReplica)];

  it('[sec E3] applies a revocation by another process within seconds: the key can neither call nor manage', async () => {
    await one.createServer(buildServerAt('shared', 'https://api.example.com'));
    const key = await one.createKey();
    const statuses = async (toolhost: TestToolhost) => [
      (await toolhost.rpc('shared', key, 'tools/list')).status,
      (await toolhost.rest('GET', '/servers', { key })).status,
    ];
    assert.deepEqual(await statuses(two), [200, 200]);
    assert.equal((await one.rest('DELETE', `/keys/key_${key.split('_')[1]}`)).status, 200);
    assert.deepEqual(await statuses(one), [401, 401]);
    // The service promises two seconds, and a busy database takes longer. Without notification, the key would stay
    // trusted for a minute.
    await eventually(async () => assert.deepEqual(await statuses(two), [401, 401]), 10_000);
  });
});
