import { toolDefaults } from '../../domain/config/tool.ts';
import { field, isFields, type JsonFields } from '../document/lenient.ts';
import { isEqual, type Value } from './merge-values.ts';

/** A value that differs between two records; `undefined` is a value that is not there. `path` has dots. */
export type ChangedField = { path: string; before: Value; after: Value };

/** The values that differ, as deep as objects are. */
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

/** Where a merged tool still differs from the description and nothing is to be decided: the edits that stay. */
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
