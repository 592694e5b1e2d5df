import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runDoctor } from '../support/toolhost/doctor-command.ts';
import {
  type Fault,
  type ForeignResponse,
  jsonResponse,
  type Step,
  startForeignMcpServer,
} from '../support/upstreams/foreign-mcp-server.ts';
import {
  replaceFields,
  replaceMethodResponse,
  replaceMethodResult,
  replaceResponse,
} from '../support/upstreams/mcp-faults.ts';

const validToken = 'the-right-token';

/** Lists one tool. */
const listTool = (more: object) => {
  const tool = { name: 'only', description: 'Does it.', inputSchema: { type: 'object' }, ...more };
  return replaceMethodResult('tools/list', { tools: [tool] });
};
const respond = (step: Step, response: ForeignResponse) => replaceResponse(step, () => response);
const reject = (step: Step, status: number, error?: string) =>
  respond(step, jsonResponse(status, error === undefined ? {} : { error }));

const other = 'https://other.example';
const webPage = { headers: { 'content-type': 'text/html' }, body: '<p>' };
const withoutTools = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x' } };

type FaultCases = { [name: string]: [id: string, detail: RegExp, fault: Fault] };

const problems: FaultCases = {
  redirects: [
    'reach',
    /redirect \(307\) to .*\/elsewhere/,
    respond('mcp', { status: 307, headers: { location: '/elsewhere' } }),
  ],
  'responds with a web page': ['reach', /text\/html/, respond('mcp', { status: 200, ...webPage })],
  'does not exist': ['reach', /404/, reject('mcp', 404)],
  'rejects the Accept header': ['reach', /406/, reject('mcp', 406)],
  'challenges without Bearer': [
    'challenge',
    /WWW-Authenticate/,
    replaceResponse('mcp', (defaultResponse) => (defaultResponse.status === 401 ? jsonResponse(401, {}) : undefined)),
  ],
  'points to missing metadata': ['resource_metadata', /404/, reject('resource', 404)],
  'states another resource': [
    'resource_metadata',
    /other\.example/,
    replaceFields('resource', { resource: `${other}/mcp` }),
  ],
  'has an authorization server without metadata': ['server_metadata', /404/, reject('issuer', 404)],
  'states another issuer': ['server_metadata', /other\.example/, replaceFields('issuer', { issuer: other })],
  'does not announce PKCE': [
    'server_metadata',
    /PKCE/,
    replaceFields('issuer', { code_challenge_methods_supported: undefined }),
  ],
  'offers no client registration': [
    'registration',
    /registration_endpoint/,
    replaceFields('issuer', { registration_endpoint: undefined }),
  ],
  'rejects client registration': [
    'register',
    /400 invalid_client_metadata/,
    reject('register', 400, 'invalid_client_metadata'),
  ],
  'issues client secrets that have expired': [
    'register',
    /expired/,
    replaceFields('register', { client_secret: 's', client_secret_expires_at: 1 }),
  ],
  'rejects loopback redirect URIs': [
    'redirect_uris',
    /VS Code \(400 invalid_redirect_uri\)/,
    replaceResponse('register', (_, { body }) =>
      body.includes('33418') ? jsonResponse(400, { error: 'invalid_redirect_uri' }) : undefined,
    ),
  ],
  'forgets registered clients': ['authorize', /invalid_client/, reject('authorize', 400, 'invalid_client')],
  'does not require PKCE': [
    'pkce',
    /without PKCE/,
    respond('authorize', { status: 302, headers: { location: '/login' } }),
  ],
  'redirects to any redirect URI': [
    'redirect_uri',
    /anyone/,
    replaceResponse('authorize', (_, { request }) => {
      const location = new URL(request.url ?? '', 'http://x').searchParams.get('redirect_uri') ?? '';
      return { status: 302, headers: { location } };
    }),
  ],
  'serves a web page at its token endpoint': [
    'token_endpoint',
    /404 and text\/html/,
    respond('token', { status: 404, ...webPage }),
  ],
  'responds to expired tokens with 403': [
    'expired_token',
    /403/,
    replaceResponse('mcp', (_, { request }) =>
      request.headers.authorization?.includes('made-up') ? jsonResponse(403, {}) : undefined,
    ),
  ],
  'does not announce tools': ['handshake', /tools/, replaceMethodResult('initialize', withoutTools)],
  'returns no tool list': ['tool_list', /without tools/, replaceMethodResult('tools/list', {})],
  'repeats a cursor': [
    'tool_list',
    /repeats a cursor/,
    replaceMethodResult('tools/list', { tools: [], nextCursor: 'again' }),
  ],
  'lists a tool without a schema': ['tool_list', /only/, listTool({ inputSchema: null })],
  'fails for stateless clients': [
    'stateless',
    /500/,
    replaceMethodResponse('server/discover', () => jsonResponse(500, {})),
  ],
};

