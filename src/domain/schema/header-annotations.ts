import { type ProblemList, shown } from '../problems/problems.ts';
import type { JsonSchema } from './json-schema.ts';
import { pathOf, type SchemaIndex } from './schema-index.ts';

/**
 * `x-mcp-header` (MCP 2026-07-28, tools): an RFC 9110 token, unique in the schema without regard to case, on a string,
 * integer or boolean that is reached through `properties` only. One violation makes clients drop the whole tool.
 */
export function checkHeaderAnnotations(index: SchemaIndex, problems: ProblemList): void {
  const seen = new Set<string>();
  for (const part of index.parts) {
    const name = part.schema['x-mcp-header'];
    if (name === undefined) continue;
    const fault = annotationFault(name, part.schema, part.isPlainProperty, seen);
    if (fault === undefined) continue;
    problems.add(() => {
      const path = pathOf(part);
      return { path: path ? `${path}.x-mcp-header` : 'x-mcp-header', message: fault };
    });
  }
}

function annotationFault(name: unknown, schema: JsonSchema, reachable: boolean, seen: Set<string>): string | undefined {
  if (typeof name !== 'string' || !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/.test(name)) {
    return `found ${shown(name)}; allowed: a header name of letters, digits and -`;
  }
  if (seen.has(name.toLowerCase())) return `${shown(name)} is used twice in this schema`;
  seen.add(name.toLowerCase());
  if (!['string', 'integer', 'boolean'].includes(schema.type as string)) {
    return `found on type ${shown(schema.type)}; allowed: string, integer, boolean`;
  }
  return reachable ? undefined : 'only allowed on properties, not inside items, combinations or definitions';
}
