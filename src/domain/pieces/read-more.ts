import type { JsonSchema } from '../schema/json-schema.ts';
import type { ToolDefinition } from '../search/own-tools.ts';

/** Name of the built-in tool that returns the remainder of a truncated result. */
export const readMoreName = 'read_more';

/** Time for which the remainder of a result is stored, in ms. */
export const restKeptMs = 10 * 60_000;

export const readMoreInput: JsonSchema = {
  type: 'object',
  properties: {
    cursor: { type: 'string', maxLength: 100, description: 'Cursor from the end of the truncated result.' },
  },
  required: ['cursor'],
  additionalProperties: false,
};

export const readMoreDefinition: ToolDefinition = {
  name: readMoreName,
  title: 'Read more of a result',
  description:
    'Returns the next chunk of a result that was truncated because of its length. The end of a truncated result describes what is missing and contains the cursor, which is valid for ten minutes.',
  inputSchema: readMoreInput,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};

/** Default limit of new servers (`max_answer_tokens`): many clients truncate longer results. */
export const startAnswerTokens = 20_000;

/** Number of characters of a result that are reserved for the note at its end. */
export const noteLength = 400;

/** Returns the note at the end of a truncated result. `cursor` is undefined if the remainder could not be stored. */
export function cutNote(cut: { about: string; tokens: number }, cursor: string | undefined): string {
  return `[Truncated: this is ${cut.about}, of about ${cut.tokens} tokens in total. ${howToGoOn(cursor)}]`;
}

function howToGoOn(cursor: string | undefined): string {
  if (cursor === undefined) return 'The remainder could not be stored. Request less data with filters or paging.';
  return `Get the remainder with ${readMoreName} and cursor "${cursor}" within ten minutes, or request less data with filters or paging.`;
}

/** Returns the note at the end of a continuation. `cursor` is undefined for the last one. */
export function pieceNote(about: string, cursor: string | undefined): string {
  const next = cursor === undefined ? 'This is the end.' : `Continue with cursor "${cursor}".`;
  return `[This is ${about}. ${next}]`;
}
