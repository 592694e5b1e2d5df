import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { readConfig } from '../../apps/server/src/config.ts';
import { defaultQuotas, type QuotaName } from '../../apps/server/src/quotas.ts';
import { engines } from '../sets.ts';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { pluck } from '../support/pluck.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import { createKeyClient, createPersonClient } from '../support/toolhost/rest-clients.ts';
import { runOperatorOperation } from '../support/toolhost/run-operator-operation.ts';
import { type Json, type Reply, startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as runToolhost } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

const apiUrl = 'https://api.example.com';
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** Returns tools of about 3.9 KB each. */
const makeLongTools = (count: number, text: string) =>
  Array.from({ length: count }, (_, i) =>
    buildToolAt(`${apiUrl}/v1/${'p'.repeat(1900)}`, { name: `tool_${i}`, description: text.repeat(1900) }),
  );

type Quota = { limit?: number; used?: number; from: string };

for (const engine of engines) {
  describe(`workspace quotas on ${engine}`, async () => {
    const world = await startToolhostOnEngine(engine, {
      env: { QUOTAS: 'servers=3,keys=4,secrets=2,versions=3,members=3,writes=0' },
    });
    after(() => world.stop());

    let workspaces = 0;
    /** Opens a workspace with these quotas, and creates a key for it. */
    const createWorkspaceWithQuotas = async (set: Partial<Record<QuotaName, number>> = {}) => {
      const workspace = `quota-${++workspaces}`;
      const key = await world.toolhost.createKey({ workspace });
      if (Object.keys(set).length > 0) await runOperatorOperation(world.toolhost, 'setWorkspaceQuotas', workspace, set);
      const send = createKeyClient(world.toolhost, key);
      return {
        workspace,
        send,
        create: (name: string, more: Json = {}) =>
          send('POST', '/servers', buildServerAt(`${workspace}-${name}`, apiUrl, more)),
        getQuota: async (name: QuotaName) =>
          ((await send('GET', '/workspace/quotas')).body as Record<string, Quota>)[name],
      };
    };
    const assertRefused = ({ status, body }: Reply, pattern: RegExp) => {
      assert.equal(status, 403, JSON.stringify(body));
      assert.match(String(body.detail), pattern);
      assert.match(String(body.detail), /ask the operator/);
    };

    it('[find A5] refuse servers above the quota even if created concurrently, and store nothing of them', async () => {
      const { create, send, getQuota } = await createWorkspaceWithQuotas();
      const replies = await Promise.all(Array.from({ length: 8 }, (_, n) => create(String(n))));
      const refused = replies.filter(({ status }) => status !== 201);
      assert.equal(refused.length, 5);
      for (const reply of refused)
        assertRefused(reply, /would have 4 hosted servers; allowed: 3; delete a server that you do not need/);
      const { body } = await send('GET', '/servers');
      const slugs = (body.servers as Json[]).map(({ slug }) => String(slug));
      assert.equal(slugs.length, 3);
      assert.deepEqual(await getQuota('servers'), { limit: 3, from: 'default', used: 3 });
      await send('DELETE', `/servers/${slugs[0]}`);
      assert.equal((await create('again')).status, 201);
    });

    it('[find A5] count only active keys', async () => {
      const { send, getQuota } = await createWorkspaceWithQuotas();
      const createKey = () => send('POST', '/keys', { name: 'k', scopes: ['call'] });
      const ids: unknown[] = [];
      for (let n = 0; n < 3; n += 1) ids.push((await createKey()).body.id);
      assertRefused(await createKey(), /would have 5 active API keys; allowed: 4; revoke a key/);
      await send('DELETE', `/keys/${ids[0]}`);
      assert.equal((await send('POST', '/keys', { name: 'k', scopes: ['call'], expires_in: 60 })).status, 201);
      assertRefused(await createKey(), /allowed: 4/);
      await world.advanceTime(61_000);
      assert.equal((await getQuota('keys'))?.used, 3);
      assert.equal((await createKey()).status, 201);
    });

    it('[find A5] count the secrets of all servers, and allow replacing an existing one', async () => {
      const { workspace, create, send } = await createWorkspaceWithQuotas();
      await create('one', { authentication: { type: 'Bearer', token: 'in-the-configuration' } });
      const set = (name: string, value: string) => send('PUT', `/servers/${workspace}-one/secrets/${name}`, { value });
      assert.equal((await set('A', '1')).status, 200);
      assertRefused(await set('B', '1'), /would have 3 secrets in all servers; allowed: 2/);
      assert.equal((await set('A', '2')).status, 200);
      const second = await create('two', { authentication: { type: 'Bearer', token: 'another' } });
      assertRefused(second, /would have 3 secrets in all servers/);
      assert.equal((await send('GET', `/servers/${workspace}-two`)).status, 404);
    });

    it('[find A5] limit one server to 200 secrets', async () => {
      const { workspace, create, send } = await createWorkspaceWithQuotas({ secrets: 0 });
      await create('one');
      const path = `/servers/${workspace}-one`;
      const set = (n: number, value = 'x') => send('PUT', `${path}/secrets/S${n}`, { value });
      const secrets = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`S${n}`, 'x']));
      const config = buildServerAt(`${workspace}-one`, apiUrl);
      const applied = await send('POST', `${path}/apply`, { config, secrets });
      assert.equal(applied.status, 200, applied.text);
      const { status, body } = await set(200);
      assert.equal(status, 403);
      assert.match(String(body.detail), /has 200 secrets; allowed: 200 per server/);
      assert.equal((await set(7, 'other')).status, 200);
    });

    it('[find A5] retain the newest versions of a server, and as many large ones as fit', async () => {
      const { workspace, create, send, getQuota } = await createWorkspaceWithQuotas();
      await create('one');
      const path = `/servers/${workspace}-one`;
      for (let n = 2; n <= 6; n += 1) await send('PATCH', path, { description: `Version ${n}` });
      assert.deepEqual(pluck((await send('GET', `${path}/versions`)).body.versions, 'version'), [6, 5, 4]);
      assert.equal((await send('POST', `${path}/versions/3/restore`)).status, 404);
      const { used } = (await getQuota('megabytes')) ?? {};
      assert.ok(used !== undefined && used < 0.02, String(used));
    });

    it('[find A5] refuse configurations whose total size is too large, unless they shrink', async () => {
      const { workspace, create, send } = await createWorkspaceWithQuotas({ megabytes: 1 });
      const makeLargeConfig = (tools: number, text = 'x') => ({ tools: makeLongTools(tools, text) });
      assert.equal((await create('one', makeLargeConfig(100))).status, 201);
      const refusal = /would have 2 MB of configurations.*; allowed: 1; make configurations smaller/;
      assertRefused(await create('two', makeLargeConfig(100)), refusal);
      assertRefused(await send('PATCH', `/servers/${workspace}-one`, makeLargeConfig(180)), /would have 2 MB/);
      const changed = await send('PATCH', `/servers/${workspace}-one`, makeLargeConfig(100, 'y'));
      assert.equal(changed.status, 200, 'the previous version is removed to make space');
      assert.equal((await create('small')).status, 201);
      await runOperatorOperation(world.toolhost, 'setWorkspaceQuotas', workspace, { megabytes: 1, servers: 1 });
      assertRefused(await create('third'), /would have 3 hosted servers; allowed: 1/);
      assert.equal((await send('PATCH', `/servers/${workspace}-small`, { description: 'Shorter or not' })).status, 200);
      assert.equal((await send('DELETE', `/servers/${workspace}-one`)).status, 200);
    });

    it('[find A5] count members and invitations together', async () => {
      const send = createPersonClient(world.toolhost, await createPersonSession(world.toolhost, { name: 'Owner' }));
      for (const [email, role, status] of [
        ['a@b.example', 'viewer', 200],
        ['b@b.example', 'viewer', 200],
        ['c@b.example', 'viewer', 403],
        ['a@b.example', 'editor', 200],
      ])
        assert.equal((await send('POST', '/invitations', { email, role })).status, status);
    });

    it('[find A5] limit workspace changes per minute, and return the time to retry', async () => {
      const { create, getQuota } = await createWorkspaceWithQuotas({ writes: 5, servers: 0 });
      await world.advanceTime(minuteMs);
      await world.advanceTime(minuteMs - (world.now() % minuteMs) + 10_000);
      const replies = await Promise.all(Array.from({ length: 8 }, (_, n) => create(`w${n}`)));
      assert.equal(replies.filter(({ status }) => status === 201).length, 5);
      const refusals = replies.filter(({ status }) => status === 429);
      assert.equal(refusals.length, 3);
      assert.equal(refusals[0]?.headers.get('retry-after'), '50');
      assert.match(refusals[0]?.text ?? '', /limit of 5 changes per minute; retry in 50 s/);
      assert.equal((await getQuota('writes'))?.used, 5);
      await world.advanceTime(50_000);
      assert.equal((await create('later')).status, 201);
    });

    it('[find A5] limit workspace changes per day', async () => {
      const { create, getQuota } = await createWorkspaceWithQuotas({ daily_writes: 2, servers: 0 });
      await world.advanceTime(dayMs - (world.now() % dayMs));
      assert.deepEqual([(await create('a')).status, (await create('b')).status], [201, 201]);
      const refusal = await create('c');
      assert.equal(refusal.status, 429);
      assert.match(refusal.text, /limit of 2 changes per day; retry in 86400 s/);
      assert.equal((await getQuota('daily_writes'))?.used, 2);
      await world.advanceTime(dayMs);
      assert.equal((await create('c')).status, 201);
    });

    it('[find A5] count the slugs of deleted servers', async () => {
      const { workspace, create, send } = await createWorkspaceWithQuotas({ slugs: 2, servers: 0 });
      await create('a');
      await send('DELETE', `/servers/${workspace}-a`);
      assert.equal((await create('b')).status, 201);
      assertRefused(await create('c'), /would have 3 slugs.*; allowed: 2/);
    });

    /** Signs in a person who creates workspaces with these quotas. */
    const signInCreator = async (name: string, set: Partial<Record<QuotaName, number>>) => {
      const session = await createPersonSession(world.toolhost, { name, workspace: `quota-${++workspaces}` });
      const request = createPersonClient(world.toolhost, session);
      return {
        request,
        create: (slug: string) => request('POST', '/servers', buildServerAt(slug, apiUrl)),
        openWorkspace: async (workspaceName: string) => {
          const { status, body } = await request('POST', '/workspaces', { name: workspaceName });
          assert.equal(status, 201, JSON.stringify(body));
          await runOperatorOperation(world.toolhost, 'setWorkspaceQuotas', String(body.id), { servers: 0, ...set });
        },
      };
    };

    it('[find A8] count slugs across all workspaces of a creator, including deleted ones', async () => {
      const { request, create, openWorkspace } = await signInCreator('Ada', { slugs: 2 });
      await openWorkspace('First');
      assert.equal((await create('ada-first')).status, 201);
      assert.equal((await request('POST', '/workspace/delete', { name: 'First' })).status, 200);
      await openWorkspace('Second');
      assert.equal((await create('ada-second')).status, 201);
      await openWorkspace('Third');
      const { status, body } = await create('ada-third');
      assert.match(`${status} ${body.detail}`, /^403 .*would have 3 slugs in all workspaces of the creator/);
      const other = await signInCreator('Bea', { slugs: 2 });
      await other.openWorkspace('First');
      assert.equal((await other.create('ada-third')).status, 201);
    });

    it('[find A8] count changes across all workspaces of a creator', async () => {
      await world.advanceTime(dayMs - (world.now() % dayMs));
      const { create, openWorkspace } = await signInCreator('Cleo', { daily_writes: 5 });
      await openWorkspace('First');
      assert.equal((await create('cleo-first')).status, 201);
      // Creating the next workspace and setting its quotas are changes too.
      await openWorkspace('Second');
      assert.equal((await create('cleo-second')).status, 201);
      const { status, body } = await create('cleo-third');
      assert.match(`${status} ${body.detail}`, /^429 .*workspaces of this creator reached their limit of 5 changes/);
      const other = await signInCreator('Dora', { daily_writes: 5 });
      await other.openWorkspace('First');
      assert.equal((await other.create('cleo-third')).status, 201);
    });

    it('[find A5] can be set by the operator and reset to the defaults', async () => {
      const { workspace, getQuota } = await createWorkspaceWithQuotas({ servers: 7, keys: 0 });
      assert.deepEqual(await getQuota('servers'), { limit: 7, from: 'set', used: 0 });
      assert.deepEqual(await getQuota('keys'), { from: 'set', used: 1 });
      await runOperatorOperation(world.toolhost, 'setWorkspaceQuotas', workspace, { servers: null });
      assert.deepEqual(await getQuota('servers'), { limit: 3, from: 'default', used: 0 });
      assert.deepEqual(await getQuota('keys'), { from: 'set', used: 1 });
    });
  });
}

