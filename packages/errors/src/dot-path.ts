/**
 * A dot path: key names and item indexes, joined by dots. `.` or an empty path is the whole value. A backslash escapes
 * the next character, such as a dot within a key, and `""` is the empty name.
 */
export type DotPath = readonly string[];

export function parseDotPath(text: string): DotPath {
  return splitWrittenNames(text).map((name) => (name === emptyName ? '' : name.replaceAll(/\\(.)/gs, '$1')));
}

const emptyName = '""';

/** Returns the names of a path as written. */
export function splitWrittenNames(text: string): string[] {
  const path = text.replace(/^\./, '');
  if (path === '') return [];
  const names = [''];
  for (const [unit] of path.matchAll(/\\?./gs)) {
    if (unit === '.') names.push('');
    else names[names.length - 1] += unit;
  }
  return names;
}

/** Formats a path as it is written in a configuration. */
export function formatDotPath(path: DotPath): string {
  return path.map(escapeName).join('.');
}

export function escapeName(name: string): string {
  if (name === '') return emptyName;
  return name === emptyName ? `\\${name}` : name.replaceAll(/[\\.]/g, '\\$&');
}

/** Returns the index that a name stands for in a list; undefined for any other name. */
export function toItemIndex(name: string): number | undefined {
  return /^(0|[1-9]\d{0,8})$/.test(name) ? Number(name) : undefined;
}

/** A path that a configuration writes as in JSONPath, jq, JSON Pointer, or a programming language. */
export type TranslatedPath = {
  /** The equivalent dot path; it enters each list whose items `all` selects. */
  names: readonly string[];
  /** Number of names before the first list whose items are all selected. */
  allAtDepth: number | undefined;
};

/** Matches any key or item in a path of `response_fields`. */
export const anyKey = '*';

/** Interprets a path in another notation. A backslash marks a path that is meant literally. */
export function translatePath(text: string): TranslatedPath | undefined {
  if (text.includes('\\')) return undefined;
  const isPointer = /^#?\//.test(text);
  const dottedText = isPointer
    ? text.replace(/^#?\//, '').replaceAll('/', '.')
    : text
        .trim()
        .replace(/^\.?[$@](?=$|[.[])/, '')
        .replaceAll(/\[\s*(['"])(.*?)\1\s*\]/g, (_, _quote, name: string) => `.${escapeName(name)}`)
        .replaceAll(/\[\s*(\d+)\s*\]/g, '.$1')
        .replaceAll(/\[[^\]]*\]/g, `.${anyKey}`)
        .replaceAll(/\s*\|\s*\.?|\?\.|->/g, '.');
  const names = splitWrittenNames(dottedText);
  const allAtDepth = names.findIndex((name) => name === anyKey || name === '**' || name === '#');
  if (allAtDepth < 0 && dottedText.replace(/^\./, '') === text.replace(/^\./, '')) return undefined;
  return {
    names: names.filter((name) => name !== anyKey && name !== '**' && name !== '#'),
    allAtDepth: allAtDepth < 0 ? undefined : allAtDepth,
  };
}

/** Returns the value at a path of own properties, or undefined if there is none. */
export function getValueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let current = value;
  for (const key of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, key)) return undefined;
    current = (current as Record<PropertyKey, unknown>)[key];
  }
  return current;
}
