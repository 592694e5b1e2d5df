import { createSuggestionBudget, suggestNearest } from '@toolhost/errors/problems';
import { findClientNames, joinNames } from '@toolhost/mcp-clients/clients';
import { newestStatefulRevision, revisions, statelessRevision } from '@toolhost/mcp-protocol/mcp';
import { estimateTokenCount } from '@toolhost/tool-config/tokens';
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
import type { Examination, ExaminedCall, ReportCheck } from './examine.ts';
import { asObject, type Fields, findStreamedMessage, getMediaType, type WebClient, type WebResponse } from './web.ts';

const clientInfo = { name: 'toolhost-doctor', version: '1' };

/** The examined server, and the token to send, if any. */
export type McpAddress = { web: WebClient; address: string; token: string | undefined };

function getAuthorization(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** Posts a message as clients of the Streamable HTTP transport do. */
export function post(
  { web, address, token }: McpAddress,
  message: Fields,
  headers: Record<string, string> = {},
): Promise<WebResponse> {
  return web.request(address, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...getAuthorization(token),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  });
}

export const initialize: Fields = {
  id: 1,
  method: 'initialize',
  params: { protocolVersion: newestStatefulRevision, capabilities: {}, clientInfo },
};

/** Returns the JSON-RPC message of a response, which is JSON or an event stream. */
function parseRpc(response: WebResponse): Fields | undefined {
  return getMediaType(response.headers) === 'text/event-stream' ? findStreamedMessage(response.text) : response.json;
}

export const getResult = (rpc: Fields | undefined): Fields => asObject(rpc?.result);

const firstResponseVerdicts: { readonly [status: number]: Verdict } = {
  401: ok('A request without a credential is rejected with 401.'),
  403: problem('A request without a credential is rejected with 403, but clients log in only after 401.'),
  404: problem('The server has nothing at this URL (404). Check the path.'),
  405: problem(
    'The server does not accept POST (405). The URL may be that of a web page, or of the older SSE transport.',
  ),
  406: problem('The server rejects clients that accept both JSON and event streams (406), as all clients do.'),
};

/** Checks the response to `initialize` without a credential. */
export function checkFirstResponse(response: WebResponse): Verdict {
  const { status, headers } = response;
  const verdict = firstResponseVerdicts[status];
  if (verdict) return verdict;
  if (status >= 300 && status < 400) {
    const target = URL.parse(headers.get('location') ?? '', response.url);
    return problem(
      `The server responds with a redirect (${status})${target ? ` to ${target.origin}${target.pathname}` : ''}. Clients lose the message or the credential when they follow it, so use the target URL instead.`,
    );
  }
  if (status !== 200) return problem(`The server responds to initialize with ${status}.`);
  const type = getMediaType(headers);
  if (type !== 'application/json' && type !== 'text/event-stream')
    return problem(
      `The response is ${type || 'without a Content-Type'}. An MCP server responds with application/json or text/event-stream.`,
    );
  return parseRpc(response)
    ? ok('The server responds without a credential.')
    : problem('The response is not a JSON-RPC message.');
}

/** Checks the result of `initialize` (MCP 2025-11-25, lifecycle). */
export function checkInitialize(result: Fields): Verdict {
  const { protocolVersion, capabilities, serverInfo } = result;
  if (typeof protocolVersion !== 'string') return problem('The response to initialize has no protocolVersion.');
  if (typeof asObject(serverInfo).name !== 'string')
    return problem('The response to initialize has no serverInfo with a name.');
  if (!('tools' in asObject(capabilities)))
    return problem('The response to initialize does not announce tools, so clients request none.');
  if (!revisions.some((revision) => revision === protocolVersion))
    return warning(`The server uses revision ${JSON.stringify(protocolVersion)}, which few clients support.`);
  return ok(`Revision ${protocolVersion}.`);
}

/** A stateful session. Every request after `initialize` repeats its revision and its session ID, if it has one. */
type McpSession = { target: McpAddress; headers: Record<string, string>; hasId: boolean };

function createSession(target: McpAddress, response: WebResponse): McpSession {
  const { protocolVersion } = getResult(parseRpc(response));
  const id = response.headers.get('mcp-session-id');
  const headers = {
    'mcp-protocol-version': String(protocolVersion ?? newestStatefulRevision),
    ...(id !== null && { 'mcp-session-id': id }),
  };
  return { target, headers, hasId: id !== null };
}

async function checkNotification({ target, headers }: McpSession): Promise<Verdict> {
  const { status } = await post(target, { method: 'notifications/initialized' }, headers);
  if (status === 202) return ok('202, as the protocol requires.');
  if (status < 300) return warning(`The server responds to notifications/initialized with ${status} instead of 202.`);
  return problem(`The server responds to notifications/initialized with ${status}, so clients give up.`);
}

