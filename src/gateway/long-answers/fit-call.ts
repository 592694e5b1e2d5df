import type { JsonText } from '../../domain/mcp.ts';
import { cutNote } from '../../domain/pieces/read-more.ts';
import { tokensOfLength } from '../../domain/pieces/tokens.ts';
import { type CutResult, fitResult } from '../answer/fit-answer.ts';
import type { AnswerOwner, AnswerRests } from './answer-rests.ts';

/** A call whose tool has a limit. */
export type LimitedCall = AnswerOwner & {
  asked: { requestId: string };
  tool: { reading: { mostCharacters: number | undefined } };
};

/** Cuts the result of a call to the limit of its tool, keeps the rest, and says at its end how to go on. */
export async function fitCall(call: LimitedCall, result: CutResult, rests: AnswerRests): Promise<CutResult> {
  const { rest, ...cut } = result.rest
    ? result
    : fitResult(result, call.tool.reading.mostCharacters ?? Number.POSITIVE_INFINITY);
  if (!rest) return result;
  const isTriedOut = call.caller.kind === 'try_out';
  const kept = isTriedOut ? undefined : await rests.keep(call, rest, call.asked.requestId);
  const note = cutNote(rest, isTriedOut ? 'tried out' : kept);
  const content = withLast(cut.content, { type: 'text', text: note });
  return { ...cut, content, tokens: tokensOfLength(rest.characters + note.length) };
}

function withLast(content: JsonText, block: object): JsonText {
  const end = `${content.length > 2 ? ',' : ''}${JSON.stringify(block)}]`;
  return typeof content === 'string'
    ? content.slice(0, -1) + end
    : Buffer.concat([content.subarray(0, -1), Buffer.from(end)]);
}