describe('QUOTAS setting', () => {
  const readQuotas = (text: string) => readConfig({ QUOTAS: text }, () => '').config.quotas;

  it('[find A5] overrides the built-in quotas by name', () => {
    assert.deepEqual(readQuotas(''), defaultQuotas);
    assert.deepEqual(readQuotas(' servers = 5, writes=0 ,'), { ...defaultQuotas, servers: 5, writes: 0 });
  });

  it('[find A5] is refused with the found and the allowed value', () => {
    for (const invalid of ['server=5', 'servers', 'servers=-1', 'servers=1.5', 'servers=99999999', 'toString=1']) {
      const message = `QUOTAS: found ${JSON.stringify(invalid)}; allowed: name=number`;
      assert.throws(
        () => readQuotas(`keys=1,${invalid}`),
        (error: Error) => error.message.includes(message),
      );
    }
  });
});

describe('toolhost quotas command', async () => {
  const toolhost = await startToolhost();
  after(() => toolhost.stop());
  const runQuotas = (...args: string[]) =>
    runToolhost(['quotas', ...args], { env: { DATA_DIR: toolhost.dataDir, QUOTAS: 'keys=30' } });

  it('[find A5] shows, sets, and resets workspace quotas, which a running service applies immediately', async () => {
    const set = await runQuotas('set', '--servers', '1', '--keys', '0', '--json');
    assert.equal(set.code, 0, set.stderr);
    const { servers, keys } = JSON.parse(set.stdout);
    assert.deepEqual(
      { servers, keys },
      { servers: { limit: 1, from: 'set', used: 0 }, keys: { from: 'set', used: 1 } },
    );
    const create = (slug: string) => toolhost.rest('POST', '/servers', { body: buildServerAt(slug, apiUrl) });
    assert.deepEqual([(await create('first')).status, (await create('second')).status], [201, 403]);
    const shown = await runQuotas('show');
    assert.match(shown.stdout, /^servers +1 +1 +set +hosted servers$/m);
    assert.match(shown.stdout, /^keys +none +1 +set /m);
    const reset = await runQuotas('reset');
    assert.match(reset.stdout, /^keys +30 +1 +environment default /m);
    assert.equal((await create('second')).status, 201);
  });

  it('[find A5] reports the allowed values', async () => {
    const none = await runQuotas('set');
    assert.match(`${none.code} ${none.stderr}`, /^2 .*pass one or more of --servers, --slugs/s);
    for (const invalid of ['1.5', '99999999']) {
      const { code, stderr } = await runQuotas('set', `--servers=${invalid}`);
      assert.match(`${code} ${stderr}`, /^2 .*allowed: a whole number from 0 to 10000000/s);
    }
  });
});
