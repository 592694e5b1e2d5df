import type { ApiOperation } from '../model.ts';
import { visibleName } from '../tools/texts.ts';

const longest = 2000;

/** What identifies each operation when the document is imported again, such as `GET /pets/{id}`; no two are the same. */
export function operationKeys(operations: readonly ApiOperation[]): string[] {
  const counts = new Map<string, number>();
  return operations.map(({ method, path }) => {
    const key = visibleName(`${method} ${path}`).slice(0, longest);
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return count === 1 ? key : `${key} (${count})`;
  });
}
