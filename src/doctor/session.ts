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
function rpcOf(page: Answered): Fields | undefined {
  return typeOfAnswer(page.headers) === 'text/event-stream' ? streamedMessage(page.text) : page.json;
}

export const resultOf = (rpc: Fields | undefined): Fields => objectOf(rpc?.result);

const firstAnswers: { readonly [status: number]: Verdict } = {
  401: ok('A request without a credential is refused with 401.'),
  403: problem('A request without a credential is answered with 403; clients log in only after 401.'),
  404: problem('There is nothing at this address (404); check the path.'),
  405: problem('The address does not take POST (405). It may be the address of a page, or of the older SSE transport.'),
  406: problem('It refuses clients that accept both JSON and event streams (406), as all of them do.'),
};

/** Checks the answer to `initialize` without a credential. */
export function checkFirstAnswer(page: Answered): Verdict {
  const { status, headers } = page;
  const known = firstAnswers[status];
  if (known) return known;
  if (status >= 300 && status < 400) {
    const target = URL.parse(headers.get('location') ?? '', page.url);
    return problem(
      `It answers with a redirect (${status})${target ? ` to ${target.origin}${target.pathname}` : ''}. Clients lose the message or the credential on the way; give them the address behind it.`,
    );
  }
  if (status !== 200) return problem(`initialize is answered with ${status}.`);
  const type = typeOfAnswer(headers);
  if (type !== 'application/json' && type !== 'text/event-stream')
    return problem(
      `The answer is ${type || 'without a Content-Type'}; an MCP server answers with application/json or text/event-stream.`,
    );
  return rpcOf(page) ? ok('It answers without a credential.') : problem('The answer is no JSON-RPC message.');
}

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
  if (status === 202) return ok('202, as the protocol wants it.');
  if (status < 300) return warning(`notifications/initialized is answered with ${status} instead of 202.`);
  return problem(`notifications/initialized is answered with ${status}; clients give up there.`);
}

async function checkUnknownMethod({ at, headers }: McpSession): Promise<Verdict> {
  const page = await post(at, { id: 7, method: 'toolhost/doctor' }, headers);
  const error = objectOf(rpcOf(page)?.error);
  if (typeof error.code === 'number') return ok('An unknown method is answered with a JSON-RPC error.');
  return warning(
    `An unknown method is answered with ${page.status} and no JSON-RPC error; newer clients try methods first.`,
  );
}

/** Clients open a GET for messages of the server; 405 says that there are none (MCP 2025-11-25, transports). */
async function checkGet({ at: { web, address, token }, headers }: McpSession): Promise<Verdict> {
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
async function endSession({ at: { web, address, token }, headers }: McpSession): Promise<Verdict> {
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
async function listTools({ at, headers }: McpSession): Promise<Fields[] | string> {
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
    return ok(`Revision ${modernRevision} is answered, too.`);
  if (page.status >= 500)
    return problem(`server/discover is answered with ${page.status}; newer clients send it first.`);
  if (page.status === 401 || page.status === 403)
    return problem(
      `server/discover is answered with ${page.status} although initialize was not; clients ask to log in again.`,
    );
  return ok(`Revision ${modernRevision} is not answered; newer clients fall back to the handshake.`);
}

/** Examines what follows the login: the handshake, the tools, a call, and what newer clients send. */
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
  if (typeof tools === 'string') report('tool_list', 'The list of tools is well-formed', problem(tools));
  else {
    reportTools(tools, address, report);
    if (call) report('call', `The tool ${call.tool} is called`, await checkCall(session, tools, call));
  }
  report('unknown_method', 'Unknown methods are answered', await checkUnknownMethod(session));
  report('get', 'GET is answered', await checkGet(session));
  report('modern', 'The newest revision', await checkModern(at));
  if (session.hasId) report('session', 'The session is ended', await endSession(session));
}

function reportTools(tools: readonly Fields[], address: string, report: ReportCheck): void {
  const names = tools.map(({ name }) => String(name));
  const cost = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  report('tool_list', 'The list of tools is well-formed', checkToolList(tools));
  report('tool_count', 'The number of tools is within limits', checkToolCount(tools.length));
  report('tool_names', 'The names of the tools are usable', checkToolNames(names, nameOf(address)));
  report('tool_hints', 'The tools say what they do', checkHints(tools));
  report('tool_schemas', 'The schemas of the tools are taken by every client', checkSchemas(tools));
  report('token_estimate', 'The list of tools is affordable', checkTokens(tokensOfLength(JSON.stringify(cost).length)));
}

/** The name that people would give the server in their client. */
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
    return warning('It was not called: it is not marked as read-only (readOnlyHint); --yes calls it all the same.', []);
  const params = { name: call.tool, arguments: call.arguments };
  const page = await post(at, { id: 20, method: 'tools/call', params }, headers);
  const rpc = rpcOf(page);
  if (!rpc || !('result' in rpc || 'error' in rpc))
    return problem(`tools/call is answered with ${page.status} and no JSON-RPC message.`);
  const { code, message } = objectOf(rpc.error);
  if (typeof code === 'number')
    return problem(`tools/call is answered with the JSON-RPC error ${code}: ${visible(message)}`);
  return checkResult(resultOf(rpc), tool);
}

function checkResult(result: Fields, tool: Fields): Verdict {
  const { content, structuredContent, isError } = result;
  if (!Array.isArray(content)) return problem('The result has no content, which clients expect to be a list.');
  const types = content.map((block) => String(objectOf(block).type));
  const unknown = types.find((type) => !blockTypes.has(type));
  if (unknown !== undefined) return problem(`The result has a block of the type ${JSON.stringify(unknown)}.`);
  const text = content.map((block) => objectOf(block).text).find((found) => typeof found === 'string');
  if (isError === true) return warning(`The tool reports a failure: ${visible(text)}`, []);
  if (tool.outputSchema !== undefined && structuredContent === undefined)
    return problem('The tool announces an outputSchema, and its result has no structuredContent; SDKs refuse it.');
  const strict = clientsThat(({ wantsObjects }) => wantsObjects);
  if (structuredContent === undefined && isBareJson(text))
    return warning(
      `The text is JSON and no object; ${inWords(strict)} fails there without structuredContent such as {"result": …}.`,
      strict,
    );
  return ok(`The result has ${types.length === 0 ? 'no blocks' : types.join(', ')}: ${visible(text)}`, []);
}

/** Whether a text is JSON, and no object. */
function isBareJson(text: unknown): boolean {
  try {
    const value: unknown = JSON.parse(String(text));
    return typeof value !== 'object' || value === null || Array.isArray(value);
  } catch {
    return false;
  }
}

/** The beginning of a text of the server, on one line and without characters that control a terminal. */
function visible(text: unknown): string {
  if (typeof text !== 'string') return '(no text)';
  const line = text.replaceAll(/[\p{C}\s]+/gu, ' ').trim();
  return line.length > shownCharacters ? `${line.slice(0, shownCharacters)}…` : line;
}
