import assert from 'node:assert/strict';
import { before, beforeEach, describe, it } from 'node:test';
import {
  insertCaptures,
  maxCapturesPerServer,
  maxCapturesPerWorkspace,
  pruneCaptures,
} from '../../apps/server/src/store/calls/captures.ts';
import { createKeyring } from '../../apps/server/src/store/sealing/sealing.ts';
import { engines } from '../sets.ts';
import { setSecret } from '../support/server-requests.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json, Reply, TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { type CannedResponse, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

const hour = 60 * 60_000;
const mask = '********';
const secret = 'sk-live-0123456789/abc"x';

type CapturedRequest = { method: string; url: string; headers: [string, string][]; body?: string };
type Capture = {
  expires_at: string;
  arguments?: Json;
  arguments_bytes: number;
  request?: CapturedRequest;
  curl?: string;
  response?: { status: number; headers: [string, string][]; body?: string; body_bytes: number };
  result?: { is_error: boolean; text?: string; bytes: number };
};

const keyring = createKeyring([Buffer.alloc(32, 7)]);
const getHeaders = (message: { headers: [string, string][] } | undefined, name: string) =>
  (message?.headers ?? []).filter(([other]) => other === name).map(([, value]) => value);

for (const engine of engines) {
  describe(`call capture on ${engine}`, () => {
    let [refusedPort, key] = [0, ''];
    const upstream = useFixture(startRecordingUpstream);
    const world = useFixture(async () => {
      refusedPort = await findFreePort();
      return startToolhostOnEngine(engine, { egressPorts: [upstream.port, refusedPort] });
    });
    let toolhost: TestToolhost;
    before(async () => {
      ({ toolhost } = world);
      key = await toolhost.createKey();
    });
    beforeEach(() => upstream.on('*', () => ({ body: { ok: true } })));

    const post = (path: string, body: unknown, bearer = key) => toolhost.rest('POST', path, { key: bearer, body });
    const get = async (path: string) => {
      const reply = await toolhost.rest('GET', path);
      assert.equal(reply.status, 200, reply.text);
      return reply;
    };
    const setCaptureHours = async (slug: string, hours: number): Promise<Json> => {
      const { status, body, text } = await post(`/servers/${slug}/capture`, { hours });
      assert.equal(status, 200, text);
      return body;
    };
    let serverCount = 0;
    /** Creates a server with a stored credential in a header, one in the query, and a tool that accepts any object. */
    const serve = async (overrides: Json = {}, tool: Json = {}) => {
      const slug = `captured-${++serverCount}`;
      const input_schema = {
        name: { type: 'string' },
        size: { type: 'number', optional: true },
        more: { type: 'object', optional: true },
      };
      const headers = { 'X-Service': 'Key {{KEY}}' };
      const tools = [buildToolAt(`${upstream.url}/things?x=1`, { method: 'POST', input_schema, headers, ...tool })];
      const authentication = { type: 'QueryParam', token: '{{TOKEN}}' };
      await toolhost.createServer({ ...buildServerAt(slug, upstream.url), authentication, tools, ...overrides });
      if (!('authentication' in overrides)) await setSecret(toolhost, slug, 'TOKEN', 'token-9876543210');
      if (!('headers' in tool)) await setSecret(toolhost, slug, 'KEY', secret);
      return slug;
    };
    const serveCaptured = async (overrides: Json = {}, tool: Json = {}) => {
      const slug = await serve(overrides, tool);
      await setCaptureHours(slug, 1);
      return slug;
    };
    const respondWith = (response: CannedResponse) => upstream.on('POST /things', () => response);
    /** Returns the newest call of a server from `getCall`. */
    const getNewestCall = async (slug: string): Promise<Reply> => {
      const { body } = await get(`/calls?slug=${slug}&limit=1`);
      return get(`/calls/${(body.calls as Json[])[0]?.id}`);
    };
    /** Calls the tool after the clock advanced by 1 ms, so that no other call is as new. */
    const call = async (slug: string, args: Json, token = key) => {
      await world.advanceTime(1);
      return toolhost.callTool(slug, token, 'get', args);
    };
    const callAndGetCapture = async (slug: string, args: Json = { name: 'n' }, token = key): Promise<Capture> => {
      await call(slug, args, token);
      const { body } = await getNewestCall(slug);
      assert.ok(body.capture, 'nothing was captured');
      return body.capture as Capture;
    };
    const selectCaptures = () => toolhost.running.app.runner.db.selectFrom('captures').selectAll();

    it('[behaviour Calls] captures calls only from the time it is turned on until it is turned off', async () => {
      const slug = await serve();
      const isCaptured = async () => {
        await call(slug, { name: 'n' });
        return 'capture' in (await getNewestCall(slug)).body;
      };
      assert.equal(await isCaptured(), false);
      assert.deepEqual(await selectCaptures().execute(), []);
      await setCaptureHours(slug, 1);
      assert.equal(await isCaptured(), true);
      await setCaptureHours(slug, 0);
      assert.equal(await isCaptured(), false);
    });

    it('[agent 5] stores the start of the result that the agent got, without credentials', async () => {
      const slug = await serveCaptured({}, { response_fields: ['said'] });
      const longText = secret + '\n"é" '.repeat(3000);
      respondWith({ body: { other: 1, said: longText } });
      const { result } = await callAndGetCapture(slug);
      assert.equal(result?.is_error, false);
      const start = JSON.stringify({ said: longText.replaceAll(secret, '[redacted]') });
      const text = result?.text ?? assert.fail('no text');
      assert.ok(start.startsWith(text), text);
      assert.ok(Buffer.byteLength(text) > 8000);
      respondWith({ status: 418, body: 'no coffee' });
      const failed = await callAndGetCapture(slug);
      assert.deepEqual([failed.result?.is_error, /no coffee/.test(failed.result?.text ?? '')], [true, true]);
      respondWith({ headers: { 'content-type': 'image/png' }, body: Buffer.alloc(100_000, 0xff) });
      const file = await callAndGetCapture(await serveCaptured());
      const description = 'The response is a file: application/octet-stream, 100000 bytes.';
      assert.deepEqual([file.result?.text, (file.result?.bytes ?? 0) > 100_000], [description, true]);
    });

    it('[behaviour Calls] is shown with the server, is audited, and ends on time', async () => {
      const slug = await serve();
      await world.advanceTime(1);
      const getCaptureUntil = async () => (await get(`/servers/${slug}`)).body.capture_until;
      assert.equal(await getCaptureUntil(), undefined);
      const until = new Date(world.now() + 2 * hour).toISOString();
      assert.deepEqual(await setCaptureHours(slug, 2), { slug, capture_until: until });
      assert.equal(await getCaptureUntil(), until);
      const [event] = (await get('/audit?limit=1')).body.events as Json[];
      assert.deepEqual([event?.operation, event?.target, event?.detail], ['captureCalls', slug, { hours: 2 }]);
      await world.advanceTime(2 * hour - 2);
      assert.ok(await callAndGetCapture(slug, { name: 'last' }));
      await world.advanceTime(1);
      assert.equal(await getCaptureUntil(), undefined);
      await call(slug, { name: 'late' });
      assert.equal('capture' in (await getNewestCall(slug)).body, false);
      await setCaptureHours(slug, 24);
      assert.deepEqual(await setCaptureHours(slug, 0), { slug });
      assert.equal(await getCaptureUntil(), undefined);
    });

    it('requires permission to change the server and lasts at most 24 hours', async () => {
      const slug = await serve();
      const reader = await toolhost.createKey({ scopes: ['manage:read', 'call'] });
      assert.equal((await post(`/servers/${slug}/capture`, { hours: 1 }, reader)).status, 403);
      const foreignKey = await toolhost.createKey({ workspace: 'theirs' });
      assert.equal((await post(`/servers/${slug}/capture`, { hours: 1 }, foreignKey)).status, 404);
      for (const hours of [25, -1, 0.5, 'one', undefined])
        assert.equal((await post(`/servers/${slug}/capture`, { hours })).status, 400, String(hours));
      await setCaptureHours(slug, 1);
      await callAndGetCapture(slug);
      const { id } = (await getNewestCall(slug)).body.call as { id: string };
      assert.equal((await toolhost.rest('GET', `/calls/${id}`, { key: foreignKey })).status, 404);
    });

    it('[sec M8] stores arguments, request, and response without any credential, whatever the upstream echoes', async () => {
      const slug = await serveCaptured();
      const encodings = { secret, encoded: encodeURIComponent(secret), base64: btoa(secret) };
      upstream.on('POST /things', ({ headers, url, body }) => ({
        status: 201,
        headers: {
          ...{ 'set-cookie': ['session=abcdef', 'other=1'], 'x-plain': 'kept' },
          'x-echo': String(headers['x-service']),
        },
        body: { headers, url, body: body.toString(), ...encodings },
      }));
      const callArgs = { name: 'Ada', more: { echo: ['token-9876543210'] } };
      const capture = await callAndGetCapture(slug, callArgs);
      const { arguments: args, request, response, curl } = capture;
      assert.deepEqual(args, { name: 'Ada', more: { echo: ['[redacted]'] } });
      assert.equal(capture.arguments_bytes, JSON.stringify(callArgs).length);
      assert.equal(capture.expires_at, new Date(world.now() + 24 * hour).toISOString());
      assert.deepEqual([request?.method, request?.url], ['POST', `${upstream.url}/things?x=1&api_key=${mask}`]);
      assert.equal(getHeaders(request, 'X-Service').join(), `Key ${mask}`);
      assert.deepEqual(JSON.parse(request?.body ?? ''), { name: 'Ada', more: { echo: ['[redacted]'] } });
      assert.match(curl ?? '', /^curl -X POST 'http.*api_key=\*{8}' /);
      assert.equal(response?.status, 201);
      assert.deepEqual(getHeaders(response, 'set-cookie'), []);
      assert.deepEqual(getHeaders(response, 'x-echo'), ['Key [redacted]']);
      assert.deepEqual(getHeaders(response, 'x-plain'), ['kept']);
      const echoed = JSON.parse(response?.body ?? '') as Json;
      assert.deepEqual([echoed.secret, echoed.encoded, echoed.base64], ['[redacted]', '[redacted]', '[redacted]']);
      const all = JSON.stringify(capture);
      for (const credential of [secret, 'sk-live', 'token-9876543210', 'abcdef', btoa(secret), key])
        assert.equal(all.includes(credential), false, credential);
      for (const row of await selectCaptures().execute())
        assert.match(row.sealed_document, /^v1\.\w+\.[\w-]+\.[\w-]+$/);
    });

    it("[sec M8] stores nothing of the caller's own token", async () => {
      const slug = await serveCaptured({ authentication: { type: 'Bearer' } }, { headers: {} });
      upstream.on('POST /things', ({ headers }) => ({ body: { got: headers.authorization } }));
      const { request, response } = await callAndGetCapture(slug, { name: 'my-own-token-123' }, 'my-own-token-123');
      assert.deepEqual(getHeaders(request, 'Authorization'), [`Bearer ${mask}`]);
      assert.equal(request?.body, '{"name":"[redacted]"}');
      assert.equal(response?.body, '{"got":"Bearer [redacted]"}');
    });

    it('stores the first 8 KiB of a body without splitting a credential or a character', async () => {
      const slug = await serveCaptured();
      const captureBody = async (body: string | Buffer) => {
        respondWith({ headers: { 'content-type': 'text/plain' }, body });
        return (await callAndGetCapture(slug)).response;
      };
      const long = await captureBody('a'.repeat(8190) + secret + 'b'.repeat(100_000));
      assert.deepEqual([long?.body, long?.body_bytes], [`${'a'.repeat(8190)}[r`, 8190 + secret.length + 100_000]);
      for (const times of [200, 400, 1000, 5000]) {
        const secrets = await captureBody(`${secret} `.repeat(times));
        assert.match(secrets?.body ?? '', /^(\[redacted\] ?)+(\[r?e?d?a?c?t?e?d?)?$/);
      }
      assert.equal((await captureBody(`a${'€'.repeat(4000)}`))?.body, `a${'€'.repeat(2730)}`);
      assert.equal((await captureBody('nul \u0000 and \ud83d\ude00'))?.body, 'nul \u0000 and \ud83d\ude00');
      const binary = await captureBody(Buffer.from([0xff, 0xfe, 0x00]));
      assert.deepEqual([binary?.body, binary?.body_bytes], [undefined, 3]);
    });

    it('stores numbers with all digits and omits arguments that are too long', async () => {
      const slug = await serveCaptured();
      const params = '{"name":"get","arguments":{"name":"n","size":12345678901234567890}}';
      await world.advanceTime(1);
      await toolhost.post(slug, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`, { token: key });
      const { text: shown } = await getNewestCall(slug);
      assert.match(shown, /"arguments":\{"name":"n","size":12345678901234567890\}/);
      const long = await callAndGetCapture(slug, { name: 'n'.repeat(40_000) });
      assert.deepEqual([long.arguments, long.arguments_bytes], [undefined, 40_011]);
      assert.equal(long.request?.body?.length, 8192);
    });

    it('stores the available parts of a failed call', async () => {
      const slug = await serveCaptured();
      const rejected = await callAndGetCapture(slug, { name: [7] });
      assert.deepEqual(rejected.arguments, { name: [7] });
      assert.deepEqual([rejected.request, rejected.response], [undefined, undefined]);
      respondWith({ status: 500, body: 'broken' });
      const failed = await callAndGetCapture(slug);
      assert.deepEqual([failed.response?.status, failed.response?.body], [500, 'broken']);
      const url = `http://127.0.0.1:${refusedPort}/`;
      const unanswered = await callAndGetCapture(await serveCaptured({}, { url, method: 'GET', headers: {} }));
      assert.equal(unanswered.request?.url, `${url}?name=n&api_key=${mask}`);
      assert.equal(unanswered.response, undefined);
    });

    it('retains captures for a day, unless the server is deleted', async () => {
      const slug = await serveCaptured();
      await callAndGetCapture(slug);
      const { id } = (await getNewestCall(slug)).body.call as { id: string };
      await world.advanceTime(24 * hour - 1);
      assert.equal('capture' in (await get(`/calls/${id}`)).body, true);
      await world.advanceTime(1);
      assert.equal('capture' in (await get(`/calls/${id}`)).body, false);
      const { db } = toolhost.running.app.runner;
      const countOwnCaptures = async () => (await selectCaptures().where('call_id', '=', id).execute()).length;
      await pruneCaptures(db, world.now() - 24 * hour);
      assert.equal(await countOwnCaptures(), 1);
      await pruneCaptures(db, world.now() - 24 * hour + 1);
      assert.equal(await countOwnCaptures(), 0);

      await setCaptureHours(slug, 1);
      await callAndGetCapture(slug);
      await toolhost.rest('DELETE', `/servers/${slug}`);
      assert.deepEqual((await getNewestCall(slug)).body.capture, undefined);
    });

    it('retains the newest captures of a server up to the limit', async () => {
      const { db } = toolhost.running.app.runner;
      const common = { workspaceId: 'local', document: '{}' };
      const row = (n: number, serverId: string) => ({ ...common, callId: `call_${serverId}_${n}`, serverId, at: n });
      const many = Array.from({ length: maxCapturesPerServer + 5 }, (_, n) => row(n, 'srv_many'));
      await insertCaptures(db, keyring, [row(1, 'srv_other'), ...many]);
      await insertCaptures(db, keyring, many.slice(-2));
      const selectByServer = (id: string) => selectCaptures().where('server_id', '=', id).orderBy('at').execute();
      const retained = await selectByServer('srv_many');
      assert.deepEqual([retained.length, retained[0]?.at], [maxCapturesPerServer, 5]);
      assert.equal((await selectByServer('srv_other')).length, 1);
    });

    it('[find A5] retains the newest captures of a workspace up to the limit, and all of another workspace', async () => {
      const { db } = toolhost.running.app.runner;
      const createRows = (workspaceId: string, from: number, count: number) =>
        Array.from({ length: count }, (_, n) => ({
          callId: `call_${workspaceId}_${from + n}`,
          workspaceId,
          // Servers of the same workspace, each below its own limit. Calls of several servers start at the same time.
          serverId: `srv_${workspaceId}_${(from + n) % 8}`,
          at: Math.floor((from + n) / 8),
          document: '{}',
        }));
      const getTimes = async (workspaceId: string) =>
        (await selectCaptures().where('workspace_id', '=', workspaceId).orderBy('at').execute()).map(({ at }) => at);
      await insertCaptures(db, keyring, createRows('quiet', 0, 100));
      for (let from = 0; from < maxCapturesPerWorkspace + 400; from += 400)
        await insertCaptures(db, keyring, createRows('busy', from, 400));
      const busy = await getTimes('busy');
      assert.deepEqual([busy.length, busy[0], busy.at(-1)], [maxCapturesPerWorkspace, 50, 549]);
      assert.equal((await getTimes('quiet')).length, 100);
      await db.deleteFrom('captures').where('workspace_id', 'in', ['busy', 'quiet']).execute();
    });
  });
}
