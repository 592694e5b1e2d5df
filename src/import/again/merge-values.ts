import { toolDefaults } from '../../domain/config/tool.ts';
import { isRawNumber } from '../../domain/json/json.ts';
import { field, isFields, type JsonFields } from '../document/lenient.ts';

/** JSON value, or undefined if there is none. */
export type Value = unknown;

/** Value that both sides changed differently. `path` is dotted. */
export type Conflict = { path: string; before: Value; yours: Value; theirs: Value };

/** Three versions of a value: as it was generated last, as people edited it, and as it is generated now. */
export type ThreeWay = { before: Value; yours: Value; theirs: Value };

export type Merging = {
  /** Decides a conflict. */
  choose: (conflict: Conflict) => 'yours' | 'theirs';
  onConflict: (conflict: Conflict) => void;
};

/**
 * Merges a value. If one side is unchanged, the other side wins. Objects are merged by property, everything else as a
 * whole. Properties keep the order of `yours`, followed by new ones of `theirs`.
 */
export function mergeValues(values: ThreeWay, path: string, merging: Merging): Value {
  const { before, yours, theirs } = values;
  if (isEqual(yours, theirs) || isEqual(theirs, before)) return yours;
  if (isEqual(yours, before)) return theirs;
  if (isFields(yours) && isFields(theirs)) {
    return mergeRecords({ before: isFields(before) ? before : {}, yours, theirs }, path, merging);
  }
  const conflict = { path, before, yours, theirs };
  merging.onConflict(conflict);
  return merging.choose(conflict) === 'yours' ? yours : theirs;
}

type Records = { before: JsonFields; yours: JsonFields; theirs: JsonFields };

export function mergeRecords({ before, yours, theirs }: Records, path: string, merging: Merging): JsonFields {
  const names = new Set([...Object.keys(yours), ...Object.keys(theirs)]);
  const merged: [string, Value][] = [];
  for (const name of names) {
    const values = { before: field(before, name), yours: field(yours, name), theirs: field(theirs, name) };
    const value = mergeValues(values, path === '' ? name : `${path}.${name}`, merging);
    if (value !== undefined) merged.push([name, value]);
  }
  return Object.fromEntries(merged);
}

/** Returns true if two values are the same JSON, ignoring property order. */
export function isEqual(one: Value, other: Value): boolean {
  if (one === other) return true;
  if (isRawNumber(one) && isRawNumber(other)) return one.rawJSON === other.rawJSON;
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((entry, index) => isEqual(entry, other[index]));
  if (!isFields(one) || !isFields(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isEqual(one[name], other[name]))
  );
}

/** Value that differs between two records. `undefined` means that there is no value. `path` is dotted. */
export type ChangedField = { path: string; before: Value; after: Value };

/** Returns the values that differ, at any depth. */
export function changedFields(before: JsonFields, after: JsonFields): ChangedField[] {
  const found: ChangedField[] = [];
  const compare = (one: Value, other: Value, path: string): void => {
    if (isEqual(one, other)) return;
    if (!isFields(one) || !isFields(other)) {
      found.push({ path, before: one, after: other });
      return;
    }
    for (const name of new Set([...Object.keys(one), ...Object.keys(other)]))
      compare(field(one, name), field(other, name), path === '' ? name : `${path}.${name}`);
  };
  compare(before, after, '');
  return found;
}

/**
 * Returns the edits that are preserved: values of a merged tool that differ from the description without a conflict.
 */
export function keptEdits(
  description: JsonFields,
  merged: JsonFields,
  conflicts: readonly { path: string }[],
): ChangedField[] {
  const isOpen = (path: string) => conflicts.some((conflict) => `${path}.`.startsWith(`${conflict.path}.`));
  return changedFields({ ...toolDefaults, ...description }, { ...toolDefaults, ...merged }).filter(
    ({ path }) => !isOpen(path),
  );
}
