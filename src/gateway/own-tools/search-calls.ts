import type { ToolCall, ToolResult } from '../../domain/mcp.ts';
import { newGuesses } from '../../domain/problems/did-you-mean.ts';
import { shown } from '../../domain/problems/problems.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import { describeInput, searchInput, searchToolNames } from '../../domain/search/own-tools.ts';
import type { MaybePromise } from '../../domain/work/maybe-promise.ts';
import { ToolFailure } from '../../errors.ts';
import { type ArgumentRules, compileArguments, prepareArguments } from '../arguments/prepare-arguments.ts';
import { type CallToolParts, callTool } from '../call/call-tool.ts';
import type { Caller } from '../callers/caller.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';
import type { ToolCatalogue } from '../hosted/tool-catalogue.ts';
import { callOwnTool } from './own-call.ts';
import { describeResult, searchResult, unknownToolText } from './search-answers.ts';

/**
 * One `tools/call` of a server in search mode. A call through `call_tool` is a call of the named tool in everything: its
 * checks, limits, records and traces.
 * @throws what `callTool` throws
 */
export function callInSearchMode(
  server: HostedServer,
  caller: Caller,
  asked: ToolCall,
  parts: CallToolParts,
): Promise<ToolResult> {
  if (asked.name !== searchToolNames.call) {
    if (server.tool(asked.name)) return callTool(server, caller, asked, parts);
    return callOwnTool({ server, caller, asked }, parts, () => ownResult(server.catalogue as ToolCatalogue, asked));
  }
  const inner = calledTool(server, asked.args);
  if (inner instanceof ToolFailure) {
    return callOwnTool({ server, caller, asked }, parts, () => Promise.reject(inner));
  }
  return callTool(server, caller, { ...asked, name: inner.name, args: inner.args }, parts);
}

/** The call inside a `call_tool`. The arguments are checked by the tool itself. */
function calledTool(server: HostedServer, given: Arguments): Pick<ToolCall, 'name' | 'args'> | ToolFailure {
  const { name, arguments: args, ...others } = given;
  const [other] = Object.keys(others);
  if (typeof name !== 'string') return misfit(`name: found ${shown(name)}; allowed: the name of a tool`);
  if (other !== undefined)
    return misfit(
      `${other.slice(0, 100)}: not an argument of call_tool; put the arguments of the tool into "arguments"`,
    );
  if (args !== undefined && !isPlainObject(args) && args !== null)
    return misfit(`arguments: found ${shown(args)}; allowed: an object with the arguments of the tool`);
  if (!server.tool(name)) {
    return new ToolFailure(
      'invalid_arguments',
      unknownToolText(server.catalogue as ToolCatalogue, name, newGuesses()),
      [],
      'name: the server has no such tool',
    );
  }
  return { name, args: (args ?? {}) as Arguments };
}

function misfit(what: string): ToolFailure {
  return new ToolFailure('invalid_arguments', `The arguments do not fit: ${what}`);
}

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}

/** @throws ToolFailure */
async function ownResult(catalogue: ToolCatalogue, { name, args }: ToolCall): Promise<ToolResult> {
  return name === searchToolNames.search
    ? searchResult(catalogue, await checked(rules.search, args))
    : describeResult(catalogue, await checked(rules.describe, args));
}

const rules = {
  search: compileArguments(searchInput, searchInput),
  describe: compileArguments(describeInput, describeInput),
};

function checked(args: ArgumentRules, given: Arguments): MaybePromise<Arguments> {
  return prepareArguments({ args }, given, () => Promise.reject(misfit('there are too many values')));
}
