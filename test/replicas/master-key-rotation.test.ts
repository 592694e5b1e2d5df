import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import { openDatabase } from '../../apps/server/src/store/database.ts';
import { createKeyring, sealedColumns } from '../../apps/server/src/store/sealing/sealing.ts';
import { type FreshReply, freshCall, freshRequest, loadPauseMs, retryUntilServed } from '../support/fresh-request.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { clientWithId, expectTokens, registerClient } from '../support/oauth/oauth-client.ts';
import { toInputs } from '../support/oauth/people-world.ts';
import { defaultDatabaseOptions } from '../support/store/default-options.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as command } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { startRoundRobin } from '../support/upstreams/round-robin.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const createMasterKey = () => randomBytes(32).toString('base64');
const getKeyId = (key: string) => createKeyring([Buffer.from(key, 'base64')]).keyIds[0];

/**
 * Returns true for a change that was not made because it waited two seconds for a lock. On a busy machine a process may
 * hold its lock that long, whatever the keys are.
 */
const isWaitingForLock = ({ status, text }: FreshReply) =>
  status === 503 && /the database is busy with other changes/.test(text);

describe('rotating the master key while two replicas serve', () => {
  const fixtures = useFixtures();
  const folder = fixtures.folder();
  const postgres = fixtures.start(startPostgres);
  const upstream = fixtures.start(startRecordingUpstream);
  before(() => upstream.on('*', () => ({ body: { said: 'something' } })));

  const stored = { authentication: { type: 'Bearer', token: '{{TOKEN}}' } };
  const createEnvironment = async () => ({
    DATABASE_URL: await postgres.createDatabase(),
    DATA_DIR: folder,
    EGRESS_ALLOW: `127.0.0.1:${upstream.port}`,
    CALLS_PER_SECOND: '0',
    LOG_LEVEL: 'warn',
  });

  it('[find C2] in the documented order fails no request under load, and leaves every value readable', async () => {
    const [oldKey, freshKey] = [createMasterKey(), createMasterKey()];
    const proxy = await startRoundRobin();
    const env = await createEnvironment();
    const start = (MASTER_KEY: string) =>
      startToolhost({ env: { ...env, MASTER_KEY }, egressPorts: [upstream.port], dataDir: folder });
    const first = await start(oldKey);
    const slugs = ['one', 'two', 'three'];
    for (const slug of slugs) await first.createServer(buildServerAt(slug, upstream.url, stored));
    for (const slug of slugs) await first.rest('PUT', `/servers/${slug}/secrets/TOKEN`, { body: { value: 'first' } });
    const key = await first.createKey();
    await first.stop();

    const running: { child: ChildToolhost; url: string }[] = [];
    let over = false;
    const counts = { calls: 0, changes: 0 };
    const lastValues = new Map<string, string>();
    const startReplica = async (MASTER_KEY: string) => {
      const PORT = String(await findFreePort());
      const child = await startChildToolhost({ ...env, BASE_URL: proxy.url, PORT, MASTER_KEY });
      const url = `http://127.0.0.1:${PORT}`;
      running.push({ child, url });
      proxy.add(url);
      await proxy.waitForReadiness(url, true);
    };
    /** Replaces each replica with one that has these keys and serves before the other one stops. */
    const replaceReplicas = async (MASTER_KEY: string) => {
      for (const { child, url } of running.splice(0)) {
        await startReplica(MASTER_KEY);
        await proxy.remove(url);
        assert.equal(await child.end(), 0);
        assert.doesNotMatch(child.output(), /"level":[56]0/);
      }
      const { calls } = counts;
      while (counts.calls < calls + 20) await delay(loadPauseMs);
    };
    const call = async (slug: string) => {
      while (!over) {
        const { status, text } = await freshCall(proxy.url, slug, { key });
        assert.equal(status, 200, text);
        assert.match(text, /something/);
        counts.calls += 1;
        await delay(loadPauseMs);
      }
    };
    const change = async (slug: string) => {
      for (let n = 0; !over; n += 1) {
        const value = `${slug}-${n}`;
        const url = `${proxy.url}/api/v1/servers/${slug}/secrets/TOKEN`;
        const put = () => freshRequest(url, { method: 'PUT', key, body: { value } });
        const { status, text } = await retryUntilServed(put, isWaitingForLock);
        assert.equal(status, 200, text);
        lastValues.set(slug, value);
        counts.changes += 1;
        await delay(loadPauseMs);
      }
    };
    await startReplica(oldKey);
    await startReplica(oldKey);
    const load = Promise.all([...slugs.map(call), ...slugs.slice(1).map(change)]);
    try {
      await Promise.race([load, replaceReplicas(`${oldKey},${freshKey}`)]);
      await Promise.race([load, replaceReplicas(`${freshKey},${oldKey}`)]);
      const { code, stdout, stderr } = await command(['master-key', 'reseal', '--json'], {
        env: { ...env, MASTER_KEY: `${freshKey},${oldKey}` },
      });
      assert.equal(code, 0, stderr + stdout);
      await Promise.race([load, replaceReplicas(freshKey)]);
    } finally {
      over = true;
      await Promise.allSettled([load]);
      await Promise.all(running.map(({ child }) => child.end('SIGKILL')));
      await proxy.close();
    }
    await load;
    assert.ok(counts.calls > 60 && counts.changes > 20, JSON.stringify(counts));
    const finalService = await start(freshKey);
    for (const slug of slugs) {
      upstream.take();
      await finalService.callTool(slug, await finalService.createKey(), 'get');
      assert.equal(upstream.take()[0]?.headers.authorization, `Bearer ${lastValues.get(slug) ?? 'first'}`);
    }
    await finalService.stop();
  });

  it('[find C2] keeps logins and client registrations, so tokens stay valid and can be refreshed', async () => {
    const [oldKey, freshKey] = [createMasterKey(), createMasterKey()];
    const { DATABASE_URL } = await createEnvironment();
    const world = await startLoginWorld({ env: { DATABASE_URL, MASTER_KEY: oldKey } });
    const slug = await world.createServer();
    const agent = await world.registerClient(slug);
    const tokens = await world.getTokens(agent);
    await world.toolhost.stop();
    const egressPorts = [...world.provider.ports, world.upstream.port];
    const start = (MASTER_KEY: string) =>
      startToolhost({ egressPorts, env: { DATABASE_URL, MASTER_KEY, TRUSTED_PROXIES: '1' } });
    const MASTER_KEY = `${freshKey},${oldKey}`;
    const rotated = await start(MASTER_KEY);
    const resealed = await command(['master-key', 'reseal'], { env: { DATABASE_URL, MASTER_KEY } });
    assert.equal(resealed.code, 0, resealed.stderr);
    await rotated.stop();
    const finalService = await start(freshKey);
    const newClient = clientWithId(agent.id, { issuer: `${finalService.url}/mcp/${slug}` });
    assert.notEqual((await finalService.callTool(slug, tokens.access_token, 'run')).isError, true);
    const refreshed = expectTokens(await newClient.refresh(tokens.refresh_token));
    assert.notEqual((await finalService.callTool(slug, refreshed.access_token, 'run')).isError, true);
    await finalService.stop();
    await Promise.all([world.provider.close(), world.upstream.close()]);
  });

  it('[find C2] finds every sealed value, so no other column contains one', async () => {
    const MASTER_KEY = createMasterKey();
    const { DATABASE_URL } = await createEnvironment();
    const world = await startLoginWorld({ env: { DATABASE_URL, MASTER_KEY } });
    const slug = await world.createServer();
    const agent = await world.registerClient(slug);
    await world.getTokens(agent);
    await world.returnFromProvider(agent.authorization()).catch(() => undefined);
    await world.newBrowser().get(agent.authorization().url);
    world.upstream.on('GET /thing', () => ({ body: { text: 'x'.repeat(2000) } }));
    await world.toolhost.createServer(
      buildServerAt('with-secret', world.upstream.url, { ...stored, max_response_tokens: 200 }),
    );
    await world.toolhost.rest('PUT', '/servers/with-secret/secrets/TOKEN', { body: { value: 'x' } });
    await world.toolhost.rest('POST', '/servers/with-secret/capture', { body: { hours: 1 } });
    await world.toolhost.callTool('with-secret', await world.toolhost.createKey(), 'get');
    const headers = { 'content-type': 'application/pdf' };
    world.upstream.on('GET /thing', () => ({ headers, body: Buffer.alloc(300_000, 0xfe) }));
    await world.toolhost.callTool('with-secret', await world.toolhost.createKey(), 'get');
    const token_url = `${world.upstream.url}/token`;
    const authentication = { type: 'ClientCredentials', token_url, client_id: 'c', client_secret: 's' };
    world.upstream.on('POST /token', () => ({ body: { access_token: 'for-the-service', expires_in: 60 } }));
    await world.toolhost.createServer(buildServerAt('with-client', world.upstream.url, { authentication }));
    await world.toolhost.callTool('with-client', await world.toolhost.createKey(), 'get');
    const login = { fields: [{ name: 'KEY', label: 'Key' }] };
    const ownKey = { authentication: { type: 'Bearer', token: '{{KEY}}' }, login };
    await world.toolhost.createServer(buildServerAt('own-values', world.upstream.url, ownKey));
    const client = await registerClient({ issuer: `${world.toolhost.url}/mcp/own-values` });
    const browser = world.newBrowser();
    const form = await browser.press(await browser.get(client.authorization().url), 'Allow');
    await browser.press(form, 'Save and continue', { fields: toInputs({ KEY: 'key-of-a-person' }) });
    const model = { kind: 'anthropic', model: 'm', key: 'key-of-the-model' };
    assert.equal((await world.toolhost.rest('PUT', '/models/mine', { body: model })).status, 200);
    const webhook = { url: `${world.upstream.url}/hook`, events: ['key.expiring'] };
    assert.equal((await world.toolhost.rest('POST', '/webhooks', { body: webhook })).status, 201);
    await world.stop();
    const location = { url: DATABASE_URL, maxConnections: 2, authorities: undefined };
    const { db, close } = await openDatabase({ ...defaultDatabaseOptions, postgres: location });
    const sealedPattern = `%v1.${getKeyId(MASTER_KEY)}.%`;
    const foundColumns = new Set<string>();
    for (const { name, columns } of await db.introspection.getTables())
      for (const column of columns.filter(({ dataType }) => dataType === 'text')) {
        const { rows } = await sql`
          select 1 from ${sql.table(name)} where ${sql.ref(column.name)} like ${sealedPattern}`.execute(db);
        if (rows.length > 0) foundColumns.add(`${name}.${column.name}`);
      }
    await close();
    foundColumns.delete('master_keys.canary');
    assert.deepEqual(
      [...foundColumns].toSorted(),
      sealedColumns.map(({ table, column }) => `${table}.${column}`).toSorted(),
    );
  });
});
