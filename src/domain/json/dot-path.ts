/**
 * A dot path: names of keys and numbers of items, joined by dots; `.` or empty is everything. A backslash takes the
 * character behind it as it is, which names a key with a dot in it, and `""` is the empty name.
 */
export type DotPath = readonly string[];

export function parseDotPath(text: string): DotPath {
  return writtenNames(text).map((name) => (name === emptyName ? '' : name.replaceAll(/\\(.)/gs, '$1')));
}

const emptyName = '""';

/** The names of a path as they are written. */
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

/** A path as it is written in a configuration. */
export function dotPathText(path: DotPath): string {
  return path.map(nameText).join('.');
}

export function nameText(name: string): string {
  if (name === '') return emptyName;
  return name === emptyName ? `\\${name}` : name.replaceAll(/[\\.]/g, '\\$&');
}

/** The number of an item of a list; undefined for any other name. */
export function indexOf(name: string): number | undefined {
  return /^(0|[1-9]\d{0,8})$/.test(name) ? Number(name) : undefined;
}

/** A path of a configuration that is written as in JSONPath, jq, JSON Pointer or a program. */
export type ForeignPath = {
  /** The same as a dot path, which goes through every list that `all` of its items are meant of. */
  names: readonly string[];
  /** The number of names before the first list of which all items are meant. */
  all: number | undefined;
};

/** Stands for any key or item in a path of `response_fields`. */
export const anyKey = '*';

/** What a path probably means that is written in another notation. A backslash says that it is meant as it is. */
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

/** What a path of own properties leads to; undefined where it leads nowhere. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value;
  for (const key of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as Record<PropertyKey, unknown>)[key];
  }
  return found;
}
