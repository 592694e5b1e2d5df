type Waiting = (() => void)[];

/** Node runs all immediates in one turn of the event loop, so those who wait are given a turn each. */
const begun: Waiting = [];
const notBegun: Waiting = [];

/** Work that has begun goes first, but work that has not gets at least every sixteenth turn. */
const mostBefore = 15;
let before = 0;

/**
 * Lets other work have the event loop between two pieces of long work. Those who wait get a turn each, in the order in
 * which they came. Not on the way of an ordinary call, which would wait without need.
 */
export function nextTurn(): Promise<void> {
  return waitIn(begun);
}

/**
 * Waits for a turn in which long work begins. Otherwise all requests that come at once would be half done at the same
 * time, and keep places that others wait for.
 */
export function turnToBegin(): Promise<void> {
  return waitIn(notBegun);
}

function waitIn(waiting: Waiting): Promise<void> {
  if (begun.length + notBegun.length === 0) setImmediate(giveTurn);
  return new Promise((resolve) => waiting.push(resolve));
}

function giveTurn(): void {
  const isForBegun = begun.length > 0 && (notBegun.length === 0 || before < mostBefore);
  before = isForBegun && notBegun.length > 0 ? before + 1 : 0;
  const resolve = (isForBegun ? begun : notBegun).shift() as () => void;
  resolve();
  if (begun.length + notBegun.length > 0) setImmediate(giveTurn);
}

/** Reading, writing or storing a text of this length takes some milliseconds. */
const longText = 500_000;

/** Lets other work have the event loop after work on a text, when it is long. */
export async function turnAfter(text: string): Promise<void> {
  if (text.length > longText) await nextTurn();
}
