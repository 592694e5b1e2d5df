import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import * as v2 from '@modelcontextprotocol/client';
import { getNextUrl } from '../support/browser/browser.ts';
import { clientInfo } from '../support/mcp-clients.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { expectTokens, type OAuthClient } from '../support/oauth/oauth-client.ts';
import { createLoginAgent } from '../support/oauth/oauth-clients.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';

const minuteMs = 60_000;

function refuse(challenge: string | undefined, body: Json = { why: 'not allowed' }): CannedResponse {
  return { status: 403, headers: challenge === undefined ? {} : { 'www-authenticate': challenge }, body };
}

const missingAdmin = refuse('Bearer realm="api", error="insufficient_scope", scope="admin"');

describe('step-up of a login', async () => {
  const world = await startLoginWorld();
  const { slug, client } = await world.createClient();
  const metadataUrl = `${world.toolhost.url}/.well-known/oauth-protected-resource/mcp/${slug}`;
  after(() => world.stop());
  beforeEach(() => {
    world.provider.onToken();
    world.upstream.on('*', () => missingAdmin);
  });

  const call = (token: string, at = slug): Promise<Reply> =>
    world.toolhost.rpc(at, token, 'tools/call', { name: 'run', arguments: {} });
  const getToken = async (scope?: string, at: OAuthClient = client) => {
    const { code, verifier } = await world.logIn(at, undefined, { ...(scope !== undefined && { scope }) });
    return expectTokens(await at.redeem(code, verifier)).access_token;
  };
  const getChallenge = ({ headers }: Reply) => headers.get('www-authenticate') ?? '';
  const takeProviderScope = () => world.provider.takeLoginRequests().at(-1)?.get('scope');
  /** Asserts that a call gets the response of the API as an ordinary result. */
  const assertResult = (reply: Reply) => {
    assert.equal(reply.status, 200, reply.text);
    assert.match(reply.text, /HTTP 403/);
  };

  it('answers a call with 403 and the union of granted and missing scopes when the API names a missing scope', async () => {
    const reply = await call(await getToken('write'));
    assert.equal(reply.status, 403, reply.text);
    assert.match(getChallenge(reply), /^Bearer .*error="insufficient_scope"/);
    assert.ok(getChallenge(reply).includes(`resource_metadata="${metadataUrl}"`), getChallenge(reply));
    assert.ok(getChallenge(reply).includes('scope="write admin"'), getChallenge(reply));
    assert.match(getChallenge(reply), /error_description="[^"]*permissions[^"]*admin/);
  });

  it('asks the provider for the missing scope in the next login, and for no scope that neither the server nor its API named', async () => {
    await call(await getToken());
    world.provider.takeLoginRequests();
    const token = await getToken('read admin owner');
    assert.equal(takeProviderScope(), 'read admin');
    world.upstream.on('*', () => ({ body: {} }));
    assert.equal((await call(token)).status, 200);
    await getToken();
    assert.equal(takeProviderScope(), 'read write');
  });

  it('ignores the missing scope of another server, and one that was named more than a day ago', async () => {
    await call(await getToken());
    const other = await world.createClient();
    world.provider.takeLoginRequests();
    await getToken('read admin', other.client);
    assert.equal(takeProviderScope(), 'read');
    world.advanceClock(25 * 60 * minuteMs);
    await getToken('read admin');
    assert.equal(takeProviderScope(), 'read');
  });

  it('challenges a login at most once per minute, and passes the response on in the meantime', async () => {
    const token = await getToken();
    const replies = await Promise.all([call(token), call(token), call(token)]);
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 200, 403]);
    assertResult(await call(token));
    assert.equal((await call(await getToken())).status, 403);
    world.advanceClock(minuteMs);
    assert.equal((await call(token)).status, 403);
  });

  it('passes on a 403 that another login would not change', async () => {
    const quoted = 'Bearer error="insufficient_scope", scope="';
    const refusals = [
      refuse(undefined),
      refuse('Bearer error="insufficient_scope"'),
      refuse('Bearer error="invalid_token", scope="admin"'),
      refuse('Basic realm="api"', { error: 'insufficient_scope' }),
      refuse(`${quoted}a\\"b"`),
      refuse(`${quoted}${'x'.repeat(1001)}"`),
      refuse(`${quoted}read write"`),
      refuse(undefined, { error: 'insufficient_scope', scope: ['admin'] }),
      refuse(undefined, { error: 'insufficient_scope', scope: 'adm\u00efn' }),
    ];
    const token = await getToken();
    for (const refusal of refusals) {
      world.upstream.on('*', () => refusal);
      assertResult(await call(token));
    }
  });

  it('reads the missing scope from the body when WWW-Authenticate does not name it', async () => {
    world.upstream.on('*', () => refuse('Bearer', { error: 'insufficient_scope', scope: 'admin files.read' }));
    assert.ok(getChallenge(await call(await getToken())).includes('scope="read write admin files.read"'));
  });

  it('never names a credential that the API repeats as a scope', async () => {
    world.upstream.on('*', ({ headers }) =>
      refuse(`Bearer error="insufficient_scope", scope="${headers.authorization?.slice('Bearer '.length)}"`),
    );
    const reply = await call(await getToken());
    assertResult(reply);
    assert.doesNotMatch(getChallenge(reply) + reply.text, /provider-access/);
  });

  it('challenges again when the provider granted less than the person agreed to', async () => {
    world.provider.onToken((form) => {
      const response = world.provider.createTokenResponse(form);
      return { ...response, body: { ...(response.body as Json), scope: 'read' } };
    });
    world.upstream.on('*', () => refuse('Bearer error="insufficient_scope", scope="write"'));
    assert.ok(getChallenge(await call(await getToken())).includes('scope="read write"'));
  });

  it('passes on a 403 to a request that carried no token of the login', async () => {
    const tool = { name: 'run', description: 'Runs.', method: 'GET', url: `${world.upstream.url}/things` };
    const at = await world.createServer({ tools: [{ ...tool, credential: 'none' }] });
    assertResult(await call(await getToken(undefined, await world.registerClient(at)), at));
  });

  it('records the call as refused by the API', async () => {
    const at = await world.createServer();
    await call(await getToken(undefined, await world.registerClient(at)), at);
    const { calls } = (await world.toolhost.rest('GET', `/calls?slug=${at}`)).body;
    const [{ outcome, upstream_status, reason }] = calls as [Json];
    assert.deepEqual([outcome, upstream_status], ['upstream_status', 403]);
    assert.match(String(reason), /^HTTP 403 Forbidden/);
  });

  it('challenges an agent that holds the token of the provider itself (passthrough)', async () => {
    const at = await world.createServer({}, { token_mode: 'passthrough' });
    const passthroughClient = await world.registerClient(at);
    const token = await getToken(undefined, passthroughClient);
    const reply = await call(token, at);
    assert.equal(reply.status, 403, reply.text);
    assert.ok(getChallenge(reply).includes('scope="read write admin"'), getChallenge(reply));
    assertResult(await call(token, at));
    world.provider.takeLoginRequests();
    await getToken('admin', passthroughClient);
    assert.equal(takeProviderScope(), 'read write admin');
    assertResult(await call('a-token-that-no-login-issued', at));
  });

  it('lets the client of the TypeScript SDK log in again and repeat the call', async () => {
    const at = await world.createServer();
    const url = new URL(world.issuer(at));
    const agent = createLoginAgent({
      completeLogin: async (start) =>
        getNextUrl(await world.returnFromProvider({ url: new URL(start), verifier: '', state: '' })),
    });
    const open = () => new v2.StreamableHTTPClientTransport(url, { authProvider: agent.provider });
    const first = open();
    await assert.rejects(new v2.Client(clientInfo).connect(first), v2.UnauthorizedError);
    await first.finishAuth(agent.getRedirectParams());
    const sdkClient = new v2.Client(clientInfo);
    const transport = open();
    await sdkClient.connect(transport);
    world.provider.takeLoginRequests();
    await assert.rejects(sdkClient.callTool({ name: 'run', arguments: {} }), v2.UnauthorizedError);
    assert.equal(takeProviderScope(), 'read write admin');
    await transport.finishAuth(agent.getRedirectParams());
    world.upstream.on('*', () => ({ body: { done: true } }));
    const result = await sdkClient.callTool({ name: 'run', arguments: {} });
    assert.match(JSON.stringify(result.content), /done/);
    await sdkClient.close();
  });
});
