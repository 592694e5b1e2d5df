import { type DotPath, formatDotPath, toItemIndex } from '@toolhost/errors/dot-path';
import { ToolFailure } from '@toolhost/errors/errors';
import { JsonCursor, NameTable, type TextRange } from './json-cursor.ts';

export const maxKeysShown = 20;
const dot = 0x2e;

/** Description of the value at which a path could not be followed further. */
type Missing = { depth: number; keys: string[] | undefined; entries: number };

/**
 * Returns the position of the value that a path names in JSON text. As with JSON.parse, the last of several equal names
 * is used. A key that contains dots may appear unescaped in the path. If several such keys match, the shortest one with
 * which the path continues is used. Reads each byte once.
 * @throws ToolFailure transform, with the path and the keys at the deepest level reached
 */
export function findValueRange(json: Buffer, path: DotPath): TextRange {
  const search = new PathSearch(json, path);
  const range = search.run();
  if (range) return range;
  const { depth } = search.missing;
  const reached = depth === 0 ? 'the response' : `"${formatDotPath(path.slice(0, depth))}"`;
  const summary = `response_transform "${formatDotPath(path)}" does not exist in the response`;
  throw new ToolFailure(
    'transform',
    `${summary}: ${reached} has ${formatKeys(search.missing)}`,
    [],
    summary + (depth > 0 ? `; the path exists up to ${reached}` : ''),
  );
}

/** Returns true if a path exists in JSON text. */
export function hasPath(json: Buffer, path: DotPath): boolean {
  return new PathSearch(json, path).run() !== undefined;
}

class PathSearch {
  readonly #cursor: JsonCursor;
  readonly #path: DotPath;
  readonly #nameTables: readonly NameTable<true>[];
  #range: TextRange | undefined;
  missing: Missing = { depth: 0, keys: undefined, entries: 0 };

  constructor(json: Buffer, path: DotPath) {
    this.#cursor = new JsonCursor(json);
    this.#path = path;
    this.#nameTables = path.map((name) => {
      const table = new NameTable<true>();
      table.add(name, true);
      return table;
    });
  }

  run(): TextRange | undefined {
    this.#cursor.skipSpace();
    this.#visitValue(0);
    return this.#range;
  }

  #visitValue(depth: number): void {
    const cursor = this.#cursor;
    // A repeated name replaces the earlier value.
    this.#range = undefined;
    if (depth === this.#path.length) {
      const from = cursor.position;
      cursor.skipValue();
      this.#range = { from, end: cursor.position };
    } else if (cursor.isAt('object')) this.#visitObject(depth);
    else if (cursor.isAt('array')) this.#visitArray(depth);
    else {
      cursor.skipValue();
      this.missing = { depth, keys: undefined, entries: -1 };
    }
  }

  #visitObject(depth: number): void {
    const cursor = this.#cursor;
    const keys: string[] = [];
    let entries = 0;
    let hasMatch = false;
    let bestMatch: { count: number; range: TextRange } | undefined;
    cursor.position++;
    while (cursor.next()) {
      const from = cursor.position;
      cursor.skipString();
      const end = cursor.position;
      cursor.skipColon();
      const count = this.#countMatchedNames(depth, from, end);
      if (count > 0 && count <= (bestMatch?.count ?? count)) {
        hasMatch = true;
        this.#visitValue(depth + count);
        if (this.#range) bestMatch = { count, range: this.#range };
        else if (bestMatch?.count === count) bestMatch = undefined;
        continue;
      }
      if (++entries <= maxKeysShown) keys.push(cursor.readName(from, end));
      cursor.skipValue();
    }
    this.#range = bestMatch?.range;
    if (!hasMatch) this.missing = { depth, keys, entries };
  }

  /** Returns how many names of the path the key at `from` matches: one, more for a key with dots, or zero. */
  #countMatchedNames(depth: number, from: number, end: number): number {
    const { bytes } = this.#cursor;
    if (this.#nameTables[depth]?.find(bytes, from, end)) return 1;
    if (depth + 1 === this.#path.length || !bytes.subarray(from, end).includes(dot)) return 0;
    const names = this.#cursor.readName(from, end).split('.');
    return names.every((name, index) => name === this.#path[depth + index]) ? names.length : 0;
  }

  #visitArray(depth: number): void {
    const cursor = this.#cursor;
    const wantedIndex = toItemIndex(this.#path[depth] as string) ?? -1;
    let entries = 0;
    cursor.position++;
    while (cursor.next()) {
      if (entries === wantedIndex) this.#visitValue(depth + 1);
      else cursor.skipValue();
      entries++;
    }
    if (wantedIndex < 0 || wantedIndex >= entries) this.missing = { depth, keys: undefined, entries };
  }
}

export function formatKeys({ keys, entries }: Omit<Missing, 'depth'>): string {
  if (entries < 0) return 'no keys, because it is a single value';
  if (!keys) return entries === 0 ? 'no entries' : `the indexes 0 to ${entries - 1}`;
  if (entries === 0) return 'no keys';
  const more = entries > maxKeysShown ? ` and ${entries - maxKeysShown} more` : '';
  return `the keys ${keys.map((key) => JSON.stringify(key.slice(0, 100))).join(', ')}${more}`;
}
