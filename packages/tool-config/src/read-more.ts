import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import type { ToolDefinition } from './built-in-tools.ts';

/** Name of the built-in tool that returns the remainder of a truncated result. */
export const readMoreToolName = 'read_more';

/** Time for which the remainder of a result is stored, in ms. */
export const remainderRetentionMs = 10 * 60_000;

export const readMoreInputSchema: JsonSchema = {
  type: 'object',
  properties: {
    cursor: { type: 'string', maxLength: 100, description: 'Cursor from the end of the truncated result.' },
  },
  required: ['cursor'],
  additionalProperties: false,
};

export const readMoreDefinition: ToolDefinition = {
  name: readMoreToolName,
  title: 'Read more of a result',
  description:
    'Returns the next chunk of a result that was truncated because of its length. The end of a truncated result describes what is missing and contains the cursor, which is valid for ten minutes.',
  inputSchema: readMoreInputSchema,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};

/** Default limit of new servers (`max_response_tokens`): many clients truncate longer results. */
export const defaultMaxResponseTokens = 20_000;

/** Number of characters of a result that are reserved for the note at its end. */
export const reservedNoteLength = 400;

/** Returns the note at the end of a truncated result. `cursor` is undefined if the remainder could not be stored. */
export function formatTruncationNote(
  truncation: { description: string; tokens: number },
  cursor: string | undefined,
): string {
  return `[Truncated: this is ${truncation.description}, of about ${truncation.tokens} tokens in total. ${formatContinuationHint(cursor)}]`;
}

function formatContinuationHint(cursor: string | undefined): string {
  if (cursor === undefined) return 'The remainder could not be stored. Request less data with filters or paging.';
  return `Get the remainder with ${readMoreToolName} and cursor "${cursor}" within ten minutes, or request less data with filters or paging.`;
}

/** Returns the note at the end of a continuation. `cursor` is undefined for the last one. */
export function formatContinuationNote(description: string, cursor: string | undefined): string {
  const nextStep = cursor === undefined ? 'This is the end.' : `Continue with cursor "${cursor}".`;
  return `[This is ${description}. ${nextStep}]`;
}
