import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listenLocally } from './local-server.ts';

type Json = { [key: string]: unknown };

/** A response before it is written. */
export type ForeignResponse = { status: number; headers: Record<string, string>; body?: unknown };

/** A request in terms of the server's steps. */
export type ForeignRequest = { step: Step; origin: string; request: IncomingMessage; body: string; message: Json };

export type Step = 'resource' | 'issuer' | 'register' | 'authorize' | 'token' | 'revoke' | 'mcp' | 'nothing';

/** Changes a response of an otherwise correct server. Undefined leaves it unchanged. */
export type Fault = (request: ForeignRequest, response: ForeignResponse) => ForeignResponse | undefined;

export type ForeignMcpServer = { readonly address: string; close(): Promise<void> };

const token = 'the-right-token';
const refreshToken = 'the-refresh-token';
const inputSchema = { type: 'object', properties: {} };
const readOnlyAnnotations = { readOnlyHint: true, destructiveHint: false, openWorldHint: false };
const tools: Json[] = [
  { name: 'first', description: 'Does the first thing.', inputSchema, annotations: readOnlyAnnotations },
  {
    name: 'second',
    description: 'Does the second thing.',
    inputSchema,
    annotations: { ...readOnlyAnnotations, readOnlyHint: false },
  },
];

/**
 * Starts a third-party MCP server with its own login at `/mcp`. It accepts the token `the-right-token`, which a login
 * issues. The person is already logged in and consents to everything.
 */
export async function startForeignMcpServer(fault: Fault = () => undefined): Promise<ForeignMcpServer> {
  const server = createServer((request, response) => {
    void serve(request, response, fault);
  });
  const { url, close } = await listenLocally(server);
  return {
    address: `${url}/mcp`,
    close,
  };
}

const steps: Record<string, Step> = {
  '/.well-known/oauth-protected-resource/mcp': 'resource',
  '/.well-known/oauth-authorization-server': 'issuer',
  '/register': 'register',
  '/authorize': 'authorize',
  '/token': 'token',
  '/revoke': 'revoke',
  '/mcp': 'mcp',
};

async function serve(request: IncomingMessage, response: ServerResponse, fault: Fault): Promise<void> {
  const origin = `http://${request.headers.host}`;
  const { pathname } = new URL(request.url ?? '/', origin);
  const body = await text(request);
  const step = steps[pathname] ?? 'nothing';
  const isJson = request.headers['content-type'] === 'application/json';
  const asked: ForeignRequest = { step, origin, request, body, message: isJson ? (JSON.parse(body) as Json) : {} };
  const defaultResponse = responders[step](asked);
  const { status, headers, body: content } = fault(asked, defaultResponse) ?? defaultResponse;
  response.writeHead(status, { 'access-control-allow-origin': '*', ...headers });
  response.end(typeof content === 'string' ? content : content === undefined ? '' : JSON.stringify(content));
}

export function jsonResponse(status: number, body: unknown, headers: Record<string, string> = {}): ForeignResponse {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body };
}

const responders: Record<Step, (asked: ForeignRequest) => ForeignResponse> = {
  nothing: () => jsonResponse(404, { error: 'not_found' }),
  resource: ({ origin }) => jsonResponse(200, { resource: `${origin}/mcp`, authorization_servers: [origin] }),
  issuer: ({ origin }) =>
    jsonResponse(200, {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      registration_endpoint: `${origin}/register`,
      revocation_endpoint: `${origin}/revoke`,
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      code_challenge_methods_supported: ['S256'],
    }),
  register: ({ message }) => jsonResponse(201, { client_id: 'client-1', ...message }),
  authorize({ request, origin }) {
    const { searchParams } = new URL(request.url ?? '/', origin);
    const redirect = searchParams.get('redirect_uri') ?? '';
    if (redirect.startsWith('https://attacker.example')) return jsonResponse(400, { error: 'invalid_request' });
    if (searchParams.get('code_challenge') === null)
      return { status: 302, headers: { location: `${redirect}?error=invalid_request` } };
    const state = searchParams.get('state') ?? '';
    const query = new URLSearchParams({ code: 'the-code', state });
    return { status: 302, headers: { location: `${redirect}?${query}` } };
  },
  token({ body }) {
    const form = new URLSearchParams(body);
    const isValid = form.get('code') === 'the-code' || form.get('refresh_token') === refreshToken;
    const tokens = { access_token: token, token_type: 'Bearer', refresh_token: refreshToken };
    return isValid ? jsonResponse(200, tokens) : jsonResponse(400, { error: 'invalid_grant' });
  },
  revoke: () => jsonResponse(200, {}),
  mcp(asked) {
    const { request, origin } = asked;
    const challenge = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
    if (request.headers.authorization !== `Bearer ${token}`)
      return jsonResponse(401, { error: 'unauthorized' }, { 'www-authenticate': challenge });
    return request.method === 'POST' ? respondToRpc(asked.message) : jsonResponse(405, {}, { allow: 'POST' });
  },
};

function respondToRpc({ id, method, params }: Json): ForeignResponse {
  const respondWithResult = (value: Json) => jsonResponse(200, { jsonrpc: '2.0', id, result: value });
  switch (method) {
    case 'initialize':
      return respondWithResult({
        protocolVersion: (params as Json).protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'foreign', version: '1' },
      });
    case 'notifications/initialized':
      return { status: 202, headers: {} };
    case 'tools/list':
      return respondWithResult({ tools });
    case 'tools/call':
      return respondWithResult({ content: [{ type: 'text', text: `called ${(params as Json).name}` }] });
    default:
      return jsonResponse(200, { jsonrpc: '2.0', id, error: { code: -32601, message: 'unknown' } });
  }
}
