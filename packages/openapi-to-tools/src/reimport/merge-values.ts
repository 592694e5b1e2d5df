import { isRawNumber } from '@toolhost/json/json';
import { toolDefaults } from '@toolhost/tool-config/tool';
import { getField, isFields, type JsonFields } from '../document/lenient.ts';

/** JSON value, or undefined if there is none. */
export type Value = unknown;

/** Value that both sides changed differently. `path` is dotted. */
export type Conflict = { path: string; before: Value; yours: Value; theirs: Value };

/** Three versions of a value: as it was generated last, as people edited it, and as it is generated now. */
export type ThreeWay = { before: Value; yours: Value; theirs: Value };

export type MergeOptions = {
  /** Decides a conflict. */
  choose: (conflict: Conflict) => 'yours' | 'theirs';
  onConflict: (conflict: Conflict) => void;
};

/**
 * Merges a value. If one side is unchanged, the other side wins. Objects are merged by property, everything else as a
 * whole. Properties keep the order of `yours`, followed by new ones of `theirs`.
 */
export function mergeValues(values: ThreeWay, path: string, options: MergeOptions): Value {
  const { before, yours, theirs } = values;
  if (isEqual(yours, theirs) || isEqual(theirs, before)) return yours;
  if (isEqual(yours, before)) return theirs;
  if (isFields(yours) && isFields(theirs)) {
    return mergeRecords({ before: isFields(before) ? before : {}, yours, theirs }, path, options);
  }
  const conflict = { path, before, yours, theirs };
  options.onConflict(conflict);
  return options.choose(conflict) === 'yours' ? yours : theirs;
}

type Records = { before: JsonFields; yours: JsonFields; theirs: JsonFields };

export function mergeRecords({ before, yours, theirs }: Records, path: string, options: MergeOptions): JsonFields {
  const names = new Set([...Object.keys(yours), ...Object.keys(theirs)]);
  const merged: [string, Value][] = [];
  for (const name of names) {
    const values = { before: getField(before, name), yours: getField(yours, name), theirs: getField(theirs, name) };
    const value = mergeValues(values, path === '' ? name : `${path}.${name}`, options);
    if (value !== undefined) merged.push([name, value]);
  }
  return Object.fromEntries(merged);
}

/** Returns true if two values are the same JSON, ignoring property order. */
export function isEqual(first: Value, second: Value): boolean {
  if (first === second) return true;
  if (isRawNumber(first) && isRawNumber(second)) return first.rawJSON === second.rawJSON;
  if (Array.isArray(first) && Array.isArray(second))
    return first.length === second.length && first.every((entry, index) => isEqual(entry, second[index]));
  if (!isFields(first) || !isFields(second)) return false;
  const names = Object.keys(first);
  return (
    names.length === Object.keys(second).length &&
    names.every((name) => Object.hasOwn(second, name) && isEqual(first[name], second[name]))
  );
}

/** Value that differs between two records. `undefined` means that there is no value. `path` is dotted. */
export type ChangedField = { path: string; before: Value; after: Value };

/** Returns the values that differ, at any depth. */
export function findChangedFields(before: JsonFields, after: JsonFields): ChangedField[] {
  const changes: ChangedField[] = [];
  const compare = (first: Value, second: Value, path: string): void => {
    if (isEqual(first, second)) return;
    if (!isFields(first) || !isFields(second)) {
      changes.push({ path, before: first, after: second });
      return;
    }
    for (const name of new Set([...Object.keys(first), ...Object.keys(second)]))
      compare(getField(first, name), getField(second, name), path === '' ? name : `${path}.${name}`);
  };
  compare(before, after, '');
  return changes;
}

/**
 * Returns the edits that are preserved: values of a merged tool that differ from the description without a conflict.
 */
export function findPreservedEdits(
  description: JsonFields,
  merged: JsonFields,
  conflicts: readonly { path: string }[],
): ChangedField[] {
  const isInConflict = (path: string) => conflicts.some((conflict) => `${path}.`.startsWith(`${conflict.path}.`));
  return findChangedFields({ ...toolDefaults, ...description }, { ...toolDefaults, ...merged }).filter(
    ({ path }) => !isInConflict(path),
  );
}