async function checkUnknownMethod({ target, headers }: McpSession): Promise<Verdict> {
  const response = await post(target, { id: 7, method: 'toolhost/doctor' }, headers);
  const error = asObject(parseRpc(response)?.error);
  if (typeof error.code === 'number') return ok('The server responds to an unknown method with a JSON-RPC error.');
  return warning(
    `The server responds to an unknown method with ${response.status} and no JSON-RPC error, but newer clients try methods first.`,
  );
}

/**
 * Checks GET, which clients open to receive server messages. 405 means that there are none (MCP 2025-11-25,
 * transports).
 */
async function checkGet({ target: { web, address, token }, headers }: McpSession): Promise<Verdict> {
  const response = await web.request(address, {
    headers: { ...headers, ...getAuthorization(token), accept: 'text/event-stream' },
    isHeadOnly: true,
  });
  if (response.status === 405) return ok('The server responds to GET with 405, so it sends no messages of its own.');
  if (response.status === 200 && getMediaType(response.headers) === 'text/event-stream')
    return ok('GET opens an event stream.');
  return warning(`The server responds to GET with ${response.status}. Expected: 405, or an event stream.`);
}

/**
 * Ends a session as clients do that no longer need it. 405 means that the server does not allow that (MCP 2025-11-25,
 * transports).
 */
async function endSession({ target: { web, address, token }, headers }: McpSession): Promise<Verdict> {
  const { status } = await web.request(address, {
    method: 'DELETE',
    headers: { ...headers, ...getAuthorization(token) },
    isHeadOnly: true,
  });
  if (status === 405) return ok('The server responds to DELETE with 405, so it ends its sessions itself.', []);
  if (status < 300) return ok('The session of this check was ended.', []);
  return warning(`The server responds to DELETE with ${status}. Expected: a success status, or 405.`, []);
}

const maxPages = 50;

/** Returns all tools, read page by page, or the reason why they cannot be read. */
async function listTools({ target, headers }: McpSession): Promise<Fields[] | string> {
  const tools: Fields[] = [];
  const cursors = new Set<unknown>();
  let cursor: unknown;
  for (let page = 0; page < maxPages; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const response = await post(target, { id: 10 + page, method: 'tools/list', params }, headers);
    const rpc = parseRpc(response);
    const pageTools = getResult(rpc).tools;
    if (!Array.isArray(pageTools))
      return `The server responds to tools/list with ${response.status} and ${describeRpc(rpc)}.`;
    tools.push(...pageTools.map(asObject));
    cursor = getResult(rpc).nextCursor;
    if (cursor === undefined || cursor === null) return tools;
    if (cursors.has(cursor)) return 'tools/list repeats a cursor, so clients never reach the end.';
    cursors.add(cursor);
  }
  return `tools/list has more than ${maxPages} pages.`;
}

function describeRpc(rpc: Fields | undefined): string {
  const { code } = asObject(rpc?.error);
  if (typeof code === 'number') return `the JSON-RPC error ${code}`;
  return rpc ? 'a result without tools' : 'no JSON-RPC message';
}

/**
 * Checks which protocol generations the server supports. Lack of the stateless one is not a problem, because clients
 * fall back.
 */
async function checkStateless(target: McpAddress): Promise<Verdict> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': statelessRevision,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': clientInfo,
  };
  const response = await post(
    target,
    { id: 5, method: 'server/discover', params: { _meta: meta } },
    { 'mcp-protocol-version': statelessRevision, 'mcp-method': 'server/discover' },
  );
  const { supportedVersions } = getResult(parseRpc(response));
  if (Array.isArray(supportedVersions) && supportedVersions.includes(statelessRevision))
    return ok(`Revision ${statelessRevision} is supported, too.`);
  if (response.status >= 500)
    return problem(`The server responds to server/discover with ${response.status}, but newer clients send it first.`);
  if (response.status === 401 || response.status === 403)
    return problem(
      `The server responds to server/discover with ${response.status} although initialize succeeded, so clients ask to log in again.`,
    );
  return ok(`Revision ${statelessRevision} is not supported. Newer clients fall back to the handshake.`);
}

