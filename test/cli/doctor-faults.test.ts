import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Check } from '../../src/doctor/checks.ts';
import { examine } from '../support/toolhost/doctor-command.ts';
import { type Fault, json, startForeignMcpServer } from '../support/upstreams/foreign-mcp-server.ts';
import { at, fields, method, result } from '../support/upstreams/mcp-faults.ts';

const rightToken = 'the-right-token';

const tool = (more: object) => ({ name: 'only', description: 'Does it.', inputSchema: { type: 'object' }, ...more });

type Broken = [name: string, fault: Fault, id: string, status: Check['status'], detail: RegExp];

const broken: Broken[] = [
  [
    'announces client ID metadata documents and rejects them',
    (asked, usual) =>
      fields('issuer', { client_id_metadata_document_supported: true })(asked, usual) ??
      (asked.request.url?.includes('client_id=https') ? json(400, {}) : undefined),
    'client_documents',
    'warning',
    /Claude Code identifies itself with https:\/\/claude\.ai\/.* rejects it: 400/,
  ],
  [
    'redirects',
    at('mcp', () => ({ status: 307, headers: { location: '/elsewhere' } })),
    'reach',
    'problem',
    /redirect \(307\) to .*\/elsewhere/,
  ],
  [
    'responds with a web page',
    at('mcp', () => ({ status: 200, headers: { 'content-type': 'text/html' }, body: '<p>' })),
    'reach',
    'problem',
    /text\/html/,
  ],
  ['does not exist', at('mcp', () => json(404, {})), 'reach', 'problem', /404/],
  ['rejects the Accept header', at('mcp', () => json(406, {})), 'reach', 'problem', /406/],
  [
    'challenges without Bearer',
    at('mcp', (usual) => (usual.status === 401 ? json(401, {}) : undefined)),
    'challenge',
    'problem',
    /WWW-Authenticate/,
  ],
  ['points to missing metadata', at('resource', () => json(404, {})), 'resource_metadata', 'problem', /404/],
  [
    'states another resource',
    fields('resource', { resource: 'https://other.example/mcp' }),
    'resource_metadata',
    'problem',
    /other\.example/,
  ],
  [
    'has an authorization server without metadata',
    at('issuer', () => json(404, {})),
    'server_metadata',
    'problem',
    /404/,
  ],
  [
    'states another issuer',
    fields('issuer', { issuer: 'https://other.example' }),
    'server_metadata',
    'problem',
    /other\.example/,
  ],
  [
    'does not announce PKCE',
    fields('issuer', { code_challenge_methods_supported: undefined }),
    'server_metadata',
    'problem',
    /PKCE/,
  ],
  [
    'offers no client registration',
    fields('issuer', { registration_endpoint: undefined }),
    'registration',
    'problem',
    /registration_endpoint/,
  ],
  [
    'rejects client registration',
    at('register', () => json(400, { error: 'invalid_client_metadata' })),
    'register',
    'problem',
    /400 invalid_client_metadata/,
  ],
  [
    'issues client secrets that have expired',
    fields('register', { client_secret: 's', client_secret_expires_at: 1 }),
    'register',
    'problem',
    /expired/,
  ],
  [
    'rejects loopback redirect URIs',
    at('register', (_, { body }) =>
      body.includes('33418') ? json(400, { error: 'invalid_redirect_uri' }) : undefined,
    ),
    'redirect_uris',
    'problem',
    /VS Code \(400 invalid_redirect_uri\)/,
  ],
  [
    'forgets registered clients',
    at('authorize', () => json(400, { error: 'invalid_client' })),
    'authorize',
    'problem',
    /invalid_client/,
  ],
  [
    'does not require PKCE',
    at('authorize', () => ({ status: 302, headers: { location: '/login' } })),
    'pkce',
    'problem',
    /without PKCE/,
  ],
  [
    'redirects to any redirect URI',
    at('authorize', (_, { request }) => ({
      status: 302,
      headers: { location: new URL(request.url ?? '', 'http://x').searchParams.get('redirect_uri') ?? '' },
    })),
    'redirect_uri',
    'problem',
    /anyone/,
  ],
  [
    'serves a web page at its token endpoint',
    at('token', () => ({ status: 404, headers: { 'content-type': 'text/html' }, body: '<p>' })),
    'token_endpoint',
    'problem',
    /404 and text\/html/,
  ],
  [
    'responds to expired tokens with 403',
    at('mcp', (_, { request }) => (request.headers.authorization?.includes('made-up') ? json(403, {}) : undefined)),
    'expired_token',
    'problem',
    /403/,
  ],
  [
    'lacks CORS headers',
    at('issuer', (usual) => ({
      ...usual,
      headers: { ...usual.headers, 'access-control-allow-origin': 'https://own.example' },
    })),
    'cors',
    'warning',
    /oauth-authorization-server/,
  ],
  [
    'does not announce tools',
    result('initialize', { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x' } }),
    'handshake',
    'problem',
    /tools/,
  ],
  ['returns no tool list', result('tools/list', {}), 'tool_list', 'problem', /without tools/],
  [
    'repeats a cursor',
    result('tools/list', { tools: [], nextCursor: 'again' }),
    'tool_list',
    'problem',
    /repeats a cursor/,
  ],
  [
    'lists a tool without a schema',
    result('tools/list', { tools: [tool({ inputSchema: null })] }),
    'tool_list',
    'problem',
    /only/,
  ],
  [
    'lists a tool name that models reject',
    result('tools/list', { tools: [tool({ name: 'a.b' })] }),
    'tool_names',
    'warning',
    /a\.b/,
  ],
  [
    'lists an argument name that Claude rejects',
    result('tools/list', { tools: [tool({ inputSchema: { type: 'object', properties: { 'a[b]': {} } } })] }),
    'tool_schemas',
    'warning',
    /names have characters/,
  ],
  [
    'lists tools without hints',
    result('tools/list', { tools: [tool({ annotations: { readOnlyHint: true } })] }),
    'tool_hints',
    'warning',
    /ChatGPT.*only/,
  ],
  [
    'lists a tool name that is too long when prefixed with the server name',
    result('tools/list', { tools: [tool({ name: 'a'.repeat(64) })] }),
    'tool_names',
    'warning',
    /Claude Code allows 64.*Cursor allows 60.*Goose allows 64.*LibreChat allows 64/,
  ],
  [
    'lists more tools than Windsurf accepts',
    result('tools/list', { tools: Array.from({ length: 101 }, (_, n) => tool({ name: `t${n}` })) }),
    'tool_count',
    'warning',
    /Windsurf 100/,
  ],
  ['fails for stateless clients', method('server/discover', () => json(500, {})), 'modern', 'problem', /500/],
];

describe('toolhost doctor', () => {
  it('[ship 6] reads a response that follows many messages in an event stream, at any chunk boundary', async () => {
    const before = `data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\r\n\r\n`.repeat(150_000);
    const server = await startForeignMcpServer(
      method('tools/list', ({ body }) => ({
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        body: `${before}event: message\r\ndata: ${JSON.stringify(body)}\r\n\r\n`,
      })),
    );
    const { checks } = await examine(server.address, rightToken);
    await server.close();
    const remarks = checks.filter(({ status }) => status !== 'ok').map(({ id }) => id);
    assert.deepEqual(remarks, ['address']);
  });

  for (const [name, fault, id, status, detail] of broken) {
    it(`[ship 6] reports the problem of a server that ${name}`, async () => {
      const server = await startForeignMcpServer(fault);
      const examined = await examine(server.address, rightToken);
      await server.close();
      const found = examined.checks.find((check) => check.id === id);
      assert.equal(found?.status, status, JSON.stringify(examined.checks, undefined, 1));
      assert.match(found.detail, detail);
      assert.equal(examined.code, examined.checks.some((check) => check.status === 'problem') ? 1 : 0);
    });
  }
});
