import { type ProblemList, shown } from '../problems/problems.ts';
import type { JsonSchema } from './json-schema.ts';
import { mostSchemas, pathOf, resolveReference, type SchemaIndex, type SchemaPart } from './schema-index.ts';

/** How many schemas may lie inside one another when references are followed. */
const deepestUnfolded = 200;

/**
 * References must lead to a schema of the document (not into its examples, whose keywords are not checked), never in a
 * circle, and the schema they unfold to must stay small. Takes time in proportion to the document.
 */
export function checkReferences(index: SchemaIndex, problems: ProblemList): void {
  const innerOf = new Map<SchemaPart, SchemaPart[]>();
  for (const part of index.parts) {
    const beside = part.parent && innerOf.get(part.parent);
    if (beside) beside.push(part);
    else if (part.parent) innerOf.set(part.parent, [part]);
  }
  const sizes = new Map<SchemaPart, number>();
  const open = new Set<SchemaPart>();
  let isTooDeep = false;
  const unfold = (part: SchemaPart): number => {
    const known = sizes.get(part);
    if (known !== undefined) return known;
    if (open.has(part)) {
      problems.add(() => ({
        path: pathOf(part),
        message: 'this reference leads back to itself; recursive schemas are not supported',
      }));
      return 1;
    }
    if (open.size >= deepestUnfolded) {
      isTooDeep = true;
      return 1;
    }
    open.add(part);
    let size = 1;
    const { $ref } = part.schema;
    if (typeof $ref === 'string') {
      const target = index.partOf.get(resolveReference(index, $ref) as JsonSchema);
      if (target) size += unfold(target);
      else {
        const path = pathOf(part);
        problems.add(() => ({
          path: path ? `${path}.$ref` : '$ref',
          message: `found ${shown($ref)}; no schema is there`,
        }));
      }
    }
    for (const inner of innerOf.get(part) ?? []) size += unfold(inner);
    open.delete(part);
    sizes.set(part, size);
    return size;
  };
  const size = unfold(index.parts[0] as SchemaPart);
  if (size > mostSchemas) problems.add(tooManySchemas);
  if (isTooDeep) {
    problems.add(() => ({ path: '', message: `references lead through more than ${deepestUnfolded} schemas` }));
  }
}

export const tooManySchemas = () => ({ path: '', message: `unfolds to more than ${mostSchemas} schemas` });
