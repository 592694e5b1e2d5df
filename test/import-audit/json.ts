/** JSON values, and how the audit reads them. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [name: string]: Json };

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const toObject = (value: unknown): JsonObject => (isObject(value) ? value : {});
export const toList = (value: unknown): Json[] => (Array.isArray(value) ? value : []);
export const toText = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Compares two values. Property order is insignificant. */
export function isSameJson(a: unknown, b: unknown): boolean {
  return JSON.stringify(sortNames(a)) === JSON.stringify(sortNames(b));
}

function sortNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortNames);
  if (!isObject(value)) return value;
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, sortNames(value[name])]));
}

/** Resolves a JSON pointer in a URI fragment (RFC 6901, 6). */
export function resolvePointer(document: Json, reference: string): Json | undefined {
  if (!reference.startsWith('#')) return undefined;
  let value: Json | undefined = document;
  for (const token of reference.slice(1).split('/').slice(1)) {
    const name = safeDecode(token).replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(value)) value = value[Number(name)];
    else if (isObject(value) && Object.hasOwn(value, name)) value = value[name];
    else return undefined;
  }
  return value;
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
