import type { Problem } from '../../errors.ts';
import type { JsonSchema } from './json-schema.ts';
import { indexSchema, type SchemaIndex } from './schema-index.ts';

/**
 * Most characters of all patterns of a schema. A program takes several times as much memory as its pattern, and the tools
 * of public descriptions have 200 characters at most.
 */
const mostCharacters = 20_000;

/** The problem of a schema whose patterns are too long together. */
export function patternAmountProblem({ parts }: SchemaIndex): Problem | undefined {
  const lengths = parts.map(({ schema }) => (typeof schema.pattern === 'string' ? schema.pattern.length : 0));
  const characters = lengths.reduce((sum, length) => sum + length, 0);
  if (characters <= mostCharacters) return undefined;
  return {
    path: '',
    message: `found ${characters} characters of patterns; allowed: at most ${mostCharacters} in a schema; write shorter patterns, or leave some to the API`,
  };
}

/** The same for a schema that was stored, perhaps before there was this limit. */
export function patternAmountProblemOf(schema: JsonSchema): Problem | undefined {
  const index = indexSchema(schema);
  return index && patternAmountProblem(index);
}
