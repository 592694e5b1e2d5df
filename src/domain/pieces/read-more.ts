import type { JsonSchema } from '../schema/json-schema.ts';
import type { ToolDefinition } from '../search/own-tools.ts';

/** The tool of a server with limited answers that gives the rest of one. */
export const readMoreName = 'read_more';

/** How long the rest of an answer is kept. */
export const restKeptMs = 10 * 60_000;

export const readMoreInput: JsonSchema = {
  type: 'object',
  properties: {
    cursor: { type: 'string', maxLength: 100, description: 'The cursor at the end of the answer that was cut.' },
  },
  required: ['cursor'],
  additionalProperties: false,
};

export const readMoreDefinition: ToolDefinition = {
  name: readMoreName,
  title: 'Read more of an answer',
  description:
    'Gives the next piece of an answer that was cut because it is long. The end of such an answer says what it left out and has the cursor, which works for ten minutes.',
  inputSchema: readMoreInput,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};

/** The limit that new servers start with (`max_answer_tokens`): many clients cut longer answers. */
export const startAnswerTokens = 20_000;

/** Characters of an answer that are left for the note at its end. */
export const noteLength = 400;

/** The note of an answer that was cut. `cursor` is undefined when the rest could not be kept. */
export function cutNote(cut: { about: string; tokens: number }, cursor: string | undefined): string {
  return `[Cut: this is ${cut.about}, of about ${cut.tokens} tokens in all. ${howToGoOn(cursor)}]`;
}

function howToGoOn(cursor: string | undefined): string {
  if (cursor === undefined) return 'The rest could not be kept; ask for less with filters or paging.';
  return `Get the rest with ${readMoreName}, cursor "${cursor}", within ten minutes, or ask for less with filters or paging.`;
}

/** The note of a further piece. `cursor` is undefined for the last one. */
export function pieceNote(about: string, cursor: string | undefined): string {
  const next = cursor === undefined ? 'This is the end.' : `Continue with cursor "${cursor}".`;
  return `[This is ${about}. ${next}]`;
}
