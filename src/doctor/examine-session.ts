import { tokensOfLength } from '../domain/pieces/tokens.ts';
import { type Fields, problem } from './check.ts';
import { checkCall } from './check-call.ts';
import { checkHints, checkSchemas, checkTokens, checkToolCount, checkToolList, checkToolNames } from './check-tools.ts';
import type { Examination, ReportCheck } from './examination.ts';
import {
  checkGet,
  checkInitialize,
  checkModern,
  checkNotification,
  checkUnknownMethod,
  endSession,
  listTools,
  type McpAddress,
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
