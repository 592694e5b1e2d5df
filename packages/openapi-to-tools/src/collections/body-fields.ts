import { getField, toEntries } from '../document/lenient.ts';
import type { ApiOperation } from '../model.ts';

const maxDepth = 6;
const maxFields = 200;

/** Body field. `trail` has the names of the enclosing fields and its own. */
export type BodyFieldPath = { trail: readonly string[]; schema: unknown };

/**
 * Returns the fields of a JSON body or form that hold values, at any depth. Fields of different list entries are
 * merged.
 */
export function listLeaves({ body }: ApiOperation): BodyFieldPath[] {
  const leaves: BodyFieldPath[] = [];
  const queue: BodyFieldPath[] = [{ trail: [], schema: body?.contents[0]?.schema }];
  for (let index = 0; index < queue.length && leaves.length < maxFields; index++) {
    const current = queue[index] as BodyFieldPath;
    const { trail, schema } = current;
    const inner = toEntries(getField(getField(schema, 'items') ?? schema, 'properties'));
    if (trail.length > 0 && (inner.length === 0 || trail.length >= maxDepth)) leaves.push(current);
    else for (const [name, property] of inner) queue.push({ trail: [...trail, name], schema: property });
  }
  return leaves;
}

/** Returns the names of the fields that hold values, joined with dots for nested fields. */
export function listFieldNames(operation: ApiOperation): Set<string> {
  return new Set(listLeaves(operation).map(({ trail }) => trail.join('.')));
}
