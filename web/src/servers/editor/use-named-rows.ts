import { useState } from 'react';
import { isObject } from '../config.ts';

export type NamedRow<Value> = { name: string; value: Value };

/**
 * An object edited as rows: two of them may have the same name, or none, for as long as somebody types.
 * The rows follow the object when it changes elsewhere.
 */
export function useNamedRows<Value>(object: unknown, store: (next: { [name: string]: Value }) => void) {
  const stored = isObject(object) ? (object as { [name: string]: Value }) : {};
  const [draft, setDraft] = useState<NamedRow<Value>[]>([]);
  const text = (rows: readonly NamedRow<Value>[]) =>
    JSON.stringify(Object.fromEntries(rows.filter(({ name }) => name !== '').map(({ name, value }) => [name, value])));
  const own = Object.entries(stored).map(([name, value]) => ({ name, value }));
  const rows = text(draft) === JSON.stringify(stored) ? draft : own;
  const change = (next: NamedRow<Value>[]) => {
    setDraft(next);
    store(JSON.parse(text(next)) as { [name: string]: Value });
  };
  return {
    rows,
    isRepeated: (index: number) =>
      rows.some(({ name }, other) => other < index && name !== '' && name === rows[index]?.name),
    add: (value: Value) => change([...rows, { name: '', value }]),
    update: (index: number, row: NamedRow<Value>) => change(rows.with(index, row)),
    remove: (index: number) => change(rows.toSpliced(index, 1)),
  };
}
