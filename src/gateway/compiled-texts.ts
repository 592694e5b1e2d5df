import { LRUCache } from 'lru-cache';

const mostCharacters = 8_000_000;

/** Caches the results of compiling recurring texts, by text. */
export function compiledTexts<Compiled extends object>(
  compile: (text: string) => Compiled,
): (text: string) => Compiled {
  const kept = new LRUCache<string, Compiled>({
    maxSize: mostCharacters,
    sizeCalculation: (_, text) => text.length + 1,
  });
  return (text) => {
    const made = kept.get(text) ?? compile(text);
    kept.set(text, made);
    return made;
  };
}
