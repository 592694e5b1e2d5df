import assert from 'node:assert/strict';
import type { Json, Reply } from './toolhost/toolhost.ts';
import { statelessMeta } from './toolhost/toolhost.ts';

export type RpcErrorBody = { code: number; message: string; data?: Json };

export function getRpcError(reply: Reply): RpcErrorBody {
  assert.ok(reply.body.error, `no error: ${reply.status} ${reply.text}`);
  return reply.body.error as RpcErrorBody;
}

export function getRpcResult(reply: Reply): Json {
  assert.ok(reply.body.result, `no result: ${reply.status} ${reply.text}`);
  return reply.body.result as Json;
}

/** Id of an error response to an unreadable message: the member is absent, not null. */
export const absentId = Symbol('no id');

/** Asserts the HTTP status, JSON-RPC code, and echoed id of a refusal. Returns the message. */
export function assertRefused(reply: Reply, status: number, code: number, id: unknown = 1): string {
  const rpcError = getRpcError(reply);
  const responseId = 'id' in reply.body ? reply.body.id : absentId;
  assert.deepEqual([reply.status, rpcError.code, responseId], [status, code, id], reply.text);
  assert.match(reply.headers.get('content-type') ?? '', /^application\/json/);
  assert.equal(reply.body.jsonrpc, '2.0');
  return rpcError.message;
}

/** Builds a request of revision 2026-07-28 as an object. */
export function buildStatelessMessage(method: string, params: Json = {}, id: unknown = 1): Json {
  return { jsonrpc: '2.0', id, method, params: { _meta: statelessMeta, ...params } };
}

/** Returns the headers that mirror the body of a stateless request. */
export function mirrorHeaders(method: string, name?: string): Record<string, string> {
  return {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(name !== undefined && { 'mcp-name': name }),
  };
}

/** Builds a hosted server with a recording upstream. The server is open unless `more` sets its authentication. */
export function buildEchoConfig(upstream: string, more: Json = {}): Json {
  return {
    name: 'Echo',
    slug: 'echo',
    description: 'Says again what it was told.',
    tools: [
      {
        name: 'echo',
        description: 'Gives back the text that it was given.',
        method: 'GET',
        url: `${upstream}/echo`,
        input_schema: { text: { type: 'string', optional: true }, times: { type: 'integer', optional: true } },
      },
      {
        name: 'note',
        description: 'Stores a note and gives it back.',
        method: 'POST',
        url: `${upstream}/notes`,
        input_schema: { text: { type: 'string' } },
      },
    ],
    ...more,
  };
}
