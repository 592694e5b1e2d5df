import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { personRequest } from '../support/browser/person-request.ts';
import { signInAgent } from '../support/oauth/signed-in-agent.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import { holdBody } from '../support/toolhost/held-body.ts';
import { createPersonClient } from '../support/toolhost/rest-clients.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { type RecordedRequest, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get', arguments: {} } };
const tool = (name: string, args: Json) => ({ ...call, params: { name, arguments: args } });

type Credential = { headers: Record<string, string>; end(): Promise<unknown> };

for (const engine of engines) {
  describe(`[find B8] a credential that ends during a request, on ${engine}`, async () => {
    const upstream = await startRecordingUpstream();
    const world = await startToolhostOnEngine(engine, { egressPorts: [upstream.port] });
    const toolhost = world.toolhost;
    const owner = await createPersonSession(toolhost, { name: 'Olga' });
    await toolhost.createServer(buildServerAt('called', upstream.url));
    after(() => Promise.all([world.stop(), upstream.close()]));

    const asOwner = createPersonClient(toolhost, owner);
    /** Waits so long that the service checks access again after a slow request body. */
    const waitUntilRecheck = () => world.advanceTime(1000);
    async function newKey(scopes = ['manage', 'call']) {
      const { id, key } = (await asOwner('POST', '/keys', { name: 'one', scopes })).body as { id: string; key: string };
      assert.equal((await toolhost.rest('GET', '/servers', { key })).status, 200);
      const revoke = () => asOwner('DELETE', `/keys/${id}`);
      return { key, headers: { authorization: `Bearer ${key}` }, revoke };
    }

    async function newSession(role: 'owner' | 'editor') {
      const session = await createPersonSession(toolhost, { name: 'Ed', role });
      assert.equal((await personRequest(toolhost, session, 'GET', '/session')).status, 200);
      const headers = { cookie: `toolhost-session=${session}`, origin: toolhost.url, 'sec-fetch-site': 'same-origin' };
      return { path: `/members/usr_${session}`, headers };
    }

    const credentialKinds: { [name: string]: () => Promise<Credential> } = {
      async 'a revoked key'() {
        const { headers, revoke } = await newKey();
        return { headers, end: revoke };
      },
      async 'a session of a removed member'() {
        const { path, headers } = await newSession('editor');
        return { headers, end: () => asOwner('DELETE', path, { revoke_access: true }) };
      },
      async 'a session of a member with a lowered role'() {
        const { path, headers } = await newSession('editor');
        return { headers, end: () => asOwner('PATCH', path, { role: 'viewer' }) };
      },
      async 'a signed-out session'() {
        const { headers } = await newSession('owner');
        const signOut = () => fetch(`${toolhost.url}/logout`, { method: 'POST', headers, redirect: 'manual' });
        return { headers, end: signOut };
      },
      async 'a revoked login at the management server'() {
        const { client, tokens } = await signInAgent(toolhost);
        const headers = { authorization: `Bearer ${tokens.access_token}` };
        assert.equal((await fetch(`${toolhost.url}/api/v1/servers`, { headers })).status, 200);
        return { headers, end: () => client.revoke(tokens.refresh_token) };
      },
    };

    for (const [index, [name, begin]] of Object.entries(credentialKinds).entries()) {
      it(`[sec E1] changes nothing after it ended: ${name}`, async () => {
        const { headers, end } = await begin();
        const config = buildServerAt(`planted-${index}`, upstream.url);
        const slowRequest = await holdBody(`${toolhost.url}/api/v1/servers`, headers, config);
        await end();
        const { status, body } = await slowRequest.sendBody();
        assert.ok(status === 401 || status === 403, `${status} ${JSON.stringify(body)}`);
        assert.equal((await asOwner('GET', `/servers/planted-${index}`)).status, 404);
      });
    }

    it('[sec E1] cannot create a key that would outlive it', async () => {
      const { headers, revoke } = await newKey();
      const body = { name: 'outlives', scopes: ['manage'] };
      const slowRequest = await holdBody(`${toolhost.url}/api/v1/keys`, headers, body);
      await revoke();
      const { status, body: result } = await slowRequest.sendBody();
      assert.equal(status, 401);
      assert.match(String(result.detail), /the API key ended while the request was in progress; nothing was changed/);
      const { body: listed } = await asOwner('GET', '/keys');
      assert.ok(!(listed.keys as Json[]).some((key) => key.name === 'outlives'));
    });

    it('[sec E1] changes nothing through the management server', async () => {
      const { key, headers, revoke } = await newKey();
      // Its endpoint is created by its first request and has a cached authorization for the next one.
      assert.equal((await toolhost.rpc('manage', key, 'tools/list')).status, 200);
      const message = tool('createMcpServer', buildServerAt('planted-by-tool', upstream.url));
      const slowRequest = await holdBody(`${toolhost.url}/mcp/manage`, headers, message);
      await revoke();
      assert.equal((await slowRequest.sendBody()).status, 401);
      assert.equal((await asOwner('GET', '/servers/planted-by-tool')).status, 404);
    });

    it('[sec E1] changes nothing if it ends while an API description is fetched', async () => {
      const { key, revoke } = await newKey();
      upstream.on('GET /openapi.json', () => 'hold');
      upstream.take();
      const input = { url: `${upstream.url}/openapi.json`, mode: 'create', slug: 'planted-import', include: ['*'] };
      const response = toolhost.rest('POST', '/import', { key, body: input });
      const descriptionRequest = await upstream.waitForRequest();
      await revoke();
      const paths = { '/a': { get: { operationId: 'a', responses: {} } } };
      const info = { title: 'A', version: '1' };
      const document = { openapi: '3.1.0', info, servers: [{ url: upstream.url }], paths };
      descriptionRequest.release({ body: document });
      const { status, text } = await response;
      assert.equal(status, 401, text);
    });

    const callers: [name: string, path: string, body: Json][] = [
      ['a hosted server', '/mcp/called', call],
      ['the management server', '/mcp/manage', tool('callTool', { slug: 'called', tool: 'get' })],
      ['the REST API', '/api/v1/servers/called/tools/get/call', {}],
    ];
    for (const [name, path, body] of callers) {
      it(`[sec E1] calls no tool of ${name} if it ends during a slow request body`, async () => {
        const { headers, revoke } = await newKey();
        upstream.take();
        const slowRequest = await holdBody(toolhost.url + path, headers, body);
        await revoke();
        await waitUntilRecheck();
        assert.equal((await slowRequest.sendBody()).status, 401);
        assert.deepEqual(upstream.take(), []);
      });
    }

    type SendCall = (slug: string, key: string) => Promise<Reply>;
    const callHosted: SendCall = (slug, key) => toolhost.rpc(slug, key, 'tools/call', { name: 'get', arguments: {} });

    /** Lets a call go on that waits for a token. */
    async function finishCall(response: Promise<Reply>, tokenRequest: RecordedRequest, access_token: string) {
      await waitUntilRecheck();
      tokenRequest.release({ body: { access_token, token_type: 'Bearer', expires_in: 3600 } });
      return { reply: await response, sent: upstream.take().filter(({ method }) => method === 'GET') };
    }

    /** Creates a server and calls it. Resolves when the call waits for a token that the upstream holds back. */
    async function startWaitingCall(slug: string, key: string, sendCall = callHosted) {
      upstream.on('POST /token', () => 'hold');
      upstream.on('*', () => ({}));
      const client = { token_url: `${upstream.url}/token`, client_id: 'c', client_secret: '{{CLIENT}}' };
      const authentication = { type: 'ClientCredentials', ...client };
      await toolhost.createServer({ ...buildServerAt(slug, upstream.url), authentication });
      await toolhost.rest('PUT', `/servers/${slug}/secrets/CLIENT`, { body: { value: 'secret' } });
      upstream.take();
      const response = sendCall(slug, key);
      const tokenRequest = await upstream.waitForRequest();
      return () => finishCall(response, tokenRequest, 'token');
    }

    /** Makes a call that the upstream rejects with 401. Resolves when the call waits for another token. */
    async function startRejectedCall(slug: string, key: string) {
      const finishFirst = await startWaitingCall(slug, key);
      assert.equal((await finishFirst()).reply.status, 200);
      const secondTokenRequest = Promise.withResolvers<RecordedRequest>();
      upstream.on('POST /token', (request) => {
        secondTokenRequest.resolve(request);
        return 'hold';
      });
      // A token that was just issued is not discarded because one request was rejected.
      await world.advanceTime(60_000);
      upstream.on('*', ({ headers }) => ({ status: headers.authorization === 'Bearer token' ? 401 : 200 }));
      const response = callHosted(slug, key);
      const tokenRequest = await secondTokenRequest.promise;
      upstream.take();
      return () => finishCall(response, tokenRequest, 'another');
    }

    const startTestCall = (slug: string, key: string) =>
      startWaitingCall(slug, key, () => toolhost.rest('POST', `/servers/${slug}/tools/get/call`, { key, body: {} }));
    for (const [index, [title, start, end, status]] of (
      [
        ['does not retry a call that its upstream rejected if the key is revoked', startRejectedCall, 'revoke', 401],
        ['does not retry a call that its upstream rejected if the server is deleted', startRejectedCall, 'delete', 404],
        ['sends nothing for a call of a hosted server if the key is revoked', startWaitingCall, 'revoke', 401],
        ['sends nothing for a call of a hosted server if the server is deleted', startWaitingCall, 'delete', 404],
        ['sends nothing for a test call if the key is revoked', startTestCall, 'revoke', 401],
        ['sends nothing for a test call if the server is deleted', startTestCall, 'delete', 404],
      ] as const
    ).entries()) {
      it(`[sec E1] ${title} while the call waits for a token`, async () => {
        const { key, revoke } = await newKey();
        const finish = await start(`waits-${index}`, key);
        const ended = end === 'revoke' ? await revoke() : await asOwner('DELETE', `/servers/waits-${index}`);
        assert.equal(ended.status, 200);
        const { reply, sent } = await finish();
        assert.equal(reply.status, status, reply.text);
        assert.deepEqual(sent, []);
      });
    }

    it('[sec E1] refuses a waiting call if its server changed, and makes the next call with the new configuration', async () => {
      const { key } = await newKey();
      const finish = await startWaitingCall('moves', key);
      const tools = [buildToolAt(`${upstream.url}/moved`)];
      assert.equal((await asOwner('PATCH', '/servers/moves', { tools })).status, 200);
      const { reply, sent } = await finish();
      assert.deepEqual([reply.status, reply.headers.get('retry-after'), sent], [503, '1', []], reply.text);
      assert.match(
        reply.text,
        /The server was changed while the call waited\. Nothing was sent; call the tool again\./,
      );
      assert.equal((await callHosted('moves', key)).status, 200);
      const urls = upstream.take().flatMap(({ method, url }) => (method === 'GET' ? [url] : []));
      assert.deepEqual(urls, ['/moved']);
    });

    it('[sec E1] does not call a tool that was disabled while the call waited', async () => {
      const { key } = await newKey();
      const finish = await startWaitingCall('disables', key);
      const tools = [{ ...buildToolAt(`${upstream.url}/thing`), disabled: true }];
      assert.equal((await asOwner('PATCH', '/servers/disables', { tools })).status, 200);
      const { reply, sent } = await finish();
      assert.deepEqual([reply.status, sent], [503, []]);
      assert.match((await callHosted('disables', key)).text, /there is no tool/);
    });

    it('[sec E1] makes no further calls of a batch', async () => {
      const { headers, revoke } = await newKey();
      upstream.on('GET /thing', () => 'hold');
      upstream.take();
      const batch = [1, 2, 3].map((number) => ({ ...call, id: number }));
      const response = toolhost.post('called', batch, { headers });
      const first = await upstream.waitForRequest();
      await revoke();
      first.release();
      const responses = (await response).body as unknown as { result?: Json; error?: Json }[];
      upstream.on('GET /thing', () => ({}));
      const errorCodes = responses.map(({ error }) => error?.code);
      assert.deepEqual(errorCodes, [undefined, 401, 401]);
      assert.equal(upstream.take().length, 1);
    });
  });
}
