import { ToolFailure } from '@toolhost/errors/errors';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { appendTextBlocks, type ContentBlock, type ToolResult } from '@toolhost/mcp-protocol/mcp';
import { formatContinuationNote, readMoreInputSchema } from '@toolhost/tool-config/read-more';
import { formatOmittedArguments } from '../arguments/omitted-arguments.ts';
import { compileArguments, prepareArguments } from '../arguments/prepare-arguments.ts';
import type { CallToolDeps } from '../call/call-tool.ts';
import { createStructuredFromTexts, estimateContentTokens } from '../response/json-response.ts';
import type { BuiltInCall } from './built-in-call.ts';

/**
 * Maximum length of a chunk that is processed without yielding, in characters. Parsing and serializing it takes about a
 * millisecond.
 */
const maxUnyieldedLength = 50_000;

const rules = { args: compileArguments(readMoreInputSchema, readMoreInputSchema, true) };

/** Executes `read_more`. @throws ToolFailure invalid_arguments */
export async function readMore({ server, caller, toolCall }: BuiltInCall, deps: CallToolDeps): Promise<ToolResult> {
  const createFailure = (message: string) => new ToolFailure('invalid_arguments', message);
  const args = await prepareArguments(rules, toolCall.args, () =>
    Promise.reject(createFailure('There are too many values; pass only the cursor.')),
  );
  const chunkResult = await deps.continuations.read({ server, caller }, String(args.cursor));
  if (!chunkResult)
    throw createFailure(
      'cursor: not valid. A cursor works for ten minutes, on this server, for the caller that received it. Call the tool again for a new cursor.',
    );
  // Escapes, such as those of control characters, make a chunk slow to parse and, below, as slow to serialize.
  if (chunkResult.chunk.text.length > maxUnyieldedLength) await yieldToEventLoop();
  const texts = [chunkResult.chunk.text, formatContinuationNote(chunkResult.chunk.about, chunkResult.nextCursor)];
  const content = texts.map((text): ContentBlock => ({ type: 'text', text }));
  const tokens = estimateContentTokens(content);
  const structured = createStructuredFromTexts(content, toolCall.generation);
  const result = { content: JSON.stringify(content), structured, isError: false, tokens };
  return appendTextBlocks(result, formatOmittedArguments(toolCall.args, args));
}
