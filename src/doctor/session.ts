import { clientsThat, inWords } from '../domain/clients/clients.ts';
import { modernRevision, newestLegacyRevision, revisions } from '../domain/mcp.ts';
import { tokensOfLength } from '../domain/pieces/tokens.ts';
import { nearest, newGuesses } from '../domain/problems.ts';
import {
  checkHints,
  checkSchemas,
  checkTokens,
  checkToolCount,
  checkToolList,
  checkToolNames,
  ok,
  problem,
  type Verdict,
  warning,
} from './checks.ts';
import type { CallToTry, Examination, ReportCheck } from './examine.ts';
import { type Answered, type Fields, objectOf, streamedMessage, typeOfAnswer, type WebClient } from './web.ts';

const clientInfo = { name: 'toolhost-doctor', version: '1' };

/** The examined server, and the token to send, if any. */
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

/** Returns the JSON-RPC message of a response, which is JSON or an event stream. */
function rpcOf(page: Answered): Fields | undefined {
  return typeOfAnswer(page.headers) === 'text/event-stream' ? streamedMessage(page.text) : page.json;
}

export const resultOf = (rpc: Fields | undefined): Fields => objectOf(rpc?.result);

const firstAnswers: { readonly [status: number]: Verdict } = {
  401: ok('A request without a credential is rejected with 401.'),
  403: problem('A request without a credential is rejected with 403, but clients log in only after 401.'),
  404: problem('The server has nothing at this URL (404). Check the path.'),
  405: problem(
    'The server does not accept POST (405). The URL may be that of a web page, or of the older SSE transport.',
  ),
  406: problem('The server rejects clients that accept both JSON and event streams (406), as all clients do.'),
};

/** Checks the response to `initialize` without a credential. */
export function checkFirstAnswer(page: Answered): Verdict {
  const { status, headers } = page;
  const known = firstAnswers[status];
  if (known) return known;
  if (status >= 300 && status < 400) {
    const target = URL.parse(headers.get('location') ?? '', page.url);
    return problem(
      `The server responds with a redirect (${status})${target ? ` to ${target.origin}${target.pathname}` : ''}. Clients lose the message or the credential when they follow it, so use the target URL instead.`,
    );
  }
  if (status !== 200) return problem(`The server responds to initialize with ${status}.`);
  const type = typeOfAnswer(headers);
  if (type !== 'application/json' && type !== 'text/event-stream')
    return problem(
      `The response is ${type || 'without a Content-Type'}. An MCP server responds with application/json or text/event-stream.`,
    );
  return rpcOf(page)
    ? ok('The server responds without a credential.')
    : problem('The response is not a JSON-RPC message.');
}

/** Checks the result of `initialize` (MCP 2025-11-25, lifecycle). */
export function checkInitialize(result: Fields): Verdict {
  const { protocolVersion, capabilities, serverInfo } = result;
  if (typeof protocolVersion !== 'string') return problem('The response to initialize has no protocolVersion.');
  if (typeof objectOf(serverInfo).name !== 'string')
    return problem('The response to initialize has no serverInfo with a name.');
  if (!('tools' in objectOf(capabilities)))
    return problem('The response to initialize does not announce tools, so clients request none.');
  if (!revisions.some((revision) => revision === protocolVersion))
    return warning(`The server uses revision ${JSON.stringify(protocolVersion)}, which few clients support.`);
  return ok(`Revision ${protocolVersion}.`);
}

/** A stateful session. Every request after `initialize` repeats its revision and its session ID, if it has one. */
type McpSession = { at: McpAddress; headers: Record<string, string>; hasId: boolean };

function sessionOf(at: McpAddress, opened: Answered): McpSession {
  const { protocolVersion } = resultOf(rpcOf(opened));
  const id = opened.headers.get('mcp-session-id');
  const headers = {
    'mcp-protocol-version': String(protocolVersion ?? newestLegacyRevision),
    ...(id !== null && { 'mcp-session-id': id }),
  };
  return { at, headers, hasId: id !== null };
}

async function checkNotification({ at, headers }: McpSession): Promise<Verdict> {
  const { status } = await post(at, { method: 'notifications/initialized' }, headers);
  if (status === 202) return ok('202, as the protocol requires.');
  if (status < 300) return warning(`The server responds to notifications/initialized with ${status} instead of 202.`);
  return problem(`The server responds to notifications/initialized with ${status}, so clients give up.`);
}

