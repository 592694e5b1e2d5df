import { nextTurn } from './next-turn.ts';

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
