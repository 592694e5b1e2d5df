import { z } from 'zod';
import { hasControlCharacter } from '../../http/values.ts';

/** How an array or an object is written in a query, a form or a header. */
export const wireStyles = ['repeat', 'comma', 'brackets', 'indices', 'pipe', 'space', 'deep', 'json'] as const;
export type WireStyle = (typeof wireStyles)[number];

const longestText = 200;

/** A text that is the same in every call, or the argument that holds it. */
const textOrArgument = z.union([
  z
    .string()
    .min(1)
    .max(longestText)
    .refine((text) => text.isWellFormed() && !hasControlCharacter(text), 'allowed: one line of text'),
  z.strictObject({ argument: z.string().describe('Name of the argument that holds it.') }),
]);
export type TextOrArgument = z.infer<typeof textOrArgument>;

/**
 * Keywords of an argument that say how it is sent. They stand in a flat field definition or beside the other keywords of
 * a property in the JSON Schema form, and are not shown to agents.
 */
export const wireKeywords = {
  wire_name: z
    .string()
    .min(1)
    .max(longestText)
    .refine((name) => name.isWellFormed() && !hasControlCharacter(name) && name === name.trim(), {
      message: 'allowed: visible text without outer spaces',
    })
    .optional()
    .describe('Name that the upstream expects, where it differs from the name of the argument.'),
  style: z
    .enum(wireStyles)
    .optional()
    .describe(
      'How an array or an object is written in a query, a form or a header: a=1&a=2 (repeat), a=1,2 (comma), a[]=1 (brackets), a[0]=1 and a[b][c]=1 (indices), a=1|2 (pipe), a=1 2 (space), a[b]=1 (deep), or as JSON text (json).',
    ),
  value: z
    .unknown()
    .optional()
    .describe('A constant: it is sent in every call, and is neither shown to agents nor accepted from them.'),
  allow_slashes: z
    .boolean()
    .optional()
    .describe('true keeps the slashes of a path argument, such as src/main.ts, as separators of segments.'),
  content: z
    .literal('base64')
    .optional()
    .describe(
      'base64: the text, Base64, a data URL or the address of a file that a tool gave, is decoded and sent as bytes, as a file of a multipart body or as the whole body.',
    ),
  file_name: textOrArgument
    .optional()
    .describe('File name of a part of a multipart body, or {"argument": "name"} to take it from another argument.'),
  media_type: textOrArgument
    .optional()
    .describe(
      'Media type of a part of a multipart body, or of the whole body, or {"argument": "name"} to take it from another argument.',
    ),
};

const wireKeywordNames = Object.keys(wireKeywords) as (keyof typeof wireKeywords)[];
/** All keywords of an argument that are ours, and that agents do not see. */
const ownKeywords = ['in', ...wireKeywordNames];
export const wireFields = z.object(wireKeywords);
export type WireFields = z.infer<typeof wireFields>;

type Definition = { readonly [keyword: string]: unknown };

/** Whether a definition of an argument has any of these keywords. */
export function hasWireKeyword(definition: unknown): definition is Definition {
  return hasAny(definition, wireKeywordNames);
}

/** Whether a definition of an argument has any keyword that agents do not see. */
export function hasOwnKeyword(definition: unknown): definition is Definition {
  return hasAny(definition, ownKeywords);
}

function hasAny(definition: unknown, keywords: readonly string[]): boolean {
  return (
    typeof definition === 'object' &&
    definition !== null &&
    keywords.some((keyword) => Object.hasOwn(definition, keyword))
  );
}

/** A definition with such keywords as agents see it. */
export function withoutOwnKeywords(definition: Definition): { [keyword: string]: unknown } {
  const shown: { [keyword: string]: unknown } = { ...definition };
  for (const keyword of ownKeywords) delete shown[keyword];
  return definition.content === 'base64' ? { ...shown, description: describedFile(definition.description) } : shown;
}

/** Agents must know that they are asked for Base64, which their own description may say, or for an address. */
function describedFile(description: unknown): string {
  const given = typeof description === 'string' ? description.trim() : '';
  const isSaid = /base64|data url/i.test(given);
  const hint = isSaid
    ? 'The address of a file that a tool gave is taken too.'
    : 'Base64 of the bytes, a data URL, or the address of a file that a tool gave.';
  if (given === '') return hint;
  return `${/[.!?]$/.test(given) ? given : `${given}.`} ${hint}`;
}