async function checkUnknownMethod({ at, headers }: McpSession): Promise<Verdict> {
  const page = await post(at, { id: 7, method: 'toolhost/doctor' }, headers);
  const error = objectOf(rpcOf(page)?.error);
  if (typeof error.code === 'number') return ok('The server responds to an unknown method with a JSON-RPC error.');
  return warning(
    `The server responds to an unknown method with ${page.status} and no JSON-RPC error, but newer clients try methods first.`,
  );
}

/**
 * Checks GET, which clients open to receive server messages. 405 means that there are none (MCP 2025-11-25,
 * transports).
 */
async function checkGet({ at: { web, address, token }, headers }: McpSession): Promise<Verdict> {
  const page = await web.ask(address, {
    headers: { ...headers, ...authorizationOf(token), accept: 'text/event-stream' },
    headOnly: true,
  });
  if (page.status === 405) return ok('The server responds to GET with 405, so it sends no messages of its own.');
  if (page.status === 200 && typeOfAnswer(page.headers) === 'text/event-stream')
    return ok('GET opens an event stream.');
  return warning(`The server responds to GET with ${page.status}. Expected: 405, or an event stream.`);
}

/**
 * Ends a session as clients do that no longer need it. 405 means that the server does not allow that (MCP 2025-11-25,
 * transports).
 */
async function endSession({ at: { web, address, token }, headers }: McpSession): Promise<Verdict> {
  const { status } = await web.ask(address, {
    method: 'DELETE',
    headers: { ...headers, ...authorizationOf(token) },
    headOnly: true,
  });
  if (status === 405) return ok('The server responds to DELETE with 405, so it ends its sessions itself.', []);
  if (status < 300) return ok('The session of this check was ended.', []);
  return warning(`The server responds to DELETE with ${status}. Expected: a success status, or 405.`, []);
}

const mostPages = 50;

