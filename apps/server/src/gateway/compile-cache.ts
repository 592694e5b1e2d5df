import { parseJson } from '@toolhost/json/json';
import { getValueSize } from '@toolhost/tool-config/sizes';
import { LRUCache } from 'lru-cache';

/** Maximum cache size, in characters. A character takes about ten bytes once compiled. */
const maxCharacters = 8_000_000;

/** Caches the compiled forms of recurring JSON texts, by text. */
export function createCompileCache<Compiled extends object>(
  compile: (value: unknown) => Compiled,
): (text: string) => Compiled {
  const cache = new LRUCache<string, Compiled>({ maxSize: maxCharacters });
  return (text) => {
    const cached = cache.get(text);
    if (cached) return cached;
    const value = parseJson(text);
    const compiled = compile(value);
    cache.set(text, compiled, { size: getValueSize(value) });
    return compiled;
  };
}
