let last = Promise.resolve();

/**
 * Lets other work have the event loop between two pieces of long work. Only for large inputs: an ordinary call would wait
 * without need. Those who wait get a turn each, in the order in which they came: Node runs all immediates in one turn.
 */
export function nextTurn(): Promise<void> {
  last = last.then(() => new Promise((resolve) => setImmediate(resolve)));
  return last;
}

/** Reading, writing or storing a text of this length takes some milliseconds. */
const longText = 500_000;

/** Lets other work have the event loop after work on a text, when it is long. */
export async function turnAfter(text: string): Promise<void> {
  if (text.length > longText) await nextTurn();
}
