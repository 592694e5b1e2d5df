/**
 * Lets other work have the event loop between two pieces of long work. Only for large inputs: an ordinary call would wait
 * without need.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
