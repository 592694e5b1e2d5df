import { buildStatelessMessage, mirrorHeaders } from './mcp.ts';
import type { Json, Reply, TestToolhost } from './toolhost/toolhost.ts';

/** Calls the tool `get` of a server. */
export const callGet = (toolhost: TestToolhost, slug: string, token: string, headers?: Record<string, string>) =>
  toolhost.rpc(slug, token, 'tools/call', { name: 'get', arguments: {} }, headers);

/** Calls the tool `get` several times simultaneously. */
export const callGetTimes = (toolhost: TestToolhost, slug: string, token: string, times: number) =>
  Promise.all(Array.from({ length: times }, () => callGet(toolhost, slug, token)));

/** Calls the tool `get` in a way that ends the call when the client disconnects. */
export const callUntil = (signal: AbortSignal, toolhost: TestToolhost, slug: string, token: string) =>
  fetch(`${toolhost.url}/mcp/${slug}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
      ...mirrorHeaders('tools/call', 'get'),
    },
    body: JSON.stringify(buildStatelessMessage('tools/call', { name: 'get', arguments: {} })),
    signal,
  });

export const countStatus = (replies: readonly Reply[], status: number) =>
  replies.filter((reply) => reply.status === status).length;

/** Returns the message of a JSON-RPC error, or 'undefined'. */
export const getErrorMessage = (reply: Reply | undefined) => String((reply?.body.error as Json | undefined)?.message);
