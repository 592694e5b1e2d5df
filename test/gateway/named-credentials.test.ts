import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, beforeEach, describe, it } from 'node:test';
import { parse } from 'yaml';
import { patchServer, setSecret } from '../support/server-requests.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as command } from '../support/toolhost/toolhost-command.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { oauthConfig } from '../support/valid-configs.ts';

const mask = '********';

describe('a tool with a named credential', () => {
  const upstream = useFixture(startRecordingUpstream);
  const issuer = useFixture(startRecordingUpstream);
  const toolhost = useFixture(() => startToolhost({ egressPorts: [upstream.port, issuer.port] }));
  let key: string;
  before(async () => {
    key = await toolhost.createKey();
    issuer.on('POST /token', ({ body }) => {
      const id = new URLSearchParams(body.toString()).get('scope');
      return { body: { access_token: `token-of-${id}`, token_type: 'Bearer' } };
    });
  });
  beforeEach(() => void upstream.take());

  const tool = (name: string, overrides: Json = {}) => buildToolAt(`${upstream.url}/${name}`, { name, ...overrides });
  const clientCredentials = (scope: string) => ({
    ...{ type: 'ClientCredentials', token_url: `${issuer.url}/token`, scopes: [scope] },
    ...{ client_id: 'client', client_secret: `secret-${scope}` },
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
    const reply = await toolhost.rpc(slug, key, 'tools/call', { name, arguments: {} });
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

  const serve = async (slug: string) => {
    const created = await toolhost.createServer(config(slug));
    await setSecret(toolhost, slug, 'PAIR_KEY', 'pair-value-5');
    return { created, body: (await toolhost.rest('GET', `/servers/${slug}`)).body };
  };
  const assertCredentials = async (slug: string, overrides: Record<string, string[]> = {}) => {
    for (const [name, expectedParts] of Object.entries({ ...expected, ...overrides }))
      assert.deepEqual(await callForCredentials(slug, name), expectedParts);
  };

  it('[conf 4] is called with its own credential and no other, and no error contains any of them', async () => {
    const { created, body } = await serve('named');
    assert.match(JSON.stringify(created), /\{\{PAIR_KEY\}\} has no value yet/);
    assert.equal((body.server as Json).access, 'api_key');
    assert.doesNotMatch(JSON.stringify(body), secrets);
    await assertCredentials('named');
    upstream.on('*', ({ headers, url }) => ({ status: 422, body: { headers, url } }));
    await assertCredentials('named');
    upstream.on('*', () => ({ body: {} }));
    const preview = await toolhost.rest('POST', '/servers/named/tools/admin/preview', { body: {} });
    assert.equal(preview.status, 200, preview.text);
    assert.doesNotMatch(preview.text, secrets);
    assert.match(preview.text, /authorization/i);
  });

  it('keeps its stored credential with a masked value, and an exported file refers to it by path', async (t) => {
    const slug = 'named-kept';
    const { body } = await serve(slug);
    const storedConfig = body.config as ReturnType<typeof config>;
    const tools = storedConfig.tools.map((old) => (old.name === 'usual' ? { ...old, credential: 'admin' } : old));
    await patchServer(toolhost, slug, { tools });
    await assertCredentials(slug, { usual: ['Bearer admin-secret-2', '/usual'] });
    const masked = { ...(storedConfig.credentials as Json), other: { type: 'Bearer', token: mask } };
    const rejected = await toolhost.rest('PATCH', `/servers/${slug}`, { body: { credentials: masked } });
    const message = `"${mask}" stands for a stored value, but none is stored; send the value itself`;
    assert.deepEqual(rejected.body.problems, [{ path: 'credentials.other.token', message }]);

    const folder = mkdtempSync(join(tmpdir(), 'toolhost-named-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
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
    const adminToken = 'credentials.admin.token: ';
    writeFileSync(path, exported.replace(`${adminToken}stored`, `${adminToken}{env: NEW_ADMIN}`));
    const applied = await command(['apply', path, '--env', 'NEW_ADMIN'], { env });
    assert.equal(applied.code, 0, applied.stdout + applied.stderr);
    assert.doesNotMatch(applied.stdout + applied.stderr, /admin-secret/);
    assert.deepEqual(await callForCredentials(slug, 'admin'), ['Bearer admin-secret-2b', '/admin']);
  });

  it('[conf 6] is rejected with the allowed values if its credential is invalid', async () => {
    const admin = { type: 'Bearer', token: '{{ADMIN}}' };
    const credentials = { admin };
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`c${index}`, admin]));
    const withTool = (credential: string) => ({ tools: [tool('a', { credential })] });
    const forwarded = { authentication: { type: 'Bearer' } };
    const cases: [Json, string, RegExp][] = [
      [
        withTool('secret-in-the-wrong-place'),
        'tools[0].credential',
        /not a name in the server credentials.*allowed: none$/,
      ],
      [{ credentials, ...withTool('adm') }, 'tools[0].credential', /allowed: admin, none$/],
      [{ credentials, ...withTool('constructor') }, 'tools[0].credential', /allowed: admin, none$/],
      [{ credentials: { none: admin } }, 'credentials.none', /allowed as a name: .*except none/],
      [{ credentials: { 'a.b': admin } }, 'credentials.a.b', /allowed as a name/],
      [
        { credentials: { admin: { type: 'Bearer' } } },
        'credentials.admin.token',
        /only authentication can send the caller token/,
      ],
      [{ credentials: { admin: { type: 'Cookie', token: 'x' } } }, 'credentials.admin.cookie', /is missing/],
      [{ credentials, ...forwarded }, 'authentication.token', /callers send an API key and no token/],
      [{ credentials, ...forwarded, oauth: oauthConfig }, 'credentials', /cannot be combined with oauth/],
      [{ credentials, headers: { Authorization: 'x' } }, 'headers.Authorization', /authentication sets this header/],
      [{ credentials: many }, 'credentials', /at most 20/],
    ];
    for (const [overrides, path, message] of cases) {
      const config = { name: 'R', slug: 'named-refused', tools: [tool('a')], ...overrides };
      const { status, body, text } = await toolhost.rest('POST', '/servers', { body: config });
      assert.equal(status, 400, text);
      const matchingProblem = (body.problems as Json[]).find((problem) => problem.path === path);
      assert.match(String(matchingProblem?.message ?? text), message);
      assert.doesNotMatch(text, /wrong-place/);
    }
  });
});