/** Examines everything after the login: the handshake, the tools, a call, and the requests of newer clients. */
export async function examineSession(
  target: McpAddress,
  response: WebResponse,
  { address, report, call }: Examination,
): Promise<void> {
  const rpc = parseRpc(response);
  if (report('handshake', 'The server introduces itself', checkInitialize(getResult(rpc))).status === 'problem') return;
  const session = createSession(target, response);
  report('notification', 'The handshake is completed', await checkNotification(session));
  const tools = await listTools(session);
  if (typeof tools === 'string') report('tool_list', 'The tool list is well-formed', problem(tools));
  else {
    reportTools(tools, address, report);
    if (call) report('call', `The tool ${call.tool} is called`, await checkCall(session, tools, call));
  }
  report('unknown_method', 'Unknown methods get a response', await checkUnknownMethod(session));
  report('get', 'GET gets a response', await checkGet(session));
  report('stateless', 'The newest revision', await checkStateless(target));
  if (session.hasId) report('session', 'The session is ended', await endSession(session));
}

function reportTools(tools: readonly Fields[], address: string, report: ReportCheck): void {
  const names = tools.map(({ name }) => String(name));
  const definitions = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  report('tool_list', 'The tool list is well-formed', checkToolList(tools));
  report('tool_count', 'The number of tools is within limits', checkToolCount(tools.length));
  report('tool_names', 'The tool names are usable', checkToolNames(names, getServerName(address)));
  report('tool_hints', 'The tools have annotations', checkHints(tools));
  report('tool_schemas', 'Every client accepts the tool schemas', checkSchemas(tools));
  report(
    'token_estimate',
    'The tool list is affordable',
    checkTokens(estimateTokenCount(JSON.stringify(definitions).length)),
  );
}

/** Returns the name that people would give the server in their client. */
function getServerName(address: string): string {
  const { hostname, pathname } = new URL(address);
  const lastSegment = pathname.split('/').findLast((segment) => segment !== '' && segment !== 'mcp');
  return lastSegment ?? (hostname.split('.').at(-2) || hostname);
}

const blockTypes = new Set(['text', 'image', 'audio', 'resource', 'resource_link']);
const maxTextLength = 300;

/** Calls one tool and checks the form of its result (MCP 2025-11-25, server/tools). */
async function checkCall(
  { target, headers }: McpSession,
  tools: readonly Fields[],
  call: ExaminedCall,
): Promise<Verdict> {
  const tool = tools.find(({ name }) => name === call.tool);
  if (!tool) {
    const names = tools.map(({ name }) => String(name));
    return problem(`There is no such tool${suggestNearest(call.tool, names, createSuggestionBudget())}.`, []);
  }
  const isReadOnly = asObject(tool.annotations).readOnlyHint === true;
  if (!isReadOnly && !(await call.confirmChange()))
    return warning(
      'The tool was not called, because it is not marked as read-only (readOnlyHint). Use --yes to call it anyway.',
      [],
    );
  const params = { name: call.tool, arguments: call.arguments };
  const response = await post(target, { id: 20, method: 'tools/call', params }, headers);
  const rpc = parseRpc(response);
  if (!rpc || !('result' in rpc || 'error' in rpc))
    return problem(`The server responds to tools/call with ${response.status} and no JSON-RPC message.`);
  const { code, message } = asObject(rpc.error);
  if (typeof code === 'number')
    return problem(`The server responds to tools/call with the JSON-RPC error ${code}: ${toVisibleText(message)}`);
  return checkResult(getResult(rpc), tool);
}

function checkResult(result: Fields, tool: Fields): Verdict {
  const { content, structuredContent, isError } = result;
  if (!Array.isArray(content)) return problem('The result has no content list, which clients expect.');
  const types = content.map((block) => String(asObject(block).type));
  const unknown = types.find((type) => !blockTypes.has(type));
  if (unknown !== undefined) return problem(`The result has a block of the unknown type ${JSON.stringify(unknown)}.`);
  const text = content.map((block) => asObject(block).text).find((value) => typeof value === 'string');
  if (isError === true) return warning(`The tool reports an error: ${toVisibleText(text)}`, []);
  if (tool.outputSchema !== undefined && structuredContent === undefined)
    return problem('The tool has an outputSchema, but its result has no structuredContent, so SDKs reject it.');
  const strict = findClientNames(({ requiresObjects }) => requiresObjects);
  if (structuredContent === undefined && isBareJson(text))
    return warning(
      `The text is JSON but not an object. ${joinNames(strict)} fails without structuredContent such as {"result": …}.`,
      strict,
    );
  return ok(`The result has ${types.length === 0 ? 'no blocks' : types.join(', ')}: ${toVisibleText(text)}`, []);
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
function toVisibleText(text: unknown): string {
  if (typeof text !== 'string') return '(no text)';
  const line = text.replaceAll(/[\p{C}\s]+/gu, ' ').trim();
  return line.length > maxTextLength ? `${line.slice(0, maxTextLength)}…` : line;
}
