import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, describe, it } from 'node:test';
import { clientsWithStrictNames, knownClients } from '@toolhost/mcp-clients/clients';
import { getRpcResult } from '../support/mcp.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { getOutput } from '../support/oauth/management-agent.ts';
import { pluck } from '../support/pluck.ts';
import { type Json, startToolhost, type ToolCallResult } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

type Check = { id: string; title: string; status: 'ok' | 'warning' | 'problem'; detail: string; clients: string[] };

const allClients = knownClients.map(({ name }) => name);
const commonChecks = ['address', 'challenge', 'sign_in', 'handshake', 'tool_list', 'tool_count', 'tool_names'];
const lastChecks = ['tool_hints', 'token_estimate', 'secrets'];
const loginChecks = ['resource_metadata', 'server_metadata', 'registration', 'provider'];

/** Groups the IDs of the checks by status. */
function byStatus(checks: readonly Check[]): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(Object.groupBy(checks, ({ status }) => status)).map(([s, list]) => [s, list.map(({ id }) => id)]),
  );
}

describe('connection check', async () => {
  const world = await startLoginWorld();
  const toolhost = world.toolhost;
  after(() => world.stop());

  const getChecks = async (slug: string): Promise<Check[]> => {
    const { status, body, text } = await toolhost.rest('POST', `/servers/${slug}/connection-check`);
    assert.equal(status, 200, text);
    return body.checks as Check[];
  };
  const getCheck = async (slug: string, id: string): Promise<Check> =>
    (await getChecks(slug)).find((check) => check.id === id) ?? assert.fail(`no check ${id}`);
  let servers = 0;
  const serve = async (more: Json = {}) => {
    const slug = more.slug ?? `checked-${++servers}`;
    await toolhost.createServer({ ...buildServerAt(String(slug), world.upstream.url), ...more });
    return String(slug);
  };
  const tools = (names: readonly string[]) => names.map((name) => buildToolAt(`${world.upstream.url}/thing`, { name }));

  it('reports no problem for a server with a login, and warns only about what it cannot verify', async () => {
    const slug = await world.createServer();
    const checks = await getChecks(slug);
    assert.deepEqual(byStatus(checks), {
      warning: ['address', 'provider'],
      ok: [...commonChecks.slice(1, 3), ...loginChecks.slice(0, 3), ...commonChecks.slice(3), ...lastChecks],
    });
    const provider = checks.find(({ id }) => id === 'provider');
    assert.match(provider?.detail ?? '', new RegExp(`${toolhost.url}/mcp/${slug}/callback$`));
    for (const { title, detail, clients } of checks) {
      assert.ok(title && detail && clients.length > 0);
      for (const name of clients) assert.ok(allClients.includes(name), name);
    }
  });

  it('calls neither the upstream nor the provider, and leaves no call record', async () => {
    const slug = await world.createServer();
    world.upstream.take();
    await getChecks(slug);
    assert.deepEqual(world.upstream.take(), []);
    const { body } = await toolhost.rest('GET', `/calls?slug=${slug}`);
    assert.deepEqual(body.calls, []);
  });

  it('reports the provider as ok after a user has logged in', async () => {
    const slug = await world.createServer();
    await world.getTokens(await world.registerClient(slug));
    assert.equal((await getCheck(slug, 'provider')).status, 'ok');
  });

  it('lists the clients that cannot present a credential that must be copied', async () => {
    const slug = await serve({ authentication: { type: 'Bearer' } });
    const checks = await getChecks(slug);
    assert.deepEqual(pluck(checks, 'id'), [...commonChecks, ...lastChecks]);
    assert.deepEqual(byStatus(checks).warning, ['address', 'sign_in']);
    const { clients, detail } = await getCheck(slug, 'sign_in');
    assert.deepEqual(clients, ['Claude', 'ChatGPT']);
    assert.match(detail, /an upstream token/);
    const stored = await serve({ authentication: { type: 'Bearer', token: 'a-stored-token' } });
    assert.match((await getCheck(stored, 'sign_in')).detail, /an API key of this workspace/);
  });

  it('checks discovery, challenge, and registration of a server that people log in to without a provider', async () => {
    const stored = await serve({ authentication: { type: 'Bearer', token: 'a-stored-token' }, login: {} });
    const own = await serve({
      authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
      login: { fields: [{ name: 'API_TOKEN', label: 'Personal token' }] },
    });
    const ids = [...commonChecks.slice(0, 3), ...loginChecks.slice(0, 3), ...commonChecks.slice(3), ...lastChecks];
    for (const slug of [stored, own]) {
      const checks = await getChecks(slug);
      assert.deepEqual(pluck(checks, 'id'), ids);
      assert.deepEqual(byStatus(checks).warning, ['address'], JSON.stringify(checks));
      assert.equal(byStatus(checks).problem, undefined, JSON.stringify(checks));
    }
  });

  it('names the clients that the server does not let in', async () => {
    const slug = await serve({
      authentication: { type: 'Bearer', token: 'a-stored-token' },
      login: { clients: ['https://claude.ai/api/mcp/auth_callback'] },
    });
    const { status, clients, detail } = await getCheck(slug, 'registration');
    assert.deepEqual([status, clients.includes('Cursor'), clients.includes('Claude')], ['warning', true, false]);
    assert.match(detail, /^login\.clients does not list the redirect URIs of .*Cursor/);
  });

  it('compares the number of tools with the limits of clients', async () => {
    for (const [count, status, clients] of [
      [40, 'ok', ['Cursor', 'VS Code', 'Windsurf']],
      [41, 'warning', ['Cursor']],
      [129, 'warning', ['Cursor', 'VS Code', 'Windsurf']],
      [0, 'warning', allClients],
    ] as const) {
      const slug = await serve({ tools: tools(Array.from({ length: count }, (_, n) => `t${n}`)) });
      const found = await getCheck(slug, 'tool_count');
      assert.deepEqual([found.status, found.clients], [status, clients]);
    }
  });

  it('measures tool names including the prefix that clients add', async () => {
    const checkToolNames = async (slug: string, names: string[]) =>
      getCheck(await serve({ slug, tools: tools(names) }), 'tool_names');
    assert.equal((await checkToolNames('short-one', ['a'.repeat(48)])).status, 'ok');
    const { status, clients, detail } = await checkToolNames('short-two', ['a'.repeat(49), 'fine']);
    assert.deepEqual([status, clients], ['warning', ['Claude Code']]);
    assert.match(detail, /^Claude Code allows 64 characters .*: a{49}\.$/);
    const long = await checkToolNames('short-three', ['a'.repeat(50)]);
    assert.deepEqual(long.clients, ['Claude Code', 'Cursor', 'LibreChat']);
    const dotted = await checkToolNames('dotted', ['things.get', 'a.b', 'c.d', 'e.f', 'plain']);
    assert.deepEqual([dotted.status, dotted.clients], ['warning', clientsWithStrictNames]);
    assert.match(dotted.detail, /things\.get, a\.b, c\.d and 1 more/);
  });

  it('estimates the token cost of the tool list', async () => {
    const described = Array.from({ length: 12 }, (_, n) =>
      buildToolAt(`${world.upstream.url}/thing`, { name: `t${n}`, description: 'd'.repeat(3800) }),
    );
    const { status, detail } = await getCheck(await serve({ tools: described }), 'token_estimate');
    assert.equal(status, 'warning');
    assert.match(detail, /^About 1[12]\d{3} tokens in every conversation/);
  });

  it('reports secrets without a value and secrets that may not be sent to the hosts that tools now call', async () => {
    const slug = await serve({
      authentication: { type: 'Bearer', token: '{{TOKEN}}' },
      tools: [buildToolAt(`${world.upstream.url}/thing`, { headers: { 'X-Key': '{{KEY}}' } })],
    });
    const secrets = () => getCheck(slug, 'secrets');
    assert.match((await secrets()).detail, /until these secrets have a value: TOKEN, KEY\.$/);
    for (const name of ['TOKEN', 'KEY'])
      await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value: 'a-secret-value' } });
    assert.equal((await secrets()).status, 'ok');
    const moved = { tools: [buildToolAt('https://api.example.com/thing')] };
    await toolhost.rest('PATCH', `/servers/${slug}`, { body: moved });
    const detail = 'Set these secrets again, because the tools now call other hosts: KEY, TOKEN.';
    assert.partialDeepStrictEqual(await secrets(), { status: 'problem', detail });
    assert.doesNotMatch(JSON.stringify(await getChecks(slug)), /a-secret-value/);
  });

  it('checks a view at its own address with its own tools [agent 2]', async () => {
    const names = ['read.it', 'write'];
    const views = { desk: { title: 'The desk', tools: ['write'] } };
    const slug = await world.createServer({ tools: tools(names), views });
    const check = (view?: string) =>
      toolhost.rest('POST', `/servers/${slug}/connection-check`, { body: { ...(view !== undefined && { view }) } });
    const checkView = async (view?: string) => {
      const { status, body, text } = await check(view);
      assert.equal(status, 200, text);
      return new Map((body.checks as Check[]).map((found) => [found.id, found]));
    };
    const [serverChecks, viewChecks] = [await checkView(), await checkView('desk')];
    assert.match(serverChecks.get('address')?.detail ?? '', new RegExp(`/mcp/${slug} `));
    assert.match(viewChecks.get('address')?.detail ?? '', new RegExp(`/mcp/${slug}/desk `));
    for (const id of ['challenge', 'resource_metadata', 'server_metadata', 'registration', 'handshake', 'tool_list'])
      assert.equal(viewChecks.get(id)?.status, 'ok', `${id}: ${viewChecks.get(id)?.detail}`);
    assert.deepEqual([serverChecks.get('tool_names')?.status, viewChecks.get('tool_names')?.status], ['warning', 'ok']);
    const unknown = await check('desks');
    assert.match(`${unknown.status} ${unknown.text}`, /^404 .*no view \\"desks\\".*desk/);
    assert.equal((await check('constructor')).status, 404);
  });

  it('is a tool of the management server for everyone who may read the server', async () => {
    const slug = await serve();
    const key = await toolhost.createKey({ scopes: ['manage:read'] });
    const call = { name: 'checkConnection', arguments: { slug } };
    const result = getRpcResult(await toolhost.rpc('manage', key, 'tools/call', call));
    assert.deepEqual(getOutput(result as ToolCallResult), { checks: await getChecks(slug) });
    assert.equal((await toolhost.rest('POST', '/servers/nowhere/connection-check')).status, 404);
  });
});

