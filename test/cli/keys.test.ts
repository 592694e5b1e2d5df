import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand, runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

type Created = { id: string; key: string; scopes: string[] };
type Listed = {
  keys: {
    id: string;
    name: string;
    servers?: string[];
    created_by: string;
    expires_at?: string;
    revoked_at?: string;
  }[];
};

/** Operator access: works directly on the database of a running service. */
describe('toolhost keys', () => {
  let running: TestToolhost;
  let env: Record<string, string>;
  before(async () => {
    running = await startToolhost();
    env = { DATA_DIR: running.dataDir };
  });
  after(() => running.stop());

  const create = (name: string, ...more: string[]) =>
    runToolhostJson<Created>(['keys', 'create', '--name', name, ...more], { env });
  const getStatus = async (key: string) => (await running.rest('GET', '/servers', { key })).status;

  it('limits a key to views, and lists them [agent 2]', async () => {
    const config = { ...buildServerAt('viewed', 'https://api.example.com'), views: { desk: { read_only: true } } };
    await running.createServer(config);
    const created = await runToolhostCommand(
      ['keys', 'create', '--name', 'desk', '--scopes', 'call', '--view', 'viewed/desk'],
      {
        env,
      },
    );
    assert.match(created.stdout, /Valid for the views viewed\/desk\./);
    assert.match(created.stdout, /claude mcp add --transport http viewed-desk \S+\/mcp\/viewed\/desk /);
    const listed = await runToolhostCommand(['keys', 'list'], { env });
    assert.match(listed.stdout, /desk +call +viewed\/desk /);
    const refused = await runToolhostCommand(
      ['keys', 'create', '--name', 'x', '--scopes', 'call', '--view', 'viewed/dsk'],
      {
        env,
      },
    );
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /there is no view "viewed\/dsk".*did you mean `viewed\/desk`/);
  });

  it('prints ID, key, and scopes; the key works immediately, and stops working soon after it is revoked', async () => {
    const created = await create('short-lived', '--scopes', 'manage, call');
    assert.deepEqual(Object.keys(created), ['id', 'key', 'scopes']);
    assert.match(created.key, /^thk_/);
    assert.deepEqual(created.scopes, ['manage', 'call']);
    assert.equal(await getStatus(created.key), 200);
    assert.deepEqual(await runToolhostJson(['keys', 'revoke', created.id, '--yes'], { env }), { revoked: created.id });
    await eventually(async () => assert.equal(await getStatus(created.key), 401), 10_000);
    const repeated = await runToolhostCommand(['keys', 'revoke', created.id, '--yes'], { env });
    assert.deepEqual([repeated.code, repeated.stdout], [1, '']);
    assert.match(repeated.stderr, /^error: there is no such key in this workspace, or it is already revoked\n$/);
  });

  it('prints only the key with --quiet, and rejects --quiet together with --json [find D3]', async () => {
    const args = ['keys', 'create', '--name', 'script', '--scopes', 'manage', '--quiet'];
    const { code, stdout, stderr } = await runToolhostCommand(args, { env });
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^thk_\w+\n$/);
    assert.equal(await getStatus(stdout.trim()), 200);
    const refused = await runToolhostCommand([...args, '--json'], { env });
    assert.deepEqual([refused.code, refused.stdout], [2, '']);
    assert.match(refused.stderr, /'--quiet' cannot be used with option '--json'/);
  });

  it('explains that the key is shown once and how to use it', async () => {
    const { code, stdout, stderr } = await runToolhostCommand(
      ['keys', 'create', '--name', 'for people', '--scopes', 'call', '--expires', '4w'],
      {
        env: { ...env, BASE_URL: 'https://tools.example.com' },
      },
    );
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
    const created = await create(
      'limited',
      '--scopes',
      'call',
      '--server',
      'one',
      '--server',
      'two',
      '--expires',
      '90d',
    );
    const { keys } = await runToolhostJson<Listed>(['keys', 'list'], { env });
    const key = keys.find(({ id }) => id === created.id);
    assert.deepEqual([key?.name, key?.servers, key?.created_by], ['limited', ['one', 'two'], 'operator']);
    const days = (Date.parse(key?.expires_at ?? '') - Date.now()) / 86_400_000;
    assert.ok(days > 89.9 && days <= 90, String(days));
    const { stdout } = await runToolhostCommand(['keys', 'list'], { env });
    assert.match(stdout, new RegExp(`^ID .*\n[sS]*^${created.id} +limited +call +one,two +valid until `, 'm'));
    assert.ok(!stdout.includes(created.key) && !JSON.stringify(keys).includes(created.key));
  });

  it('is recorded in the audit log as the operator', async () => {
    const created = await create('audited', '--scopes', 'manage:read');
    const { body } = await running.rest('GET', '/audit');
    const event = (body.events as { operation: string; target?: string; actor_kind: string }[]).find(
      ({ target }) => target === created.id,
    );
    assert.deepEqual([event?.operation, event?.actor_kind], ['createApiKey', 'operator']);
  });

  it('lists the allowed values when an argument is invalid', async () => {
    const base = ['keys', 'create', '--name', 'x'];
    const [scope, span, none, nameless, workspace, blank] = await Promise.all([
      runToolhostCommand([...base, '--scopes', 'call,admin'], { env }),
      runToolhostCommand([...base, '--scopes', 'call', '--expires', '3 years'], { env }),
      runToolhostCommand(base, { env }),
      runToolhostCommand(['keys', 'create', '--scopes', 'call'], { env }),
      runToolhostCommand([...base, '--scopes', 'call', '--workspace', 'wsp_none'], { env }),
      runToolhostCommand(['keys', 'create', '--name', ' ', '--scopes', 'call'], { env }),
    ]);
    assert.deepEqual(
      [scope, span, none, nameless, workspace, blank].map((ended) => ended.code),
      [2, 2, 2, 2, 1, 1],
    );
    assert.match(scope.stderr, /allowed: one or more of manage, manage:read, manage:write, call/);
    assert.match(span.stderr, /allowed: hours, days, or weeks, such as 12h, 90d, or 4w/);
    assert.match(none.stderr, /--scopes/);
    assert.match(nameless.stderr, /--name/);
    assert.match(workspace.stderr, /there is no workspace "wsp_none"/);
    assert.match(blank.stderr, /^ {2}name: /m);
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
    const [quotas, workspace] = await Promise.all([
      runToolhostCommand(['quotas', 'set', '--keys', '5', ...url]),
      runToolhostCommand(['limits', 'show', '--workspace', 'second', ...url]),
    ]);
    assert.deepEqual([quotas.code, workspace.code], [1, 1]);
    assert.match(quotas.stderr, /are set by the operator, directly on the database/);
    assert.match(workspace.stderr, /--workspace only works directly on the database/);
  });
});
