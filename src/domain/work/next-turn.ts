/** A value that is nearly always known at once, and sometimes must be fetched: a promise costs the hot path time. */
export type MaybePromise<T> = T | Promise<T>;

/** Those who wait, first come, first served. */
const waiting: (() => void)[] = [];

/**
 * Lets other work have the event loop between two pieces of long work. Node runs all immediates in one turn of the event
 * loop, so those who wait are given a turn each. Not on the way of an ordinary call, which would wait without need.
 */
export function nextTurn(): Promise<void> {
  if (waiting.length === 0) setImmediate(giveTurn);
  return new Promise((resolve) => waiting.push(resolve));
}

function giveTurn(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(giveTurn);
}

/** Reading, writing or storing a text of this length takes some milliseconds. */
const longText = 500_000;

/** Lets other work have the event loop after work on a text, when it is long. */
export async function turnAfter(text: string): Promise<void> {
  if (text.length > longText) await nextTurn();
}

/** Longest time, in ms, that rows of the database hold the event loop. */
const maxRowsMs = 5;

/** Returns a function that is called after each row, and returns a promise to await when it is time to yield. */
export function yieldBetweenRows(): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < maxRowsMs) return undefined;
    return nextTurn().then(() => {
      since = performance.now();
    });
  };
}

/** A part of the program that is loaded when it is first needed. Where that fails, the next request tries it again. */
export function loadedOnce<Part>(load: () => Promise<Part>): () => Promise<Part> {
  let loaded: Promise<Part> | undefined;
  return () => {
    loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
}

/** Loads modules one after the other, because calls are served meanwhile and loading them together would take long. */
export async function loadInTurns(modules: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const load of modules) {
    await load();
    await nextTurn();
  }
}
