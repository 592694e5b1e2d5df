import { type Generated, operationDigest } from './generated.ts';

/** An operation of a document: its key, such as `GET /pets/{id}`, and its id. */
export type KnownOperation = { key: string; id: string | undefined };

/**
 * The operations of tools that are gone and that are new elsewhere: with the same id, or else under the same path but for
 * its version. The new key by the old one; an operation that could be one of several is none of them.
 */
export function movedOperations(
  present: ReadonlySet<string>,
  now: readonly KnownOperation[],
  before: Generated,
): Map<string, string> {
  const keys = new Set(now.map(({ key }) => key));
  const known = before.known && new Set(before.known);
  const isKnown = (key: string) => known?.has(operationDigest(key)) ?? Object.hasOwn(before.tools, key);
  const gone = [...present].flatMap((key) => (keys.has(key) ? [] : [{ key, id: before.ids?.[key] }]));
  const fresh = gone.length === 0 ? [] : now.filter(({ key }) => !present.has(key) && !isKnown(key));
  const moved = pairs(gone, fresh, ({ id }) => id);
  const taken = new Set(moved.values());
  const left = gone.filter(({ key }) => !moved.has(key));
  const rest = fresh.filter(({ key }) => !taken.has(key));
  return new Map([...moved, ...pairs(left, rest, ({ key }) => withoutVersion(key))]);
}

/** The keys of operations on both sides that have the same trait, as long as no other one of their side has it. */
function pairs(
  gone: readonly KnownOperation[],
  fresh: readonly KnownOperation[],
  traitOf: (operation: KnownOperation) => string | undefined,
): Map<string, string> {
  const byTrait = Map.groupBy(fresh, traitOf);
  const found = [...Map.groupBy(gone, traitOf)].flatMap(([trait, [one, ...others]]): [string, string][] => {
    const [other, ...more] = (trait !== undefined && byTrait.get(trait)) || [];
    return one && other && others.length + more.length === 0 ? [[one.key, other.key]] : [];
  });
  return new Map(found);
}

const version = /^(?:v?\d+(?:\.\d+)*(?:(?:alpha|beta|preview|rc)\d*)?|\d{4}-\d\d(?:-\d\d)?|api|rest)$/i;

/** `GET /api/v1/pets/{id}` → `GET /pets/{}`. */
function withoutVersion(key: string): string {
  return key
    .split('/')
    .filter((segment) => !version.test(segment))
    .join('/')
    .replaceAll(/\{[^{}]*\}/g, '{}');
}
