import { label, type Metric } from './metric.ts';

/** Counts by one label, whose values are fixed in advance so that their number stays bounded. */
export type Counter<Value extends string> = { count(value: Value, by?: number): void; read(): Metric };

export function createCounter<Value extends string>(
  name: string,
  help: string,
  labelName: string,
  values: readonly Value[],
): Counter<Value> {
  const counts = Object.fromEntries(values.map((value) => [value, 0])) as Record<Value, number>;
  return {
    count(value, by = 1) {
      counts[value] += by;
    },
    read: () => ({
      name,
      help,
      type: 'counter',
      merge: 'sum',
      samples: values.map((value) => ({ suffix: '', labels: label(labelName, value), value: counts[value] })),
    }),
  };
}
