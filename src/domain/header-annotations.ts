import type { Problem } from '../errors.ts';
import { type JsonSchema, schemasBelow } from './json-schema.ts';
import { shown } from './problems.ts';

/**
 * `x-mcp-header` (MCP 2026-07-28, tools): an RFC 9110 token, unique in the schema without regard to case, on a string,
 * integer or boolean that is reached through `properties` alone. One violation makes clients drop the whole tool.
 */
export function headerAnnotationProblems(root: JsonSchema): Problem[] {
  const problems: Problem[] = [];
  const seen = new Set<string>();
  const visit = (schema: JsonSchema, path: string, reachable: boolean): void => {
    const name = schema['x-mcp-header'];
    if (name !== undefined) {
      const fault = annotationFault(name, schema, reachable, seen);
      if (fault) problems.push({ path: path ? `${path}.x-mcp-header` : 'x-mcp-header', message: fault });
    }
    for (const [keyword, inner, innerPath] of schemasBelow(schema, path)) {
      visit(inner, innerPath, reachable && keyword === 'properties');
    }
  };
  visit(root, '', true);
  return problems;
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
