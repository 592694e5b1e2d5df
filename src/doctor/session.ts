import { modernRevision, newestLegacyRevision, revisions } from '../domain/mcp.ts';
import { type Fields, objectOf, ok, problem, type Verdict, warning } from './check.ts';
import { type Answered, streamedMessage, typeOfAnswer, type WebClient } from './web.ts';

const clientInfo = { name: 'toolhost-doctor', version: '1' };

/** The server under examination, and the token to send, if any. */
export type McpAddress = { web: WebClient; address: string; token: string | undefined };

function authorizationOf(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** Posts a message as clients of the Streamable HTTP transport do. */
export function post(
  { web, address, token }: McpAddress,
  message: Fields,
  headers: Record<string, string> = {},
): Promise<Answered> {
  return web.ask(address, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...authorizationOf(token),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  });
}

export const initialize: Fields = {
  id: 1,
  method: 'initialize',
  params: { protocolVersion: newestLegacyRevision, capabilities: {}, clientInfo },
};

/** The JSON-RPC message of an answer, which is JSON or an event stream. */
export function rpcOf(page: Answered): Fields | undefined {
  return typeOfAnswer(page.headers) === 'text/event-stream' ? streamedMessage(page.text) : page.json;
}

export const resultOf = (rpc: Fields | undefined): Fields => objectOf(rpc?.result);

/** Checks the result of `initialize` (MCP 2025-11-25, lifecycle). */
export function checkInitialize(result: Fields): Verdict {
  const { protocolVersion, capabilities, serverInfo } = result;
  if (typeof protocolVersion !== 'string') return problem('The answer to initialize has no protocolVersion.');
  if (typeof objectOf(serverInfo).name !== 'string')
    return problem('The answer to initialize has no serverInfo with a name.');
  if (!('tools' in objectOf(capabilities)))
    return problem('The answer to initialize does not announce tools, so clients ask for none.');
  if (!revisions.some((revision) => revision === protocolVersion))
    return warning(`The server wants revision ${JSON.stringify(protocolVersion)}, which few clients know.`);
  return ok(`Revision ${protocolVersion}.`);
}

/** A legacy session: everything after `initialize` repeats its revision and its session id, where it has one. */
export type McpSession = { at: McpAddress; headers: Record<string, string>; hasId: boolean };

export function sessionOf(at: McpAddress, opened: Answered): McpSession {
  const { protocolVersion } = resultOf(rpcOf(opened));
  const id = opened.headers.get('mcp-session-id');
  const headers = {
    'mcp-protocol-version': String(protocolVersion ?? newestLegacyRevision),
    ...(id !== null && { 'mcp-session-id': id }),
  };
  return { at, headers, hasId: id !== null };
}

export async function checkNotification({ at, headers }: McpSession): Promise<Verdict> {
  const { status } = await post(at, { method: 'notifications/initialized' }, headers);
  if (status === 202) return ok('202, as the protocol wants it.');
  if (status < 300) return warning(`notifications/initialized is answered with ${status} instead of 202.`);
  return problem(`notifications/initialized is answered with ${status}; clients give up there.`);
}

export async function checkUnknownMethod({ at, headers }: McpSession): Promise<Verdict> {
  const page = await post(at, { id: 7, method: 'toolhost/doctor' }, headers);
  const error = objectOf(rpcOf(page)?.error);
  if (typeof error.code === 'number') return ok('An unknown method is answered with a JSON-RPC error.');
  return warning(
    `An unknown method is answered with ${page.status} and no JSON-RPC error; newer clients try methods first.`,
  );
}

/** Clients open a GET for messages of the server; 405 says that there are none (MCP 2025-11-25, transports). */
export async function checkGet({ at: { web, address, token }, headers }: McpSession): Promise<Verdict> {
  const page = await web.ask(address, {
    headers: { ...headers, ...authorizationOf(token), accept: 'text/event-stream' },
    headOnly: true,
  });
  if (page.status === 405) return ok('GET is answered with 405: no messages of the server.');
  if (page.status === 200 && typeOfAnswer(page.headers) === 'text/event-stream')
    return ok('GET opens an event stream.');
  return warning(`GET is answered with ${page.status}; expected: 405, or an event stream.`);
}

/** Clients that no longer need a session end it; 405 says that a server does not let them (MCP 2025-11-25, transports). */
export async function endSession({ at: { web, address, token }, headers }: McpSession): Promise<Verdict> {
  const { status } = await web.ask(address, {
    method: 'DELETE',
    headers: { ...headers, ...authorizationOf(token) },
    headOnly: true,
  });
  if (status === 405) return ok('DELETE is answered with 405: the server ends its sessions itself.', []);
  if (status < 300) return ok('The session of this examination is ended.', []);
  return warning(`DELETE is answered with ${status}; expected: a status of success, or 405.`, []);
}

const mostPages = 50;

/** All tools, page by page; or the reason why they cannot be read. */
export async function listTools({ at, headers }: McpSession): Promise<Fields[] | string> {
  const tools: Fields[] = [];
  const cursors = new Set<unknown>();
  let cursor: unknown;
  for (let page = 0; page < mostPages; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await post(at, { id: 10 + page, method: 'tools/list', params }, headers);
    const rpc = rpcOf(answer);
    const found = resultOf(rpc).tools;
    if (!Array.isArray(found)) return `tools/list is answered with ${answer.status} and ${summaryOf(rpc)}.`;
    tools.push(...found.map(objectOf));
    cursor = resultOf(rpc).nextCursor;
    if (cursor === undefined || cursor === null) return tools;
    if (cursors.has(cursor)) return 'tools/list repeats a cursor, so clients never reach the end.';
    cursors.add(cursor);
  }
  return `tools/list has more than ${mostPages} pages.`;
}

function summaryOf(rpc: Fields | undefined): string {
  const { code } = objectOf(rpc?.error);
  if (typeof code === 'number') return `the JSON-RPC error ${code}`;
  return rpc ? 'a result without tools' : 'no JSON-RPC message';
}

/** Which eras of the protocol are answered. Missing the modern one is no fault: clients fall back. */
export async function checkModern(at: McpAddress): Promise<Verdict> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': modernRevision,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': clientInfo,
  };
  const page = await post(
    at,
    { id: 5, method: 'server/discover', params: { _meta: meta } },
    { 'mcp-protocol-version': modernRevision, 'mcp-method': 'server/discover' },
  );
  const { supportedVersions } = resultOf(rpcOf(page));
  if (Array.isArray(supportedVersions) && supportedVersions.includes(modernRevision))
    return ok(`Revision ${modernRevision} is answered, too.`);
  if (page.status >= 500)
    return problem(`server/discover is answered with ${page.status}; newer clients send it first.`);
  if (page.status === 401 || page.status === 403)
    return problem(
      `server/discover is answered with ${page.status} although initialize was not; clients ask to log in again.`,
    );
  return ok(`Revision ${modernRevision} is not answered; newer clients fall back to the handshake.`);
}
