import { coerceObject } from '@toolhost/json-schema/coerce-value';
import type { ToolCall, ToolResult } from '@toolhost/mcp-protocol/mcp';
import { searchToolNames } from '@toolhost/tool-config/built-in-tools';
import { readMoreToolName } from '@toolhost/tool-config/read-more';
import { callBuiltInTool } from './built-in-tools/built-in-call.ts';
import { readMore } from './built-in-tools/read-more.ts';
import { callInSearchMode } from './built-in-tools/search-calls.ts';
import { type CallToolDeps, callTool } from './call/call-tool.ts';
import type { Caller } from './callers/caller.ts';
import type { HostedServer } from './hosted/hosted-server.ts';

/** Returns the function that runs the calls of a server, including those of built-in tools. */
export function getRunner(server: HostedServer): typeof callTool {
  if (server.hasReadMoreTool) return callWithReadMore;
  return server.catalog ? callInSearchMode : callTool;
}

/**
 * Runs one `tools/call` of a server with limited results, in either tool mode.
 * @throws any error of `callTool`
 */
function callWithReadMore(
  server: HostedServer,
  caller: Caller,
  toolCall: ToolCall,
  deps: CallToolDeps,
): Promise<ToolResult> {
  const innerName = toolCall.name === searchToolNames.call && server.catalog ? toolCall.args.name : undefined;
  if (toolCall.name === readMoreToolName || innerName === readMoreToolName) {
    const args = innerName === undefined ? toolCall.args : (coerceObject(toolCall.args.arguments) ?? {});
    const call = { server, caller, toolCall: { ...toolCall, name: readMoreToolName, args } };
    return callBuiltInTool(call, deps, () => readMore(call, deps));
  }
  const runCall = server.catalog ? callInSearchMode : callTool;
  return runCall(server, caller, toolCall, deps);
}
