import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { parse } from 'yaml';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as command } from '../support/toolhost/toolhost-command.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const mask = '********';

describe('a tool with a named credential', () => {
  let upstream: RecordingUpstream;
  let issuer: RecordingUpstream;
  let toolhost: TestToolhost;
  let key: string;
  before(async () => {
    [upstream, issuer] = await Promise.all([startRecordingUpstream(), startRecordingUpstream()]);
    toolhost = await startToolhost({ egressPorts: [upstream.port, issuer.port] });
    key = await toolhost.createKey();
    issuer.on('POST /token', ({ body }) => {
      const id = new URLSearchParams(body.toString()).get('scope');
      return { body: { access_token: `token-of-${id}`, token_type: 'Bearer' } };
    });
  });
  beforeEach(() => void upstream.take());
  after(() => Promise.all([toolhost.stop(), upstream.close(), issuer.close()]));

  const tool = (name: string, overrides: Json = {}) => buildToolAt(`${upstream.url}/${name}`, { name, ...overrides });
  const clientCredentials = (scope: string) => ({
    type: 'ClientCredentials',
    token_url: `${issuer.url}/token`,
    client_id: 'client',
    client_secret: `secret-${scope}`,
    scopes: [scope],
  });
  const config = (slug: string): Json & { tools: Json[] } => ({
    name: slug,
    slug,
    authentication: { type: 'Bearer', token: 'usual-secret-1' },
    credentials: {
      admin: { type: 'Bearer', token: 'admin-secret-2' },
      pair: [
        { type: 'ApiKey', header: 'X-Key', token: '{{PAIR_KEY}}' },
        { type: 'QueryParam', query_key: 'app', token: 'app-secret-3' },
      ],
      user: { type: 'Basic', user: 'ann', password: 'user-secret-4' },
      reads: clientCredentials('read'),
      writes: clientCredentials('write'),
    },
    tools: [
      tool('usual'),
      tool('public', { credential: 'none' }),
      ...['admin', 'pair', 'user', 'reads', 'writes'].map((name) => tool(name, { credential: name })),
    ],
  });
  const secrets =
    /usual-secret-1|admin-secret-2|app-secret-3|user-secret-4|pair-value-5|secret-(?:read|write)|token-of-/;
  /** Calls a tool and returns the credentials and the URL that the upstream received. */
  const callForCredentials = async (slug: string, name: string) => {
    const params = { name, arguments: {} };
    const reply = await toolhost.post(slug, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { token: key });
    assert.equal(reply.status, 200, reply.text);
    if ((reply.body.result as Json).isError) assert.doesNotMatch(reply.text, secrets);
    const [request] = upstream.take();
    const { authorization, 'x-key': xKey } = request?.headers ?? {};
    return [authorization, xKey, request?.url].filter((text) => text !== undefined);
  };
  const expected: Record<string, string[]> = {
    usual: ['Bearer usual-secret-1', '/usual'],
    public: ['/public'],
    admin: ['Bearer admin-secret-2', '/admin'],
    pair: ['pair-value-5', '/pair?app=app-secret-3'],
    user: [`Basic ${Buffer.from('ann:user-secret-4').toString('base64')}`, '/user'],
    reads: ['Bearer token-of-read', '/reads'],
    writes: ['Bearer token-of-write', '/writes'],
  };

  it('[conf 4] is called with its own credential and no other, and no error contains any of them', async () => {
    const slug = 'named';
    const created = await toolhost.createServer(config(slug));
    assert.match(JSON.stringify(created), /\{\{PAIR_KEY\}\} has no value yet/);
    await toolhost.rest('PUT', `/servers/${slug}/secrets/PAIR_KEY`, { body: { value: 'pair-value-5' } });
    const { body } = await toolhost.rest('GET', `/servers/${slug}`);
    assert.equal((body.server as Json).access, 'api_key');
    assert.doesNotMatch(JSON.stringify(body), secrets);
    for (const [name, expectedParts] of Object.entries(expected))
      assert.deepEqual(await callForCredentials(slug, name), expectedParts);
    upstream.on('*', ({ headers, url }) => ({ status: 422, body: { headers, url } }));
    for (const [name, expectedParts] of Object.entries(expected))
      assert.deepEqual(await callForCredentials(slug, name), expectedParts);
    upstream.on('*', () => ({ body: {} }));
    const preview = await toolhost.rest('POST', `/servers/${slug}/tools/admin/preview`, { body: {} });
    assert.equal(preview.status, 200, preview.text);
    assert.doesNotMatch(preview.text, secrets);
    assert.match(preview.text, /authorization/i);
  });

  it('keeps its stored credential with a masked value, and an exported file refers to it by path', async () => {
    const slug = 'named-kept';
    await toolhost.createServer(config(slug));
    await toolhost.rest('PUT', `/servers/${slug}/secrets/PAIR_KEY`, { body: { value: 'pair-value-5' } });
    const { body } = await toolhost.rest('GET', `/servers/${slug}`);
    const storedConfig = body.config as ReturnType<typeof config>;
    const tools = storedConfig.tools.map((existing) =>
      existing.name === 'usual' ? { ...existing, credential: 'admin' } : existing,
    );
    const changed = await toolhost.rest('PATCH', `/servers/${slug}`, { body: { tools } });
    assert.equal(changed.status, 200, changed.text);
    for (const [name, expectedParts] of Object.entries({ ...expected, usual: ['Bearer admin-secret-2', '/usual'] }))
      assert.deepEqual(await callForCredentials(slug, name), expectedParts);
    const masked = { ...(storedConfig.credentials as Json), other: { type: 'Bearer', token: mask } };
    const rejected = await toolhost.rest('PATCH', `/servers/${slug}`, { body: { credentials: masked } });
    assert.deepEqual(rejected.body.problems, [
      {
        path: 'credentials.other.token',
        message: `"${mask}" stands for a stored value, but none is stored; send the value itself`,
      },
    ]);

    const folder = mkdtempSync(join(tmpdir(), 'toolhost-named-'));
    try {
      const env = { TOOLHOST_URL: toolhost.url, TOOLHOST_API_KEY: key, NEW_ADMIN: 'admin-secret-2b' };
      const exported = (await command(['export', slug], { env })).stdout;
      assert.deepEqual((parse(exported) as Json).secrets, {
        'authentication.token': 'stored',
        'credentials.admin.token': 'stored',
        'credentials.pair[1].token': 'stored',
        'credentials.user.password': 'stored',
        'credentials.reads.client_secret': 'stored',
        'credentials.writes.client_secret': 'stored',
        PAIR_KEY: 'stored',
      });
      const path = join(folder, 'named.yaml');
      writeFileSync(path, exported);
      assert.match((await command(['apply', path], { env })).stdout, /^1 same$/m);
      writeFileSync(
        path,
        exported.replace('credentials.admin.token: stored', 'credentials.admin.token: {env: NEW_ADMIN}'),
      );
      const applied = await command(['apply', path, '--env', 'NEW_ADMIN'], { env });
      assert.equal(applied.code, 0, applied.stdout + applied.stderr);
      assert.doesNotMatch(applied.stdout + applied.stderr, /admin-secret/);
      assert.deepEqual(await callForCredentials(slug, 'admin'), ['Bearer admin-secret-2b', '/admin']);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('[conf 6] is rejected with the allowed values if its credential is invalid', async () => {
    const admin = { type: 'Bearer', token: '{{ADMIN}}' };
    const login = {
      authorization_url: 'https://login.example.com/authorize',
      token_url: 'https://login.example.com/token',
      client_id: 'client',
    };
    const cases: [Json, string, RegExp][] = [
      [
        { tools: [tool('a', { credential: 'secret-in-the-wrong-place' })] },
        'tools[0].credential',
        /not a name in the server credentials.*allowed: none$/,
      ],
      [
        { credentials: { admin }, tools: [tool('a', { credential: 'adm' })] },
        'tools[0].credential',
        /allowed: admin, none$/,
      ],
      [
        { credentials: { admin }, tools: [tool('a', { credential: 'constructor' })] },
        'tools[0].credential',
        /allowed: admin, none$/,
      ],
      [{ credentials: { none: admin } }, 'credentials.none', /allowed as a name: .*except none/],
      [{ credentials: { 'a.b': admin } }, 'credentials.a.b', /allowed as a name/],
      [
        { credentials: { admin: { type: 'Bearer' } } },
        'credentials.admin.token',
        /only authentication can send the caller token/,
      ],
      [{ credentials: { admin: { type: 'Cookie', token: 'x' } } }, 'credentials.admin.cookie', /is missing/],
      [
        { credentials: { admin }, authentication: { type: 'Bearer' } },
        'authentication.token',
        /callers send an API key and no token/,
      ],
      [
        { credentials: { admin }, authentication: { type: 'Bearer' }, oauth: login },
        'credentials',
        /cannot be combined with oauth/,
      ],
      [
        { credentials: { admin }, headers: { Authorization: 'x' } },
        'headers.Authorization',
        /authentication sets this header/,
      ],
      [
        { credentials: Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`c${index}`, admin])) },
        'credentials',
        /at most 20/,
      ],
    ];
    for (const [overrides, path, message] of cases) {
      const { status, body, text } = await toolhost.rest('POST', '/servers', {
        body: { name: 'R', slug: 'named-refused', tools: [tool('a')], ...overrides },
      });
      assert.equal(status, 400, text);
      const matchingProblem = (body.problems as Json[]).find((problem) => problem.path === path);
      assert.match(String(matchingProblem?.message ?? text), message);
      assert.doesNotMatch(text, /wrong-place/);
    }
  });
});
