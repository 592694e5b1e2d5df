import type { Problem } from '../errors.ts';
import { type JsonSchema, resolveReference, schemasBelow, walkSchema } from './json-schema.ts';
import { shown } from './problems.ts';

const maxSchemas = 2000;

/**
 * References must lead to a schema of the document (not into its examples, whose keywords nobody judged), never in a
 * circle, and the schema they unfold to must stay small.
 */
export function referenceProblems(root: JsonSchema): Problem[] {
  const judged = new Set<unknown>();
  walkSchema(root, '', (schema) => judged.add(schema));
  const sizes = new Map<JsonSchema, number>();
  const open = new Set<JsonSchema>();
  const problems: Problem[] = [];
  const unfold = (schema: JsonSchema, path: string): number => {
    const known = sizes.get(schema);
    if (known !== undefined) return known;
    if (open.has(schema)) {
      problems.push({ path, message: 'this reference leads back to itself; recursive schemas are not supported' });
      return 1;
    }
    open.add(schema);
    let size = 1;
    if (typeof schema.$ref === 'string') {
      const next = resolveReference(root, schema.$ref);
      if (judged.has(next)) size += unfold(next as JsonSchema, path);
      else {
        const at = path ? `${path}.$ref` : '$ref';
        problems.push({ path: at, message: `found ${shown(schema.$ref)}; no schema is there` });
      }
    }
    for (const [, inner, innerPath] of schemasBelow(schema, path)) size += unfold(inner, innerPath);
    open.delete(schema);
    sizes.set(schema, size);
    return size;
  };
  if (unfold(root, '') > maxSchemas) problems.push({ path: '', message: `unfolds to more than ${maxSchemas} schemas` });
  return problems;
}
