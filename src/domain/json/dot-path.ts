/**
 * A dot path: key names and item indexes, joined by dots. `.` or an empty path is the whole value. A backslash escapes
 * the next character, such as a dot within a key, and `""` is the empty name.
 */
export type DotPath = readonly string[];

export function parseDotPath(text: string): DotPath {
  return writtenNames(text).map((name) => (name === emptyName ? '' : name.replaceAll(/\\(.)/gs, '$1')));
}

const emptyName = '""';

/** Returns the names of a path as written. */
export function writtenNames(text: string): string[] {
  const path = text.replace(/^\./, '');
  if (path === '') return [];
  const names = [''];
  for (const [piece] of path.matchAll(/\\?./gs)) {
    if (piece === '.') names.push('');
    else names[names.length - 1] += piece;
  }
  return names;
}

/** Formats a path as it is written in a configuration. */
export function dotPathText(path: DotPath): string {
  return path.map(nameText).join('.');
}

export function nameText(name: string): string {
  if (name === '') return emptyName;
  return name === emptyName ? `\\${name}` : name.replaceAll(/[\\.]/g, '\\$&');
}

/** Returns the index that a name stands for in a list; undefined for any other name. */
export function indexOf(name: string): number | undefined {
  return /^(0|[1-9]\d{0,8})$/.test(name) ? Number(name) : undefined;
}

/** A path that a configuration writes as in JSONPath, jq, JSON Pointer, or a programming language. */
export type ForeignPath = {
  /** The equivalent dot path; it enters each list whose items `all` selects. */
  names: readonly string[];
  /** Number of names before the first list whose items are all selected. */
  all: number | undefined;
};

/** Matches any key or item in a path of `response_fields`. */
export const anyKey = '*';

/** Interprets a path in another notation. A backslash marks a path that is meant literally. */
export function foreignPath(text: string): ForeignPath | undefined {
  if (text.includes('\\')) return undefined;
  const isPointer = /^#?\//.test(text);
  const dotted = isPointer
    ? text.replace(/^#?\//, '').replaceAll('/', '.')
    : text
        .trim()
        .replace(/^\.?[$@](?=$|[.[])/, '')
        .replaceAll(/\[\s*(['"])(.*?)\1\s*\]/g, (_, _quote, name: string) => `.${nameText(name)}`)
        .replaceAll(/\[\s*(\d+)\s*\]/g, '.$1')
        .replaceAll(/\[[^\]]*\]/g, `.${anyKey}`)
        .replaceAll(/\s*\|\s*\.?|\?\.|->/g, '.');
  const names = writtenNames(dotted);
  const all = names.findIndex((name) => name === anyKey || name === '**' || name === '#');
  if (all < 0 && dotted.replace(/^\./, '') === text.replace(/^\./, '')) return undefined;
  return {
    names: names.filter((name) => name !== anyKey && name !== '**' && name !== '#'),
    all: all < 0 ? undefined : all,
  };
}

/** Returns the value at a path of own properties, or undefined if there is none. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value;
  for (const key of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as Record<PropertyKey, unknown>)[key];
  }
  return found;
}
