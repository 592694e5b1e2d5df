import type { ImportedTool } from '../../../src/import/tools/made-tool.ts';
import type { Json } from '../toolhost/toolhost.ts';

const portable = /^[a-zA-Z0-9_.-]{1,64}$/;
/** Configuration keywords that are not part of JSON Schema. */
const ownKeywords = ['in', 'optional', 'wire_name', 'style', 'value', 'allow_slashes', 'content', 'file_name'];
const combinators = ['anyOf', 'oneOf', 'allOf', 'not', 'enum'];

/**
 * Returns the reasons why a client would reject a tool; empty if there are none. One rejected tool can end the whole
 * session.
 */
export function refusalsOf(tool: ImportedTool, shown: Json): string[] {
  const found: string[] = [];
  if (!/^[a-zA-Z0-9_-]{1,48}$/.test(tool.name)) found.push(`name ${tool.name}`);
  if (tool.description === '' || tool.description.length > 300) found.push('description');
  if (shown.type !== 'object') found.push('a root that is no object');
  for (const keyword of combinators) if (keyword in shown) found.push(`${keyword} at the root`);
  refusalsIn(shown, found, 0);
  return found.map((what) => `${tool.name}: ${what}`);
}

function refusalsIn(schema: unknown, found: string[], depth: number): void {
  if (typeof schema !== 'object' || schema === null) return;
  const { properties, items, anyOf, additionalProperties, type, $ref, description } = schema as Json;
  if ($ref !== undefined) found.push('$ref');
  for (const keyword of ownKeywords) if (keyword in schema) found.push(`the keyword ${keyword}`);
  if (depth > 12) found.push('too deep');
  if ([type].flat().includes('array') && items === undefined) found.push('an array without items');
  if (typeof description === 'string' && /[\p{Cc}\p{Cf}]/u.test(description)) found.push('invisible characters');
  for (const name of Object.keys((properties ?? {}) as Json)) if (!portable.test(name)) found.push(`property ${name}`);
  const inner = [
    ...Object.values((properties ?? {}) as Json),
    items,
    additionalProperties,
    ...((anyOf ?? []) as unknown[]),
  ];
  for (const part of inner) refusalsIn(part, found, depth + 1);
}
