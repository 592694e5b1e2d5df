import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listenLocally } from '../upstreams/local-server.ts';

type Json = { [field: string]: unknown };
type Responder = (request: IncomingMessage, response: ServerResponse) => void;

/** Another party's service that a person points the command line to. */
export type AdversarialService = {
  url: string;
  /** Method and path of each request, without the query. */
  readonly requests: string[];
  /** Sets the response to all further requests. */
  respondWith(respond: Responder): void;
  /** Environment in which commands use this service. */
  env: Record<string, string>;
  close(): void;
};

export async function startAdversarialService(): Promise<AdversarialService> {
  let respond: Responder = (_request, response) => void response.end();
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${new URL(request.url ?? '', 'http://x').pathname}`);
    response.on('error', () => undefined);
    respond(request, response);
  });
  const { url, close } = await listenLocally(server);
  return {
    url,
    requests,
    respondWith(nextResponder) {
      respond = nextResponder;
      requests.length = 0;
    },
    env: { TOOLHOST_URL: url, TOOLHOST_API_KEY: 'some-key' },
    close,
  };
}

/** Responds with JSON by the path below `/api/v1`. Every other path is not found. */
export function respondJson(getBody: (path: string, query: URLSearchParams) => unknown): Responder {
  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://x');
    const body = getBody(pathname.replace(/^\/api\/v1/, ''), searchParams);
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body ?? { code: 'x', detail: 'not found' }));
  };
}

const timestamp = '2026-11-22T10:00:00.000Z';

export function serverEntry(slug: string, more: Json = {}): Json {
  const defaults = {
    id: slug,
    name: slug,
    slug,
    url: 'https://x.example.com',
    access: 'oauth',
    tool_count: 1,
    version: 1,
  };
  return { ...defaults, created_at: timestamp, updated_at: timestamp, created_by: 'username', ...more };
}

export function buildConfig(slug: string, more: Json = {}): Json {
  const url = 'https://api.example.com/things/:id';
  const tool = { name: 'get', description: 'Gets it.', method: 'GET', url, input_schema: { id: { type: 'string' } } };
  const authentication = { type: 'ApiKey', header: 'X-Key', token: '********' };
  return { name: slug, slug, authentication, tools: [tool], ...more };
}

const limit = { from: 'default' };
const limits = { calls_per_second: limit, concurrent_calls: limit };

/** Returns the valid response about any server. */
export function buildValidResponse(path: string): unknown {
  const list = listEntries[path];
  if (list) return { [list.field]: [list.entry(1), list.entry(2)] };
  const [, slug = '', resource] = /^\/servers\/([^/]+)(?:\/(.*))?$/.exec(path) ?? [];
  if (slug === '') return undefined;
  if (resource === undefined)
    return { server: serverEntry(slug), config: buildConfig(slug), warnings: [], secrets: ['KEY'], copies: [] };
  if (resource === 'limits') return { ...limits, slug, workspace: limits, upstreams: [] };
  if (resource === 'secrets') return { secrets: [{ name: 'KEY', updated_at: timestamp, origins: [], used_by: [] }] };
  if (resource === 'tools/get/preview')
    return { request: { method: 'GET', url: 'https://x', headers: [['a', 'b']] }, curl: 'curl https://x' };
  if (resource === 'tools/get/call') return { content: [{ type: 'text', text: 'done' }], is_error: false };
  return undefined;
}

/** Entries of each list that commands read, by the path of the list, with the field that holds them. */
export const listEntries: { [path: string]: { field: string; entry: (index: number) => Json } } = {
  '/servers': { field: 'servers', entry: (index) => serverEntry(`server-${index}`, { label: 'mine' }) },
  '/calls': {
    field: 'calls',
    entry: (index) => ({
      ...{ id: `call_${index}`, at: new Date().toISOString(), server: 's', tool: 't', outcome: 'ok' },
      ...{ caller_kind: 'api_key', duration_ms: 1, bytes_in: 0, bytes_out: 0, request_id: 'r' },
    }),
  },
  '/audit': {
    field: 'events',
    entry: (index) => ({
      ...{ id: `event_${index}`, at: new Date().toISOString(), actor_kind: 'user', actor_id: 'u' },
      ...{ operation: 'o', detail: {}, request_id: 'r' },
    }),
  },
  '/grants': {
    field: 'grants',
    entry: (index) => ({
      id: `grt_${index}`,
      server: 's',
      client: 'c',
      scope: '',
      status: 'active',
      created_at: timestamp,
    }),
  },
  '/servers/one/versions': {
    field: 'versions',
    entry: (index) => ({ version: 1_000_000 - index, created_at: timestamp, created_by: 'u', config: {} }),
  },
};