/** Returns all tools, read page by page, or the reason why they cannot be read. */
async function listTools({ at, headers }: McpSession): Promise<Fields[] | string> {
  const tools: Fields[] = [];
  const cursors = new Set<unknown>();
  let cursor: unknown;
  for (let page = 0; page < mostPages; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await post(at, { id: 10 + page, method: 'tools/list', params }, headers);
    const rpc = rpcOf(answer);
    const found = resultOf(rpc).tools;
    if (!Array.isArray(found)) return `The server responds to tools/list with ${answer.status} and ${summaryOf(rpc)}.`;
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

/**
 * Checks which protocol generations the server supports. Lack of the stateless one is not a problem, because clients
 * fall back.
 */
async function checkModern(at: McpAddress): Promise<Verdict> {
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
    return ok(`Revision ${modernRevision} is supported, too.`);
  if (page.status >= 500)
    return problem(`The server responds to server/discover with ${page.status}, but newer clients send it first.`);
  if (page.status === 401 || page.status === 403)
    return problem(
      `The server responds to server/discover with ${page.status} although initialize succeeded, so clients ask to log in again.`,
    );
  return ok(`Revision ${modernRevision} is not supported. Newer clients fall back to the handshake.`);
}

/** Examines everything after the login: the handshake, the tools, a call, and the requests of newer clients. */
export async function examineSession(
  at: McpAddress,
  opened: Answered,
  { address, report, call }: Examination,
): Promise<void> {
  const rpc = rpcOf(opened);
  if (report('handshake', 'The server introduces itself', checkInitialize(resultOf(rpc))).status === 'problem') return;
  const session = sessionOf(at, opened);
  report('notification', 'The handshake is completed', await checkNotification(session));
  const tools = await listTools(session);
  if (typeof tools === 'string') report('tool_list', 'The tool list is well-formed', problem(tools));
  else {
    reportTools(tools, address, report);
    if (call) report('call', `The tool ${call.tool} is called`, await checkCall(session, tools, call));
  }
  report('unknown_method', 'Unknown methods get a response', await checkUnknownMethod(session));
  report('get', 'GET gets a response', await checkGet(session));
  report('modern', 'The newest revision', await checkModern(at));
  if (session.hasId) report('session', 'The session is ended', await endSession(session));
}

function reportTools(tools: readonly Fields[], address: string, report: ReportCheck): void {
  const names = tools.map(({ name }) => String(name));
  const cost = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  report('tool_list', 'The tool list is well-formed', checkToolList(tools));
  report('tool_count', 'The number of tools is within limits', checkToolCount(tools.length));
  report('tool_names', 'The tool names are usable', checkToolNames(names, nameOf(address)));
  report('tool_hints', 'The tools have annotations', checkHints(tools));
  report('tool_schemas', 'Every client accepts the tool schemas', checkSchemas(tools));
  report('token_estimate', 'The tool list is affordable', checkTokens(tokensOfLength(JSON.stringify(cost).length)));
}

/** Returns the name that people would give the server in their client. */
function nameOf(address: string): string {
  const { hostname, pathname } = new URL(address);
  const last = pathname.split('/').findLast((part) => part !== '' && part !== 'mcp');
  return last ?? (hostname.split('.').at(-2) || hostname);
}

const blockTypes = new Set(['text', 'image', 'audio', 'resource', 'resource_link']);
const shownCharacters = 300;

/** Calls one tool and checks the form of its result (MCP 2025-11-25, server/tools). */
async function checkCall({ at, headers }: McpSession, tools: readonly Fields[], call: CallToTry): Promise<Verdict> {
  const tool = tools.find(({ name }) => name === call.tool);
  if (!tool) {
    const names = tools.map(({ name }) => String(name));
    return problem(`There is no such tool${nearest(call.tool, names, newGuesses())}.`, []);
  }
  const isReading = objectOf(tool.annotations).readOnlyHint === true;
  if (!isReading && !(await call.mayChange()))
    return warning(
      'The tool was not called, because it is not marked as read-only (readOnlyHint). Use --yes to call it anyway.',
      [],
    );
  const params = { name: call.tool, arguments: call.arguments };
  const page = await post(at, { id: 20, method: 'tools/call', params }, headers);
  const rpc = rpcOf(page);
  if (!rpc || !('result' in rpc || 'error' in rpc))
    return problem(`The server responds to tools/call with ${page.status} and no JSON-RPC message.`);
  const { code, message } = objectOf(rpc.error);
  if (typeof code === 'number')
    return problem(`The server responds to tools/call with the JSON-RPC error ${code}: ${visible(message)}`);
  return checkResult(resultOf(rpc), tool);
}

function checkResult(result: Fields, tool: Fields): Verdict {
  const { content, structuredContent, isError } = result;
  if (!Array.isArray(content)) return problem('The result has no content list, which clients expect.');
  const types = content.map((block) => String(objectOf(block).type));
  const unknown = types.find((type) => !blockTypes.has(type));
  if (unknown !== undefined) return problem(`The result has a block of the unknown type ${JSON.stringify(unknown)}.`);
  const text = content.map((block) => objectOf(block).text).find((found) => typeof found === 'string');
  if (isError === true) return warning(`The tool reports an error: ${visible(text)}`, []);
  if (tool.outputSchema !== undefined && structuredContent === undefined)
    return problem('The tool has an outputSchema, but its result has no structuredContent, so SDKs reject it.');
  const strict = clientsThat(({ wantsObjects }) => wantsObjects);
  if (structuredContent === undefined && isBareJson(text))
    return warning(
      `The text is JSON but not an object. ${inWords(strict)} fails without structuredContent such as {"result": …}.`,
      strict,
    );
  return ok(`The result has ${types.length === 0 ? 'no blocks' : types.join(', ')}: ${visible(text)}`, []);
}

/** Returns true if a text is JSON but not an object. */
function isBareJson(text: unknown): boolean {
  try {
    const value: unknown = JSON.parse(String(text));
    return typeof value !== 'object' || value === null || Array.isArray(value);
  } catch {
    return false;
  }
}

/** Returns the beginning of a server text on one line, without characters that control a terminal. */
function visible(text: unknown): string {
  if (typeof text !== 'string') return '(no text)';
  const line = text.replaceAll(/[\p{C}\s]+/gu, ' ').trim();
  return line.length > shownCharacters ? `${line.slice(0, shownCharacters)}…` : line;
}