const warnings: FaultCases = {
  'announces client ID metadata documents and rejects them': [
    'client_documents',
    /Claude Code identifies itself with https:\/\/claude\.ai\/.* rejects it: 400/,
    (exchange, defaultResponse) =>
      replaceFields('issuer', { client_id_metadata_document_supported: true })(exchange, defaultResponse) ??
      (exchange.request.url?.includes('client_id=https') ? jsonResponse(400, {}) : undefined),
  ],
  'lacks CORS headers': [
    'cors',
    /oauth-authorization-server/,
    replaceResponse('issuer', (defaultResponse) => ({
      ...defaultResponse,
      headers: { ...defaultResponse.headers, 'access-control-allow-origin': 'https://own.example' },
    })),
  ],
  'lists a tool name that models reject': ['tool_names', /a\.b/, listTool({ name: 'a.b' })],
  'lists an argument name that Claude rejects': [
    'tool_schemas',
    /names have characters/,
    listTool({ inputSchema: { type: 'object', properties: { 'a[b]': {} } } }),
  ],
  'lists tools without hints': ['tool_hints', /ChatGPT.*only/, listTool({ annotations: { readOnlyHint: true } })],
  'lists a tool name that is too long when prefixed with the server name': [
    'tool_names',
    /Claude Code allows 64.*Cursor allows 60.*Goose allows 64.*LibreChat allows 64/,
    listTool({ name: 'a'.repeat(64) }),
  ],
  'lists more tools than Windsurf accepts': [
    'tool_count',
    /Windsurf 100/,
    replaceMethodResult('tools/list', {
      tools: Array.from({ length: 101 }, (_, n) => ({
        name: `t${n}`,
        description: 'Does it.',
        inputSchema: { type: 'object' },
      })),
    }),
  ],
};

describe('toolhost doctor', () => {
  it('[ship 6] reads a response that follows many messages in an event stream, at any chunk boundary', async () => {
    const before = `data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\r\n\r\n`.repeat(150_000);
    const server = await startForeignMcpServer(
      replaceMethodResponse('tools/list', ({ body }) => ({
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        body: `${before}event: message\r\ndata: ${JSON.stringify(body)}\r\n\r\n`,
      })),
    );
    const { checks } = await runDoctor(server.address, validToken);
    await server.close();
    const nonOkIds = checks.filter(({ status }) => status !== 'ok').map(({ id }) => id);
    assert.deepEqual(nonOkIds, ['address']);
  });

  for (const [name, [id, detail, fault]] of Object.entries({ ...problems, ...warnings })) {
    it(`[ship 6] reports the problem of a server that ${name}`, async () => {
      const server = await startForeignMcpServer(fault);
      const examined = await runDoctor(server.address, validToken);
      await server.close();
      const found = examined.checks.find((check) => check.id === id);
      assert.equal(
        found?.status,
        name in problems ? 'problem' : 'warning',
        JSON.stringify(examined.checks, undefined, 1),
      );
      assert.match(found.detail, detail);
      assert.equal(examined.code, examined.checks.some((check) => check.status === 'problem') ? 1 : 0);
    });
  }
});
