import { LRUCache } from 'lru-cache';
import { sizeOfValue } from '../domain/config/sizes.ts';
import { parseJson } from '../domain/json/json.ts';

/** Maximum cache size, in characters. A character takes about ten bytes once compiled. */
const mostCharacters = 8_000_000;

/** Caches the compiled forms of recurring JSON texts, by text. */
export function compiledTexts<Compiled extends object>(
  compile: (value: unknown) => Compiled,
): (text: string) => Compiled {
  const kept = new LRUCache<string, Compiled>({ maxSize: mostCharacters });
  return (text) => {
    const known = kept.get(text);
    if (known) return known;
    const value = parseJson(text);
    const made = compile(value);
    kept.set(text, made, { size: sizeOfValue(value) });
    return made;
  };
}
