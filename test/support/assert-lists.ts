import assert from 'node:assert/strict';

/** Asserts that no item meets a condition, and otherwise shows those that do. */
export function assertNone<Item>(items: readonly Item[], condition: (item: Item) => unknown, message = ''): void {
  assertList(items.filter(condition), [], message);
}

/** Asserts which values a function makes of the items. */
export function assertMapped<Item>(
  items: readonly Item[],
  toValue: (item: Item) => unknown,
  expected: unknown,
  message = '',
): void {
  assertList(items.map(toValue), expected, message);
}

export function assertSome<Item>(items: readonly Item[], condition: (item: Item) => unknown, message = ''): void {
  assert.ok(items.some(condition), message || `no item meets the condition: ${JSON.stringify(items)}`);
}

function assertList(actual: unknown, expected: unknown, message: string): void {
  if (message === '') assert.deepEqual(actual, expected);
  else assert.deepEqual(actual, expected, message);
}