for (const hosts of ['', '*.tools.example.com']) {
  describe(`connection check of a public service with ${hosts || 'no'} hosts for servers`, async () => {
    const port = await findFreePort();
    const env = {
      BASE_URL: 'https://tools.example.com',
      HOST: '127.0.0.1',
      PORT: String(port),
      MASTER_KEY: randomBytes(32).toString('base64'),
      OIDC_ISSUER: 'https://id.example.com',
      OIDC_CLIENT_ID: 'toolhost',
      OIDC_CLIENT_SECRET: 'secret',
      ...(hosts && { SERVER_HOSTS: hosts }),
    };
    const toolhost = await startToolhost({ env });
    after(() => toolhost.stop());

    it('[ship 6] reports that clients on the internet reach it and find the login, with a warning for Claude if the path is /mcp', async () => {
      const authorization = `Bearer ${await toolhost.createKey()}`;
      const post = async (path: string, body: object) => {
        const headers = { host: 'tools.example.com', authorization, 'content-type': 'application/json' };
        const options = { method: 'POST', headers };
        const reply = await sendRawRequest(`http://127.0.0.1:${port}/api/v1${path}`, options, JSON.stringify(body));
        assert.ok(reply.status < 300, reply.text);
        return JSON.parse(reply.text) as Json;
      };
      const oauth = {
        ...{ authorization_url: 'https://login.example.com/authorize', token_url: 'https://login.example.com/token' },
        ...{ client_id: 'client', client_secret: 'the-client-secret' },
      };
      const config = { oauth, authentication: { type: 'Bearer' } };
      await post('/servers', buildServerAt('on-the-web', 'https://api.example.com', config));
      const { checks } = (await post('/servers/on-the-web/connection-check', {})) as { checks: Check[] };
      assert.equal(byStatus(checks).problem, undefined);
      const address = checks.find(({ id }) => id === 'address');
      if (hosts) {
        assert.deepEqual(byStatus(checks).warning, ['provider']);
        assert.equal(address?.detail, 'https://tools.example.com/mcp/on-the-web uses HTTPS.');
      } else {
        assert.deepEqual(byStatus(checks).warning, ['address', 'provider']);
        assert.deepEqual(address?.clients, ['Claude']);
      }
    });
  });
}
