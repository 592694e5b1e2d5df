import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { personRequest } from '../support/browser/person-request.ts';
import { signInAgent } from '../support/oauth/signed-in-agent.ts';
import { type EngineToolhost, startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import { holdBody } from '../support/toolhost/held-body.ts';
import type { Json, Reply, TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import {
  type RecordedRequest,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get', arguments: {} } };
const tool = (name: string, args: Json) => ({ ...call, params: { name, arguments: args } });

/** A kind of credential, with its headers and a function that ends it. */
type CredentialKind = { name: string; begin(): Promise<{ headers: Record<string, string>; end(): Promise<unknown> }> };

for (const engine of engines) {
  describe(`[find B8] a credential that ends during a request, on ${engine}`, () => {
    let upstream: RecordingUpstream;
    let world: EngineToolhost;
    let toolhost: TestToolhost;
    let owner: string;
    before(async () => {
      upstream = await startRecordingUpstream();
      world = await startToolhostOnEngine(engine, { egressPorts: [upstream.port] });
      toolhost = world.toolhost;
      owner = await createPersonSession(toolhost, { name: 'Olga' });
      await toolhost.createServer(buildServerAt('called', upstream.url));
    });
    after(() => Promise.all([world?.stop(), upstream.close()]));

    const asOwner = (method: string, path: string, body?: Json) => personRequest(toolhost, owner, method, path, body);
    /** Waits so long that the service checks access again after a slow request body. */
    const waitUntilRecheck = () => world.advanceTime(1000);
    async function newKey(
      scopes = ['manage', 'call'],
    ): Promise<{ headers: Record<string, string>; key: string; id: string }> {
      const { body } = await asOwner('POST', '/keys', { name: 'one', scopes });
      const { id, key } = body as { id: string; key: string };
      assert.equal((await toolhost.rest('GET', '/servers', { key })).status, 200);
      return { id, key, headers: { authorization: `Bearer ${key}` } };
    }

    async function newSession(role: 'owner' | 'editor') {
      const session = await createPersonSession(toolhost, { name: 'Ed', role });
      assert.equal((await personRequest(toolhost, session, 'GET', '/session')).status, 200);
      const headers = { cookie: `toolhost-session=${session}`, origin: toolhost.url, 'sec-fetch-site': 'same-origin' };
      return { id: `usr_${session}`, headers };
    }

    const credentialKinds: CredentialKind[] = [
      {
        name: 'a revoked key',
        async begin() {
          const { id, headers } = await newKey();
          return { headers, end: () => asOwner('DELETE', `/keys/${id}`) };
        },
      },
      {
        name: 'a session of a removed member',
        async begin() {
          const { id, headers } = await newSession('editor');
          return { headers, end: () => asOwner('DELETE', `/members/${id}`, { revoke_access: true }) };
        },
      },
      {
        name: 'a session of a member with a lowered role',
        async begin() {
          const { id, headers } = await newSession('editor');
          return { headers, end: () => asOwner('PATCH', `/members/${id}`, { role: 'viewer' }) };
        },
      },
      {
        name: 'a signed-out session',
        async begin() {
          const { headers } = await newSession('owner');
          const signOut = () => fetch(`${toolhost.url}/logout`, { method: 'POST', headers, redirect: 'manual' });
          return { headers, end: signOut };
        },
      },
      {
        name: 'a revoked login at the management server',
        async begin() {
          const { client, tokens } = await signInAgent(toolhost);
          const headers = { authorization: `Bearer ${tokens.access_token}` };
          assert.equal((await fetch(`${toolhost.url}/api/v1/servers`, { headers })).status, 200);
          return { headers, end: () => client.revoke(tokens.refresh_token) };
        },
      },
    ];

    for (const { name, begin } of credentialKinds) {
      it(`[sec E1] changes nothing after it ended: ${name}`, async () => {
        const { headers, end } = await begin();
        const slug = `planted-${credentialKinds.findIndex((kind) => kind.name === name)}`;
        const slowRequest = await holdBody(
          `${toolhost.url}/api/v1/servers`,
          headers,
          buildServerAt(slug, upstream.url),
        );
        await end();
        const { status, body } = await slowRequest.sendBody();
        assert.ok(status === 401 || status === 403, `${status} ${JSON.stringify(body)}`);
        assert.equal((await asOwner('GET', `/servers/${slug}`)).status, 404);
      });
    }

    it('[sec E1] cannot create a key that would outlive it', async () => {
      const { id, headers } = await newKey();
      const body = { name: 'outlives', scopes: ['manage'] };
      const slowRequest = await holdBody(`${toolhost.url}/api/v1/keys`, headers, body);
      await asOwner('DELETE', `/keys/${id}`);
      const { status, body: result } = await slowRequest.sendBody();
      assert.equal(status, 401);
      assert.match(String(result.detail), /the API key ended while the request was in progress; nothing was changed/);
      const { body: listed } = await asOwner('GET', '/keys');
      assert.ok(!(listed.keys as Json[]).some((key) => key.name === 'outlives'));
    });

    it('[sec E1] changes nothing through the management server', async () => {
      const { id, key, headers } = await newKey();
      // Its endpoint is created by its first request and has a cached authorization for the next one.
      assert.equal((await toolhost.rpc('manage', key, 'tools/list')).status, 200);
      const message = tool('createMcpServer', buildServerAt('planted-by-tool', upstream.url));
      const slowRequest = await holdBody(`${toolhost.url}/mcp/manage`, headers, message);
      await asOwner('DELETE', `/keys/${id}`);
      assert.equal((await slowRequest.sendBody()).status, 401);
      assert.equal((await asOwner('GET', '/servers/planted-by-tool')).status, 404);
    });

    it('[sec E1] changes nothing if it ends while an API description is fetched', async () => {
      const { id, key } = await newKey();
      upstream.on('GET /openapi.json', () => 'hold');
      upstream.take();
      const input = { url: `${upstream.url}/openapi.json`, mode: 'create', slug: 'planted-import', include: ['*'] };
      const response = toolhost.rest('POST', '/import', { key, body: input });
      const descriptionRequest = await upstream.waitForRequest();
      await asOwner('DELETE', `/keys/${id}`);
      const paths = { '/a': { get: { operationId: 'a', responses: {} } } };
      const document = {
        openapi: '3.1.0',
        info: { title: 'A', version: '1' },
        servers: [{ url: upstream.url }],
        paths,
      };
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
        const { id, headers } = await newKey();
        upstream.take();
        const slowRequest = await holdBody(toolhost.url + path, headers, body);
        await asOwner('DELETE', `/keys/${id}`);
        await waitUntilRecheck();
        const { status } = await slowRequest.sendBody();
        assert.equal(status, 401);
        assert.deepEqual(upstream.take(), []);
      });
    }

    /**
     * Creates a server whose first call requests a token that the upstream holds back. Resolves when the call waits for
     * it.
     */
    async function startWaitingCall(slug: string, sendCall: () => Promise<Reply>) {
      upstream.on('POST /token', () => 'hold');
      upstream.on('*', () => ({}));
      const authentication = {
        type: 'ClientCredentials',
        token_url: `${upstream.url}/token`,
        client_id: 'c',
        client_secret: '{{CLIENT}}',
      };
      await toolhost.createServer({ ...buildServerAt(slug, upstream.url), authentication });
      await toolhost.rest('PUT', `/servers/${slug}/secrets/CLIENT`, { body: { value: 'secret' } });
      upstream.take();
      const response = sendCall();
      const token = await upstream.waitForRequest();
      return {
        async finish() {
          await waitUntilRecheck();
          token.release({ body: { access_token: 'token', token_type: 'Bearer', expires_in: 3600 } });
          return { reply: await response, sent: upstream.take().filter(({ method }) => method === 'GET') };
        },
      };
    }

    /**
     * Makes a call that the upstream rejects with 401, so that it requests another token. Resolves when the call waits
     * for it.
     */
    async function startRejectedCall(slug: string, sendCall: () => Promise<Reply>) {
      const before = await startWaitingCall(slug, sendCall);
      assert.equal((await before.finish()).reply.status, 200);
      const secondTokenRequest = Promise.withResolvers<RecordedRequest>();
      upstream.on('POST /token', (request) => {
        secondTokenRequest.resolve(request);
        return 'hold';
      });
      // A token that was just issued is not discarded because one request was rejected.
      await world.advanceTime(60_000);
      upstream.on('*', ({ headers }) => ({ status: headers.authorization === 'Bearer token' ? 401 : 200 }));
      const response = sendCall();
      const token = await secondTokenRequest.promise;
      upstream.take();
      return {
        async finish() {
          await waitUntilRecheck();
          token.release({ body: { access_token: 'another', token_type: 'Bearer', expires_in: 3600 } });
          return { reply: await response, sent: upstream.take().filter(({ method }) => method === 'GET') };
        },
      };
    }

    const waysToEnd: [name: string, end: (slug: string, id: string) => Promise<unknown>, status: number][] = [
      ['key is revoked', (_slug, id) => asOwner('DELETE', `/keys/${id}`), 401],
      ['server is deleted', (slug) => asOwner('DELETE', `/servers/${slug}`), 404],
    ];
    for (const [index, [name, end, status]] of waysToEnd.entries()) {
      it(`[sec E1] does not retry a call that its upstream rejected if the ${name} in the meantime`, async () => {
        const { id, key } = await newKey();
        const slug = `refused-${index}`;
        const call = await startRejectedCall(slug, () =>
          toolhost.rpc(slug, key, 'tools/call', { name: 'get', arguments: {} }),
        );
        await end(slug, id);
        const { reply, sent } = await call.finish();
        assert.equal(reply.status, status, reply.text);
        assert.deepEqual(sent, []);
      });
    }

    const waitingCalls: [name: string, call: (slug: string, key: string) => Promise<Reply>][] = [
      ['a hosted server', (slug, key) => toolhost.rpc(slug, key, 'tools/call', { name: 'get', arguments: {} })],
      ['a test call', (slug, key) => toolhost.rest('POST', `/servers/${slug}/tools/get/call`, { key, body: {} })],
    ];
    for (const [index, [name, send]] of waitingCalls.entries()) {
      it(`[sec E1] sends nothing for a call of ${name} if the key is revoked while the call waits for a token`, async () => {
        const { id, key } = await newKey();
        const call = await startWaitingCall(`waits-${index}`, () => send(`waits-${index}`, key));
        await asOwner('DELETE', `/keys/${id}`);
        const { reply, sent } = await call.finish();
        assert.equal(reply.status, 401, reply.text);
        assert.deepEqual(sent, []);
      });

      it(`[sec E1] sends nothing for a call of ${name} if the server is deleted while the call waits for a token`, async () => {
        const { key } = await newKey();
        const call = await startWaitingCall(`deleted-${index}`, () => send(`deleted-${index}`, key));
        assert.equal((await asOwner('DELETE', `/servers/deleted-${index}`)).status, 200);
        const { reply, sent } = await call.finish();
        assert.equal(reply.status, 404, reply.text);
        assert.deepEqual(sent, []);
      });
    }

    it('[sec E1] refuses a waiting call if its server changed, and makes the next call with the new configuration', async () => {
      const { key } = await newKey();
      const send = () => toolhost.rpc('moves', key, 'tools/call', { name: 'get', arguments: {} });
      const call = await startWaitingCall('moves', send);
      const tools = [buildToolAt(`${upstream.url}/moved`)];
      assert.equal((await asOwner('PATCH', '/servers/moves', { tools })).status, 200);
      const { reply, sent } = await call.finish();
      assert.deepEqual([reply.status, reply.headers.get('retry-after'), sent], [503, '1', []], reply.text);
      assert.match(
        reply.text,
        /The server was changed while the call waited\. Nothing was sent; call the tool again\./,
      );
      assert.equal((await send()).status, 200);
      assert.deepEqual(
        upstream.take().flatMap(({ method, url }) => (method === 'GET' ? [url] : [])),
        ['/moved'],
      );
    });

    it('[sec E1] does not call a tool that was disabled while the call waited', async () => {
      const { key } = await newKey();
      const send = () => toolhost.rpc('disables', key, 'tools/call', { name: 'get', arguments: {} });
      const call = await startWaitingCall('disables', send);
      const tools = [{ ...buildToolAt(`${upstream.url}/thing`), disabled: true }];
      assert.equal((await asOwner('PATCH', '/servers/disables', { tools })).status, 200);
      const { reply, sent } = await call.finish();
      assert.deepEqual([reply.status, sent], [503, []]);
      assert.match((await send()).text, /there is no tool/);
    });

    it('[sec E1] makes no further calls of a batch', async () => {
      const { id, headers } = await newKey();
      upstream.on('GET /thing', () => 'hold');
      upstream.take();
      const batch = [1, 2, 3].map((number) => ({ ...call, id: number }));
      const response = toolhost.post('called', batch, { headers });
      const first = await upstream.waitForRequest();
      await asOwner('DELETE', `/keys/${id}`);
      first.release();
      const responses = (await response).body as unknown as { result?: Json; error?: Json }[];
      upstream.on('GET /thing', () => ({}));
      assert.deepEqual(
        responses.map(({ error }) => error?.code),
        [undefined, 401, 401],
      );
      assert.equal(upstream.take().length, 1);
    });
  });
}
