import type { JsonObject } from '../../../answers.ts';
import { textOf } from '../../config.ts';

export function moved<Item>(list: readonly Item[], from: number, to: number): Item[] {
  const item = list[from];
  return item === undefined ? [...list] : list.toSpliced(from, 1).toSpliced(to, 0, item);
}

/** `list_tasks` → `list_tasks_2`, or the next number that is free. */
export function copyName(tools: readonly JsonObject[], index: number): string {
  const names = new Set(tools.map((tool) => textOf(tool.name)));
  const base = textOf(tools[index]?.name).replace(/_\d+$/, '');
  for (let number = 2; ; number++) {
    const name = `${base}_${number}`;
    if (!names.has(name)) return name;
  }
}
