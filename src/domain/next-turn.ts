/**
 * Lets others have the event loop between two pieces of long work. For work on large inputs only: an ordinary call
 * would wait for nothing.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
