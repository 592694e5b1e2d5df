import { isObject } from '../config.ts';

/** The NAMEs of every {{NAME}} in a configuration that is no variable. */
export function secretNames(config: unknown): string[] {
  const found = JSON.stringify(config ?? null).matchAll(/\{\{\s*([A-Za-z_]\w{0,63})\s*\}\}/g);
  const names = new Set([...found].map((match) => match[1] ?? ''));
  const variables = isObject(config) && isObject(config.variables) ? config.variables : {};
  return [...names].filter((name) => !Object.hasOwn(variables, name));
}
