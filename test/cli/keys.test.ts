import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { pluck } from '../support/pluck.ts';
import { assertFailed } from '../support/toolhost/command-world.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand, runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

type Created = { id: string; key: string; scopes: string[] };
type Listed = { keys: { id: string; name: string; servers?: string[]; created_by: string; expires_at?: string }[] };

/** Operator access: works directly on the database of a running service. */
describe('toolhost keys', async () => {
  const running = await startToolhost();
  const env = { DATA_DIR: running.dataDir };
  after(() => running.stop());

  const run = (...args: string[]) => runToolhostCommand(args, { env });
  const create = (name: string, ...more: string[]) =>
    runToolhostJson<Created>(['keys', 'create', '--name', name, ...more], { env });
  const getStatus = async (key: string) => (await running.rest('GET', '/servers', { key })).status;

  it('limits a key to views, and lists them [agent 2]', async () => {
    const config = { ...buildServerAt('viewed', 'https://api.example.com'), views: { desk: { read_only: true } } };
    await running.createServer(config);
    const createForView = (name: string, view: string) =>
      run('keys', 'create', '--name', name, '--scopes', 'call', '--view', view);
    const created = await createForView('desk', 'viewed/desk');
    assert.match(created.stdout, /Valid for the views viewed\/desk\./);
    assert.match(created.stdout, /claude mcp add --transport http viewed-desk \S+\/mcp\/viewed\/desk /);
    assert.match((await run('keys', 'list')).stdout, /desk +call +viewed\/desk /);
    const refused = await createForView('x', 'viewed/dsk');
    assertFailed(refused, /there is no view "viewed\/dsk".*did you mean `viewed\/desk`/);
  });

  it('prints ID, key, and scopes; the key works immediately, and stops working soon after it is revoked', async () => {
    const created = await create('short-lived', '--scopes', 'manage, call');
    assert.deepEqual(Object.keys(created), ['id', 'key', 'scopes']);
    assert.match(created.key, /^thk_/);
    assert.deepEqual(created.scopes, ['manage', 'call']);
    assert.equal(await getStatus(created.key), 200);
    assert.deepEqual(await runToolhostJson(['keys', 'revoke', created.id, '--yes'], { env }), { revoked: created.id });
    await eventually(async () => assert.equal(await getStatus(created.key), 401), 10_000);
    const repeated = await run('keys', 'revoke', created.id, '--yes');
    assertFailed(repeated, /^error: there is no such key in this workspace, or it is already revoked\n$/);
  });

  it('prints only the key with --quiet, and rejects --quiet together with --json [find D3]', async () => {
    const args = ['keys', 'create', '--name', 'script', '--scopes', 'manage', '--quiet'];
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^thk_\w+\n$/);
    assert.equal(await getStatus(stdout.trim()), 200);
    assertFailed(await run(...args, '--json'), /--quiet and --json exclude each other/, 2);
  });

  it('explains that the key is shown once and how to use it', async () => {
    const args = ['keys', 'create', '--name', 'for people', '--scopes', 'call', '--expires', '4w'];
    const publicEnv = { ...env, BASE_URL: 'https://tools.example.com' };
    const { code, stdout, stderr } = await runToolhostCommand(args, { env: publicEnv });
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /shown only once/);
    assert.match(stdout, /export TOOLHOST_API_KEY=/);
    assert.match(stdout, /https:\/\/tools\.example\.com\/api\/v1\/servers/);
    assert.ok(stdout.includes(running.dataDir));
    const key = /thk_\w+/.exec(stdout)?.[0] ?? '';
    assert.equal(await getStatus(key), 403);
  });

  it('lists keys with their limits but never the keys themselves', async () => {
    for (const slug of ['one', 'two']) await running.createServer(buildServerAt(slug, 'https://api.example.com'));
    const servers = ['--server', 'one', '--server', 'two'];
    const created = await create('limited', '--scopes', 'call', ...servers, '--expires', '90d');
    const { keys } = await runToolhostJson<Listed>(['keys', 'list'], { env });
    const key = keys.find(({ id }) => id === created.id);
    assert.deepEqual([key?.name, key?.servers, key?.created_by], ['limited', ['one', 'two'], 'operator']);
    const days = (Date.parse(key?.expires_at ?? '') - Date.now()) / 86_400_000;
    assert.ok(days > 89.9 && days <= 90, String(days));
    const { stdout } = await run('keys', 'list');
    assert.match(stdout, new RegExp(`^ID .*\n[sS]*^${created.id} +limited +call +one,two +valid until `, 'm'));
    assert.ok(!stdout.includes(created.key) && !JSON.stringify(keys).includes(created.key));
  });

  it('is recorded in the audit log as the operator', async () => {
    const created = await create('audited', '--scopes', 'manage:read');
    const { body } = await running.rest('GET', '/audit');
    const events = (body.events as Json[]).filter(({ target }) => target === created.id);
    assert.deepEqual(pluck(events, 'operation', 'actor_kind'), ['createApiKey', 'operator']);
  });

  it('lists the allowed values when an argument is invalid', async () => {
    for (const [args, code, message] of [
      [['--name', 'x', '--scopes', 'call,admin'], 2, /allowed: one or more of manage, manage:read, manage:write, call/],
      [
        ['--name', 'x', '--scopes', 'call', '--expires', '3 years'],
        2,
        /allowed: hours, days, or weeks, such as 12h, 90d, or 4w/,
      ],
      [['--name', 'x'], 2, /--scopes/],
      [['--scopes', 'call'], 2, /--name/],
      [['--name', 'x', '--scopes', 'call', '--workspace', 'wsp_none'], 1, /there is no workspace "wsp_none"/],
      [['--name', ' ', '--scopes', 'call'], 1, /^error: --name: /],
    ] as const)
      assertFailed(await run('keys', 'create', ...args), message, code);
  });

  it('creates keys in another workspace', async () => {
    await running.createKey({ workspace: 'second' });
    const created = await create('elsewhere', '--scopes', 'manage', '--workspace', 'second');
    const [defaultWorkspace, second] = await Promise.all([
      runToolhostJson<Listed>(['keys', 'list'], { env }),
      runToolhostJson<Listed>(['keys', 'list', '--workspace', 'second'], { env }),
    ]);
    assert.ok(!defaultWorkspace.keys.some(({ id }) => id === created.id));
    assert.ok(second.keys.some(({ id }) => id === created.id));
  });

  it('works over the API with a credential, and rejects operations that need direct database access', async () => {
    const url = ['--url', running.url, '--key', await running.createKey()];
    const created = await runToolhostJson<Created>(['keys', 'create', '--name', 'far', '--scopes', 'call', ...url]);
    const listed = await runToolhostCommand(['keys', 'list', ...url]);
    assert.match(listed.stdout, new RegExp(`^${created.id} +far +call +all +valid +never$`, 'm'));
    const limited = await runToolhostCommand(['keys', 'limit', created.id, '--calls-per-day', '5', ...url]);
    assert.equal(limited.stdout, `The API key ${created.id} may make 5 calls per day.\n`);
    assert.equal((await runToolhostCommand(['keys', 'revoke', created.id, ...url])).code, 1);
    assert.equal((await runToolhostCommand(['keys', 'revoke', created.id, '--yes', ...url])).code, 0);
    await running.createServer(buildServerAt('far', 'https://api.example.com'));
    const limits = await runToolhostCommand(['limits', 'set', '--server', 'far', '--concurrent-calls', '7', ...url]);
    assert.match(limits.stdout, /^concurrent calls +7 +set$/m);
    assert.match((await runToolhostCommand(['quotas', 'show', ...url])).stdout, /^keys +1000 /m);
    const quotas = await runToolhostCommand(['quotas', 'set', '--keys', '5', ...url]);
    assertFailed(quotas, /are set by the operator, directly on the database/);
    const workspace = await runToolhostCommand(['limits', 'show', '--workspace', 'second', ...url]);
    assertFailed(workspace, /--workspace only works directly on the database/);
  });
});
