import { type ContentBlock, type ToolCall, type ToolResult, withLines } from '../../domain/mcp.ts';
import { pieceNote, readMoreInput, readMoreName } from '../../domain/pieces/read-more.ts';
import { coerceObject } from '../../domain/schema/coerce-value.ts';
import { searchToolNames } from '../../domain/search/own-tools.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import { ToolFailure } from '../../errors.ts';
import { structuredOfTexts, tokensOfContent } from '../answer/json-answer.ts';
import { leftOutLines } from '../arguments/left-out.ts';
import { compileArguments, prepareArguments } from '../arguments/prepare-arguments.ts';
import { type CallToolParts, callTool } from '../call/call-tool.ts';
import type { Caller } from '../callers/caller.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';
import { callOwnTool, type OwnCall } from './own-call.ts';
import { callInSearchMode } from './search-calls.ts';

/** Returns the function that runs the calls of a server, including those of built-in tools. */
export function runnerOf(server: HostedServer): typeof callTool {
  return server.hasReadMore ? callWithReadMore : server.catalogue ? callInSearchMode : callTool;
}

/**
 * Runs one `tools/call` of a server with limited results, in either tool mode.
 * @throws any error of `callTool`
 */
function callWithReadMore(
  server: HostedServer,
  caller: Caller,
  asked: ToolCall,
  parts: CallToolParts,
): Promise<ToolResult> {
  const inner = asked.name === searchToolNames.call && server.catalogue ? asked.args.name : undefined;
  if (asked.name === readMoreName || inner === readMoreName) {
    const args = inner === undefined ? asked.args : (coerceObject(asked.args.arguments) ?? {});
    const call = { server, caller, asked: { ...asked, name: readMoreName, args } };
    return callOwnTool(call, parts, () => readMore(call, parts));
  }
  const run = server.catalogue ? callInSearchMode : callTool;
  return run(server, caller, asked, parts);
}

/**
 * Maximum length of a chunk that is processed without yielding, in characters. Parsing and serializing it takes about a
 * millisecond.
 */
const longPiece = 50_000;

const rules = { args: compileArguments(readMoreInput, readMoreInput, true) };

/** Executes `read_more`. @throws ToolFailure invalid_arguments */
async function readMore({ server, caller, asked }: OwnCall, parts: CallToolParts): Promise<ToolResult> {
  const unfit = (what: string) => new ToolFailure('invalid_arguments', what);
  const args = await prepareArguments(rules, asked.args, () =>
    Promise.reject(unfit('There are too many values; pass only the cursor.')),
  );
  const found = await parts.rests.read({ server, caller }, String(args.cursor));
  if (!found)
    throw unfit(
      'cursor: not valid. A cursor works for ten minutes, on this server, for the caller that received it. Call the tool again for a new cursor.',
    );
  // Parsing a chunk of control characters takes part of the time slice, and serializing it takes as long again.
  if (found.piece.text.length > longPiece) await nextTurn();
  const texts = [found.piece.text, pieceNote(found.piece.about, found.next)];
  const content = texts.map((text): ContentBlock => ({ type: 'text', text }));
  const tokens = tokensOfContent(content);
  const structured = structuredOfTexts(content, asked.era);
  const result = { content: JSON.stringify(content), structured, isError: false, tokens };
  return withLines(result, leftOutLines(asked.args, args));
}
