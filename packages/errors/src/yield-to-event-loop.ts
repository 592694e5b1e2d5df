/**
 * A value that is almost always available synchronously and sometimes must be fetched. A promise would slow the hot
 * path.
 */
export type MaybePromise<T> = T | Promise<T>;

/** Callers that are waiting for the event loop, in order of arrival. */
const waitingCallers: (() => void)[] = [];

/**
 * Yields to the event loop between two chunks of long work. Node runs all immediates in one event loop iteration, so
 * each waiting caller is resumed in its own. Do not use it in ordinary calls, which would wait without need.
 */
export function yieldToEventLoop(): Promise<void> {
  if (waitingCallers.length === 0) setImmediate(resumeNext);
  return new Promise((resolve) => waitingCallers.push(resolve));
}

function resumeNext(): void {
  waitingCallers.shift()?.();
  if (waitingCallers.length > 0) setImmediate(resumeNext);
}

/** Length, in characters, from which reading, writing, or storing a text takes some milliseconds. */
const longTextLength = 500_000;

/** Yields to the event loop after work on a text, if the text is long. */
export async function yieldAfterLongText(text: string): Promise<void> {
  if (text.length > longTextLength) await yieldToEventLoop();
}

/** Maximum time, in ms, that processing database rows may block the event loop. */
const maxRowsMs = 5;

/** Returns a function to call after each row. It returns a promise to await when it is time to yield. */
export function yieldBetweenRows(): () => Promise<void> | undefined {
  let startedAt = performance.now();
  return () => {
    if (performance.now() - startedAt < maxRowsMs) return undefined;
    return yieldToEventLoop().then(() => {
      startedAt = performance.now();
    });
  };
}

/** Loads a module when it is first needed. If that fails, the next request retries. */
export function createLazyLoader<Module>(load: () => Promise<Module>): () => Promise<Module> {
  let loaded: Promise<Module> | undefined;
  return () => {
    loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
}

/**
 * Loads modules one after the other. Calls are served in the meantime, and loading all modules together would block
 * them.
 */
export async function loadSequentially(modules: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const load of modules) {
    await load();
    await yieldToEventLoop();
  }
}
