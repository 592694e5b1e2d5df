import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { DatabaseSync } from 'node:sqlite';
import { openDatabase } from './database.ts';
import { ApiError } from './errors.ts';
import { parseQuery, rejectPaging } from './filters.ts';
import { openApiDocument } from './openapi.ts';
import { deleteRows, insertRows, selectRows, updateRows } from './rows.ts';
import { getTable, parseRow } from './tables.ts';

// An import of node:http would also load Node's own undici: 16 MB and 25 ms at each start of local mode.
const { createServer } = process.getBuiltinModule('node:http');

const maxBodyBytes = 1024 * 1024;

interface Reply {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

interface ProjectsApi {
  url: string;
  port: number;
  close(): Promise<void>;
}

/** Upstream of the worked example (spec 2.5): two tables over HTTP in the style of PostgREST. */
export async function startProjectsApi(options: { host: string; port: number; file: string }): Promise<ProjectsApi> {
  const database = openDatabase(options.file);
  const server = createServer(async (request, response) => {
    send(response, await handleRequest(database, request).catch(replyToError));
  });
  try {
    server.listen(options.port, options.host);
    await once(server, 'listening');
  } catch (error) {
    database.close();
    throw error;
  }
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : options.port;
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return {
    url: `http://${host}:${port}`,
    port,
    async close() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      database.close();
    },
  };
}

async function handleRequest(database: DatabaseSync, request: IncomingMessage): Promise<Reply> {
  if (request.url === '/openapi.json') return { status: 200, body: openApiDocument };
  checkKey(request.headers.apikey);
  const [path = '', ...rest] = (request.url ?? '').split('?');
  const table = getTable(/^\/rest\/v1\/([^/]+)$/.exec(path)?.[1] ?? path);
  const search = new URLSearchParams(rest.join('?'));
  const query = parseQuery(table, search);
  if (request.method !== 'GET') rejectPaging(search);
  switch (request.method) {
    case 'GET':
      return { status: 200, body: selectRows(database, table, query) };
    case 'POST': {
      const body = await readJson(request);
      const rows = (Array.isArray(body) ? body : [body]).map((row: unknown) => parseRow(table, row));
      return replyToWrite(request, 201, insertRows(database, table, query, rows));
    }
    case 'PATCH': {
      const values = parseRow(table, await readJson(request));
      return replyToWrite(request, 200, updateRows(database, table, query, values));
    }
    case 'DELETE':
      return replyToWrite(request, 200, deleteRows(database, table, query));
    default:
      return {
        status: 405,
        headers: { Allow: 'GET, POST, PATCH, DELETE' },
        body: new ApiError(405, 'PGRST117', `Unsupported HTTP method: ${request.method}`).body,
      };
  }
}

function checkKey(apiKey: string | string[] | undefined): void {
  // The README publishes the key, which protects only sample data, so a constant-time comparison is unnecessary.
  if (apiKey === 'local-example-key') return;
  throw new ApiError(401, null, apiKey === undefined ? 'No API key found in request' : 'Invalid API key', {
    hint: 'Send the key of this example in the header apikey.',
  });
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Reads a body to its end even if it is too long, because a caller that is still sending might miss the response.
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= maxBodyBytes) chunks.push(chunk);
  }
  if (size > maxBodyBytes) throw new ApiError(413, null, 'The request body is longer than 1 MB');
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)));
  } catch {
    throw new ApiError(400, 'PGRST102', 'Empty or invalid json');
  }
}

/** Returns an empty 204 for a write without `Prefer: return=representation` (spec 4.3.10). */
function replyToWrite(request: IncomingMessage, status: number, rows: unknown[]): Reply {
  const preferences = String(request.headers.prefer ?? '').split(',');
  if (!preferences.some((preference) => preference.trim() === 'return=representation')) return { status: 204 };
  return { status, body: rows, headers: { 'Preference-Applied': 'return=representation' } };
}

function replyToError(error: unknown): Reply {
  if (error instanceof ApiError) return { status: error.status, body: error.body };
  return { status: 500, body: new ApiError(500, 'XX000', 'Internal error', { details: String(error) }).body };
}

function send(response: ServerResponse, reply: Reply): void {
  if (reply.body === undefined) {
    response.writeHead(reply.status, reply.headers).end();
    return;
  }
  const body = JSON.stringify(reply.body);
  response
    .writeHead(reply.status, {
      ...reply.headers,
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
    })
    .end(body);
}
