import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Check } from '@toolhost/mcp-doctor/checks';
import { runDoctor } from '../support/toolhost/doctor-command.ts';
import { type Fault, jsonResponse, startForeignMcpServer } from '../support/upstreams/foreign-mcp-server.ts';
import {
  replaceFields,
  replaceMethodResponse,
  replaceMethodResult,
  replaceResponse,
} from '../support/upstreams/mcp-faults.ts';

const validToken = 'the-right-token';

const createTool = (more: object) => ({
  name: 'only',
  description: 'Does it.',
  inputSchema: { type: 'object' },
  ...more,
});

type FaultCase = [name: string, fault: Fault, id: string, status: Check['status'], detail: RegExp];

const faultCases: FaultCase[] = [
  [
    'announces client ID metadata documents and rejects them',
    (exchange, defaultResponse) =>
      replaceFields('issuer', { client_id_metadata_document_supported: true })(exchange, defaultResponse) ??
      (exchange.request.url?.includes('client_id=https') ? jsonResponse(400, {}) : undefined),
    'client_documents',
    'warning',
    /Claude Code identifies itself with https:\/\/claude\.ai\/.* rejects it: 400/,
  ],
  [
    'redirects',
    replaceResponse('mcp', () => ({ status: 307, headers: { location: '/elsewhere' } })),
    'reach',
    'problem',
    /redirect \(307\) to .*\/elsewhere/,
  ],
  [
    'responds with a web page',
    replaceResponse('mcp', () => ({ status: 200, headers: { 'content-type': 'text/html' }, body: '<p>' })),
    'reach',
    'problem',
    /text\/html/,
  ],
  ['does not exist', replaceResponse('mcp', () => jsonResponse(404, {})), 'reach', 'problem', /404/],
  ['rejects the Accept header', replaceResponse('mcp', () => jsonResponse(406, {})), 'reach', 'problem', /406/],
  [
    'challenges without Bearer',
    replaceResponse('mcp', (defaultResponse) => (defaultResponse.status === 401 ? jsonResponse(401, {}) : undefined)),
    'challenge',
    'problem',
    /WWW-Authenticate/,
  ],
  [
    'points to missing metadata',
    replaceResponse('resource', () => jsonResponse(404, {})),
    'resource_metadata',
    'problem',
    /404/,
  ],
  [
    'states another resource',
    replaceFields('resource', { resource: 'https://other.example/mcp' }),
    'resource_metadata',
    'problem',
    /other\.example/,
  ],
  [
    'has an authorization server without metadata',
    replaceResponse('issuer', () => jsonResponse(404, {})),
    'server_metadata',
    'problem',
    /404/,
  ],
  [
    'states another issuer',
    replaceFields('issuer', { issuer: 'https://other.example' }),
    'server_metadata',
    'problem',
    /other\.example/,
  ],
  [
    'does not announce PKCE',
    replaceFields('issuer', { code_challenge_methods_supported: undefined }),
    'server_metadata',
    'problem',
    /PKCE/,
  ],
  [
    'offers no client registration',
    replaceFields('issuer', { registration_endpoint: undefined }),
    'registration',
    'problem',
    /registration_endpoint/,
  ],
  [
    'rejects client registration',
    replaceResponse('register', () => jsonResponse(400, { error: 'invalid_client_metadata' })),
    'register',
    'problem',
    /400 invalid_client_metadata/,
  ],
  [
    'issues client secrets that have expired',
    replaceFields('register', { client_secret: 's', client_secret_expires_at: 1 }),
    'register',
    'problem',
    /expired/,
  ],
  [
    'rejects loopback redirect URIs',
    replaceResponse('register', (_, { body }) =>
      body.includes('33418') ? jsonResponse(400, { error: 'invalid_redirect_uri' }) : undefined,
    ),
    'redirect_uris',
    'problem',
    /VS Code \(400 invalid_redirect_uri\)/,
  ],
  [
    'forgets registered clients',
    replaceResponse('authorize', () => jsonResponse(400, { error: 'invalid_client' })),
    'authorize',
    'problem',
    /invalid_client/,
  ],
  [
    'does not require PKCE',
    replaceResponse('authorize', () => ({ status: 302, headers: { location: '/login' } })),
    'pkce',
    'problem',
    /without PKCE/,
  ],
  [
    'redirects to any redirect URI',
    replaceResponse('authorize', (_, { request }) => ({
      status: 302,
      headers: { location: new URL(request.url ?? '', 'http://x').searchParams.get('redirect_uri') ?? '' },
    })),
    'redirect_uri',
    'problem',
    /anyone/,
  ],
  [
    'serves a web page at its token endpoint',
    replaceResponse('token', () => ({ status: 404, headers: { 'content-type': 'text/html' }, body: '<p>' })),
    'token_endpoint',
    'problem',
    /404 and text\/html/,
  ],
  [
    'responds to expired tokens with 403',
    replaceResponse('mcp', (_, { request }) =>
      request.headers.authorization?.includes('made-up') ? jsonResponse(403, {}) : undefined,
    ),
    'expired_token',
    'problem',
    /403/,
  ],
  [
    'lacks CORS headers',
    replaceResponse('issuer', (defaultResponse) => ({
      ...defaultResponse,
      headers: { ...defaultResponse.headers, 'access-control-allow-origin': 'https://own.example' },
    })),
    'cors',
    'warning',
    /oauth-authorization-server/,
  ],
  [
    'does not announce tools',
    replaceMethodResult('initialize', { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x' } }),
    'handshake',
    'problem',
    /tools/,
  ],
  ['returns no tool list', replaceMethodResult('tools/list', {}), 'tool_list', 'problem', /without tools/],
  [
    'repeats a cursor',
    replaceMethodResult('tools/list', { tools: [], nextCursor: 'again' }),
    'tool_list',
    'problem',
    /repeats a cursor/,
  ],
  [
    'lists a tool without a schema',
    replaceMethodResult('tools/list', { tools: [createTool({ inputSchema: null })] }),
    'tool_list',
    'problem',
    /only/,
  ],
  [
    'lists a tool name that models reject',
    replaceMethodResult('tools/list', { tools: [createTool({ name: 'a.b' })] }),
    'tool_names',
    'warning',
    /a\.b/,
  ],
  [
    'lists an argument name that Claude rejects',
    replaceMethodResult('tools/list', {
      tools: [createTool({ inputSchema: { type: 'object', properties: { 'a[b]': {} } } })],
    }),
    'tool_schemas',
    'warning',
    /names have characters/,
  ],
  [
    'lists tools without hints',
    replaceMethodResult('tools/list', { tools: [createTool({ annotations: { readOnlyHint: true } })] }),
    'tool_hints',
    'warning',
    /ChatGPT.*only/,
  ],
  [
    'lists a tool name that is too long when prefixed with the server name',
    replaceMethodResult('tools/list', { tools: [createTool({ name: 'a'.repeat(64) })] }),
    'tool_names',
    'warning',
    /Claude Code allows 64.*Cursor allows 60.*Goose allows 64.*LibreChat allows 64/,
  ],
  [
    'lists more tools than Windsurf accepts',
    replaceMethodResult('tools/list', { tools: Array.from({ length: 101 }, (_, n) => createTool({ name: `t${n}` })) }),
    'tool_count',
    'warning',
    /Windsurf 100/,
  ],
  [
    'fails for stateless clients',
    replaceMethodResponse('server/discover', () => jsonResponse(500, {})),
    'stateless',
    'problem',
    /500/,
  ],
];

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

  for (const [name, fault, id, status, detail] of faultCases) {
    it(`[ship 6] reports the problem of a server that ${name}`, async () => {
      const server = await startForeignMcpServer(fault);
      const examined = await runDoctor(server.address, validToken);
      await server.close();
      const found = examined.checks.find((check) => check.id === id);
      assert.equal(found?.status, status, JSON.stringify(examined.checks, undefined, 1));
      assert.match(found.detail, detail);
      assert.equal(examined.code, examined.checks.some((check) => check.status === 'problem') ? 1 : 0);
    });
  }
});
