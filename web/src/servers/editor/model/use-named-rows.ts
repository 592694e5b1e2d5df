import { useState } from 'react';
import { parseJson } from '../../../exact-json.ts';
import { isObject } from '../../config.ts';

export type NamedRow<Value> = { name: string; value: Value };

/**
 * An object edited as rows. While a person types, two rows may have the same name, or none.
 * The rows follow the object when it changes elsewhere.
 */
export function useNamedRows<Value>(
  object: unknown,
  store: (next: { [name: string]: Value }) => void,
  isEmpty: (value: Value) => boolean,
) {
  const stored = isObject(object) ? (object as { [name: string]: Value }) : {};
  const [draft, setDraft] = useState<NamedRow<Value>[]>([]);
  const text = (rows: readonly NamedRow<Value>[]) =>
    JSON.stringify(Object.fromEntries(rows.filter(({ name }) => name !== '').map(({ name, value }) => [name, value])));
  const own = Object.entries(stored).map(([name, value]) => ({ name, value }));
  const rows = text(draft) === JSON.stringify(stored) ? draft : own;
  const change = (next: NamedRow<Value>[]) => {
    setDraft(next);
    store(parseJson(text(next)) as { [name: string]: Value });
  };
  const nameProblem = (index: number): string | undefined => {
    const row = rows[index];
    if (row?.name === '') return isEmpty(row.value) ? undefined : 'needs a name';
    return rows.some(({ name }, other) => other < index && name === row?.name) ? 'is there twice' : undefined;
  };
  return {
    rows,
    nameProblem,
    /** The first row whose name cannot be stored. */
    firstProblem: rows.map((_, index) => nameProblem(index)).find((problem) => problem !== undefined),
    add: (value: Value) => change([...rows, { name: '', value }]),
    update: (index: number, row: NamedRow<Value>) => change(rows.with(index, row)),
    remove: (index: number) => change(rows.toSpliced(index, 1)),
  };
}
