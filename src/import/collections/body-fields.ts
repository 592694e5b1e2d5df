import { entriesOf, field } from '../document/lenient.ts';
import type { ApiOperation } from '../model.ts';

const maxDepth = 6;
const maxFields = 200;

/** Body field with the names that lead to it. */
export type BodyFieldAt = { trail: readonly string[]; schema: unknown };

/**
 * Returns the fields of a JSON body or form that hold values, at any depth. Fields of different list entries are
 * merged.
 */
export function listLeaves({ body }: ApiOperation): BodyFieldAt[] {
  const found: BodyFieldAt[] = [];
  const waiting: BodyFieldAt[] = [{ trail: [], schema: body?.contents[0]?.schema }];
  for (let at = 0; at < waiting.length && found.length < maxFields; at++) {
    const next = waiting[at] as BodyFieldAt;
    const { trail, schema } = next;
    const inner = entriesOf(field(field(schema, 'items') ?? schema, 'properties'));
    if (trail.length > 0 && (inner.length === 0 || trail.length >= maxDepth)) found.push(next);
    else for (const [name, property] of inner) waiting.push({ trail: [...trail, name], schema: property });
  }
  return found;
}

/** Returns the names of these fields. */
export function listFieldNames(operation: ApiOperation): Set<string> {
  return new Set(listLeaves(operation).map(({ trail }) => trail.join('.')));
}
