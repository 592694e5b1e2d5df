import { clientsThat, inWords } from '../domain/clients/clients.ts';
import { tokensOfLength } from '../domain/pieces/tokens.ts';
import { nearest, newGuesses } from '../domain/problems/did-you-mean.ts';
import { type Fields, objectOf, ok, problem, type Verdict, warning } from './check.ts';
import { checkHints, checkSchemas, checkTokens, checkToolCount, checkToolList, checkToolNames } from './check-tools.ts';
import type { CallToTry, Examination, ReportCheck } from './examination.ts';
import {
  checkGet,
  checkInitialize,
  checkModern,
  checkNotification,
  checkUnknownMethod,
  endSession,
  listTools,
  type McpAddress,
  type McpSession,
  post,
  resultOf,
  rpcOf,
  sessionOf,
} from './session.ts';
import type { Answered } from './web.ts';

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
