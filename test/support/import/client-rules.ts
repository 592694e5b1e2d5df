import type { ImportedTool } from '../../../packages/openapi-to-tools/src/tools/tool-candidate.ts';
import type { Json } from '../toolhost/toolhost.ts';

const portable = /^[a-zA-Z0-9_.-]{1,64}$/;
/** Configuration keywords that are not part of JSON Schema. */
const configKeywords = ['in', 'optional', 'wire_name', 'style', 'value', 'allow_slashes', 'content', 'file_name'];
const combinators = ['anyOf', 'oneOf', 'allOf', 'not', 'enum'];

/**
 * Returns the reasons why a client would reject a tool; empty if there are none. One rejected tool can end the whole
 * session.
 */
export function listRejections(tool: ImportedTool, shownSchema: Json): string[] {
  const rejections: string[] = [];
  if (!/^[a-zA-Z0-9_-]{1,48}$/.test(tool.name)) rejections.push(`name ${tool.name}`);
  if (tool.description === '' || tool.description.length > 300) rejections.push('description');
  if (shownSchema.type !== 'object') rejections.push('a root that is no object');
  for (const keyword of combinators) if (keyword in shownSchema) rejections.push(`${keyword} at the root`);
  collectRejections(shownSchema, rejections, 0);
  return rejections.map((what) => `${tool.name}: ${what}`);
}

function collectRejections(schema: unknown, rejections: string[], depth: number): void {
  if (typeof schema !== 'object' || schema === null) return;
  const { properties, items, anyOf, additionalProperties, type, $ref, description } = schema as Json;
  if ($ref !== undefined) rejections.push('$ref');
  for (const keyword of configKeywords) if (keyword in schema) rejections.push(`the keyword ${keyword}`);
  if (depth > 12) rejections.push('too deep');
  if ([type].flat().includes('array') && items === undefined) rejections.push('an array without items');
  if (typeof description === 'string' && /[\p{Cc}\p{Cf}]/u.test(description)) rejections.push('invisible characters');
  for (const name of Object.keys((properties ?? {}) as Json))
    if (!portable.test(name)) rejections.push(`property ${name}`);
  const inner = [
    ...Object.values((properties ?? {}) as Json),
    items,
    additionalProperties,
    ...((anyOf ?? []) as unknown[]),
  ];
  for (const part of inner) collectRejections(part, rejections, depth + 1);
}
