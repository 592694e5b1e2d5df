import assert from 'node:assert/strict';
import { before, beforeEach, describe, it } from 'node:test';
import { pruneDeletedServers } from '../../apps/server/src/store/servers/deleted-servers.ts';
import { engines } from '../sets.ts';
import { getErrorText, getResultText } from '../support/one-tool.ts';
import { listCalls, setSecret } from '../support/server-requests.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json, TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import {
  type CannedResponse,
  type Handler,
  type RecordedRequest,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

const clientSecret = 'cl&ent+s=cret/ä:1';

const authorizations = (requests: readonly RecordedRequest[]) => requests.map(({ headers }) => headers.authorization);

for (const engine of engines) {
  describe(`authentication by client credentials on ${engine}`, () => {
    const api = useFixture(startRecordingUpstream);
    const issuer = useFixture(startRecordingUpstream);
    const otherUpstream = useFixture(startRecordingUpstream);
    const service = useFixture(() =>
      startToolhostOnEngine(engine, { egressPorts: [api.port, issuer.port, otherUpstream.port] }),
    );
    let toolhost: TestToolhost;
    let key: string;
    before(async () => {
      ({ toolhost } = service);
      key = await toolhost.createKey();
    });
    beforeEach(() => {
      setTokenResponse();
      api.on('GET /thing', () => ({ body: {} }));
    });

    let [tokenCount, serverCount] = [0, 0];
    const issueToken = () => ({ access_token: `t-${++tokenCount}`, token_type: 'Bearer', expires_in: 3600 });
    /** Sets the response of the token endpoint; by default tokens t-1, t-2, … with a lifetime of one hour. */
    const setTokenResponse = (handler: Handler = () => ({ body: issueToken() })) => {
      tokenCount = 0;
      issuer.on('POST /token', handler);
    };
    const authentication = (overrides: Json = {}) => ({
      ...{ type: 'ClientCredentials', token_url: `${issuer.url}/token` },
      ...{ client_id: 'client:1', client_secret: '{{CLIENT_SECRET}}', ...overrides },
    });
    /** Returns the forms that the token endpoint received since the last call. */
    const takeTokenForms = () => issuer.take().map(({ body }) => new URLSearchParams(body.toString()));
    const serve = async (overrides: Json = {}, server: Json = {}) => {
      const slug = `client-${++serverCount}`;
      const tools = [buildToolAt(`${api.url}/thing`)];
      await toolhost.createServer({ name: 'C', slug, tools, authentication: authentication(overrides), ...server });
      await setSecret(toolhost, slug, 'CLIENT_SECRET', clientSecret);
      for (const upstream of [api, issuer]) upstream.take();
      return slug;
    };
    const call = async (slug: string) => {
      const result = await toolhost.callTool(slug, key, 'get');
      assert.notEqual(result.isError, true, getResultText(result));
      return authorizations(api.take());
    };
    const callAndGetError = async (slug: string) => {
      const text = getErrorText(await toolhost.callTool(slug, key, 'get'));
      assert.deepEqual(api.take(), []);
      return text;
    };

    it('[conf 4] requests a token once, with form-encoded Basic credentials, and renews it before it expires', async () => {
      const resources = { audience: 'https://api', resource: 'urn:r' };
      const extra_params = { tenant: 'x y' };
      const slug = await serve({ scopes: ['read', 'write'], ...resources, extra_params });
      assert.equal(((await toolhost.rest('GET', `/servers/${slug}`)).body.server as Json).access, 'api_key');
      assert.deepEqual(await call(slug), ['Bearer t-1']);
      const [request] = issuer.take();
      const encoded = 'client%3A1:cl%26ent%2Bs%3Dcret%2F%C3%A4%3A1';
      assert.equal(request?.headers.authorization, `Basic ${Buffer.from(encoded).toString('base64')}`);
      const form = Object.fromEntries(new URLSearchParams(request?.body.toString()));
      const grant = { grant_type: 'client_credentials', scope: 'read write' };
      assert.deepEqual(form, { ...grant, ...resources, ...extra_params });
      await service.advanceTime(3_570_000);
      assert.deepEqual(await call(slug), ['Bearer t-1']);
      assert.deepEqual(takeTokenForms(), []);
      await service.advanceTime(12_000);
      assert.deepEqual(await call(slug), ['Bearer t-2']);
      assert.equal(takeTokenForms().length, 1);
    });

    it('[spec 4.4] accepts a token lifetime that is no whole number of seconds or milliseconds', async () => {
      for (const expires_in of [3599.1234, 1.005, 0.0001]) {
        setTokenResponse(() => ({ body: { access_token: 'short', expires_in } }));
        assert.deepEqual(await call(await serve()), ['Bearer short'], String(expires_in));
      }
      const { db } = await service.database();
      const rows = await db.selectFrom('client_tokens').select(['renew_at', 'expires_at']).execute();
      for (const time of rows.flatMap(({ renew_at, expires_at }) => [renew_at ?? 0, expires_at ?? 0]))
        assert.ok(Number.isInteger(time), String(time));
    });

    it('[conf 4] sends client id and secret in the body with client_auth "body"', async () => {
      const slug = await serve({ client_auth: 'body' });
      await call(slug);
      const [request] = issuer.take();
      assert.equal(request?.headers.authorization, undefined);
      assert.deepEqual(Object.fromEntries(new URLSearchParams(request?.body.toString())), {
        grant_type: 'client_credentials',
        client_id: 'client:1',
        client_secret: clientSecret,
      });
    });

    it('[conf 4] sends one token request for all waiting calls', async () => {
      setTokenResponse(() => 'hold');
      const slug = await serve();
      const calls = Array.from({ length: 8 }, () => toolhost.callTool(slug, key, 'get'));
      const request = await issuer.waitForRequest();
      request.release({ body: { access_token: 'held', expires_in: 60 } });
      for (const result of await Promise.all(calls)) assert.notEqual(result.isError, true, getResultText(result));
      assert.deepEqual(new Set(authorizations(api.take())), new Set(['Bearer held']));
      assert.equal(takeTokenForms().length, 1);
    });

    it('[conf 4] renews a rejected token once, and not again while it is new', async () => {
      const slug = await serve();
      await call(slug);
      await service.advanceTime(60_000);
      api.on('GET /thing', ({ headers }) => ({ status: headers.authorization === 'Bearer t-1' ? 401 : 200 }));
      assert.deepEqual(await call(slug), ['Bearer t-1', 'Bearer t-2']);
      assert.deepEqual(await call(slug), ['Bearer t-2']);
      assert.equal(takeTokenForms().length, 2);
      api.on('GET /thing', () => ({ status: 401 }));
      assert.match(getErrorText(await toolhost.callTool(slug, key, 'get')), /HTTP 401/);
      assert.deepEqual([authorizations(api.take()), takeTokenForms()], [['Bearer t-2'], []]);
    });

    it('[conf 4] explains a rejection and pauses increasingly before the next token request', async () => {
      const body = { error: 'invalid_client', error_description: clientSecret };
      setTokenResponse(() => ({ status: 401, body }));
      const slug = await serve();
      const message = await callAndGetError(slug);
      assert.match(
        message,
        /^no token for the API: the token endpoint 127\.0\.0\.1:\d+ returned no token \(status 401, invalid_client\): it does not accept the client id or client secret$/,
      );
      assert.match(await callAndGetError(slug), /invalid_client.*; the next request is sent in 1 s$/);
      assert.equal(takeTokenForms().length, 1);
      await service.advanceTime(1001);
      await callAndGetError(slug);
      await service.advanceTime(1500);
      assert.match(await callAndGetError(slug), /next request is sent in 1 s$/);
      assert.equal(takeTokenForms().length, 1);
      const outcomes = (await listCalls(toolhost, slug)).map(({ outcome }) => outcome);
      assert.deepEqual(new Set(outcomes), new Set(['no_token']));
      setTokenResponse();
      await setSecret(toolhost, slug, 'CLIENT_SECRET', 'corrected');
      assert.deepEqual(await call(slug), ['Bearer t-1']);
    });

    it('[conf 4] uses a token until it expires while the token endpoint fails', async () => {
      const slug = await serve();
      await call(slug);
      setTokenResponse(() => ({ status: 503 }));
      await service.advanceTime(3_590_000);
      assert.deepEqual(await call(slug), ['Bearer t-1']);
      await service.advanceTime(11_000);
      assert.match(await callAndGetError(slug), /returned no token \(status 503\)/);
    });

    it('[conf 4] explains an invalid token response without repeating its values', async () => {
      const cases: [CannedResponse, RegExp][] = [
        [
          { status: 400, body: { error: 'invalid_scope' } },
          /400, invalid_scope\): it does not grant the requested scopes/,
        ],
        [{ body: { error: 'unauthorized_client' } }, /\(status 200, unauthorized_client\): this client may not/],
        [{ body: {} }, /responded without a usable access_token/],
        [{ body: { access_token: 'a b' } }, /responded without a usable access_token/],
        [{ body: { access_token: key } }, /returned a token in the format of a credential of this service/],
        [{ body: { access_token: 'x', token_type: 'DPoP' } }, /a token of the type DPoP/],
        [{ body: '<html>' }, /neither JSON nor a form/],
        [{ status: 307, headers: { location: 'https://evil.example/' } }, /status 307/],
        [{ status: 500, body: clientSecret }, /\(status 500\)$/],
      ];
      for (const [response, expected] of cases) {
        setTokenResponse(() => response);
        const message = await callAndGetError(await serve());
        assert.match(message, expected);
        assert.ok(!message.includes(clientSecret));
      }
      const slug = await serve({ token_url: 'https://token.example.com/token' });
      assert.match(await callAndGetError(slug), /the token endpoint token\.example\.com could not be called: /);
    });

    it('[conf 4] sends neither secret nor token to a host that the secret was not set for', async () => {
      const slug = await serve();
      const path = `/servers/${slug}/secrets/CLIENT_SECRET`;
      const { body: secret } = await toolhost.rest('PUT', path, { body: { value: clientSecret } });
      assert.deepEqual(secret.origins, [api.url, issuer.url]);
      await call(slug);
      takeTokenForms();
      for (const [url, changed] of [
        ['https://evil.example', authentication()],
        [api.url, authentication({ token_url: 'https://evil.example/token' })],
        [otherUpstream.url, authentication()],
      ] as const) {
        const body = { tools: [buildToolAt(`${url}/thing`)], authentication: changed };
        const reply = await toolhost.rest('PATCH', `/servers/${slug}`, { body });
        assert.equal(reply.status, 200, reply.text);
        assert.match(JSON.stringify(reply.body.warnings), /the secret CLIENT_SECRET was set for/);
        assert.match(await callAndGetError(slug), /the secret CLIENT_SECRET was set before this tool called/);
      }
      assert.deepEqual([otherUpstream.connections, takeTokenForms()], [0, []]);
    });

    it('[conf 4] encrypts a literal secret and the stored token, and binds the secret to its hosts like a stored one', async () => {
      const slug = await serve({ client_secret: clientSecret });
      const { body } = await toolhost.rest('GET', `/servers/${slug}`);
      assert.equal(((body.config as Json).authentication as Json).client_secret, '********');
      assert.deepEqual(await call(slug), ['Bearer t-1']);
      const { db } = await service.database();
      const rows = await db.selectFrom('client_tokens').selectAll().execute();
      assert.ok(rows.length > 0);
      assert.ok(!JSON.stringify(rows).includes('t-1"') && !JSON.stringify(rows).includes(clientSecret));
      assert.ok(rows.some(({ sealed_token }) => sealed_token.startsWith('v1.')));
      assert.equal((await toolhost.rest('DELETE', `/servers/${slug}`)).status, 200);
      await pruneDeletedServers(db, Number.MAX_SAFE_INTEGER, Date.now());
      const remaining = await db.selectFrom('client_tokens').selectAll().execute();
      assert.equal(remaining.length, rows.length - 1);
    });

    it('[conf 4] can be combined with other stored credentials, and a preview masks both', async () => {
      const list = [authentication(), { type: 'ApiKey', header: 'X-Key', token: 'second-key' }];
      const slug = await serve({}, { authentication: list });
      const result = await toolhost.callTool(slug, key, 'get');
      assert.notEqual(result.isError, true, getResultText(result));
      const [request] = api.take();
      assert.deepEqual([request?.headers.authorization, request?.headers['x-key']], ['Bearer t-1', 'second-key']);
      const preview = await toolhost.rest('POST', `/servers/${slug}/tools/get/preview`, { body: {} });
      assert.match(preview.text, /\["Authorization","Bearer \*{8}"\],\["X-Key","\*{8}"\]/);
    });

    it('[conf 4] rejects each configuration error with a problem', async () => {
      const cases: [Json, RegExp][] = [
        [{ token_url: undefined }, /^authentication\.token_url: is missing; type ClientCredentials needs it/],
        [{ token_url: 'nowhere' }, /^authentication\.token_url: found "nowhere"; allowed: an https URL/],
        [{ token_url: 'https://10.0.0.1/token' }, /^authentication\.token_url: /],
        [{ token_url: 'https://{{H}}/token' }, /^authentication\.token_url: \{\{NAME\}\} is not replaced here/],
        [{ token_url: `${issuer.url}/t?scope=x` }, /^authentication\.token_url: contains the parameter "scope"/],
        [{ extra_params: { client_id: 'x' } }, /^authentication\.extra_params\.client_id: the service sets this/],
        [{ token: 'x' }, /^authentication\.token: cannot be combined with type ClientCredentials/],
        [{ client_auth: 'jwt' }, /^authentication\.client_auth: found "jwt"; allowed: "basic", "body"/],
        [{ client_secret: key }, /^authentication\.client_secret: holds an API key/],
      ];
      for (const [overrides, expected] of cases) {
        const body = { name: 'x', slug: 'never', tools: [], authentication: authentication(overrides) };
        const { status, body: reply } = await toolhost.rest('POST', '/servers', { body });
        assert.equal(status, 400);
        const problems = (reply.problems as Json[]).map(({ path, message }) => `${path}: ${message}`);
        assert.match(problems.join('\n'), expected);
      }
    });
  });
}
