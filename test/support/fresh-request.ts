import { once } from 'node:events';
import { type Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Json } from './toolhost/toolhost.ts';

/**
 * Pause between two requests of a load, in ms. Processes that start and stop during the load need the processor, too.
 */
export const loadPauseMs = 5;

export type FreshReply = { status: number; headers: IncomingHttpHeaders; text: string; body: Json };

export type FreshRequest = {
  key?: string | undefined;
  method?: string;
  body?: Json;
  headers?: Record<string, string>;
  /** Keeps the connection for the next request. */
  agent?: Agent;
};

/**
 * Sends one request on a new connection, so that any worker may receive it, unless there is an `agent`. `headers` may
 * replace the Host header.
 */
export async function freshRequest(
  url: string,
  { key, method, body, headers, agent }: FreshRequest = {},
): Promise<FreshReply> {
  const outgoing = request(url, {
    agent: agent ?? false,
    method: method ?? (body ? 'POST' : 'GET'),
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
  });
  outgoing.end(body && JSON.stringify(body));
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const responseText = await text(response);
  const isJson = /json/.test(response.headers['content-type'] ?? '');
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: responseText,
    body: isJson ? (JSON.parse(responseText) as Json) : {},
  };
}

type ReplyWithStatus = { status: number; headers: Headers | IncomingHttpHeaders };

const isOverLimit = ({ status }: ReplyWithStatus) => status === 429;

/**
 * Repeats a request until it is not refused. A busy machine can overload a process or delay lists beyond their limit.
 * Like any client, this one waits for the time in Retry-After and sends the request again.
 */
export async function retryUntilServed<Reply extends ReplyWithStatus>(
  send: () => Promise<Reply>,
  isRefused: (reply: Reply) => boolean | Promise<boolean> = isOverLimit,
): Promise<Reply> {
  for (;;) {
    const reply = await send();
    if (!(await isRefused(reply))) return reply;
    const { headers } = reply;
    const seconds = headers instanceof Headers ? headers.get('retry-after') : headers['retry-after'];
    await delay(Number(seconds ?? 1) * 1000);
  }
}

/** Sends a `tools/call` on a new connection and repeats it while it is refused. The default tool is `get`. */
export async function freshCall(
  url: string,
  slug: string,
  { tool: name = 'get', ...options }: FreshRequest & { tool?: string } = {},
): Promise<FreshReply> {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } };
  return retryUntilServed(
    () => freshRequest(`${url}/mcp/${slug}`, { ...options, body }),
    ({ status, text: responseText }) => status === 503 && /overloaded\. The call was not made/.test(responseText),
  );
}
