import { ToolFailure } from '../../errors.ts';
import { type DotPath, dotPathText, indexOf } from './dot-path.ts';
import { JsonCursor, NameTable, type TextRange } from './json-cursor.ts';

export const maxKeysShown = 20;
const dot = 0x2e;

/** Description of the value at which a path could not be followed further. */
type Missing = { depth: number; keys: string[] | undefined; entries: number };

/**
 * Returns the position of the value that a path names in JSON text. As with JSON.parse, the last of several equal names
 * is used. A key that contains dots may appear unescaped in the path. If several such keys match, the shortest one that
 * leads further is used. Every byte is read once.
 * @throws ToolFailure transform, with the path and the keys at the deepest level reached
 */
export function findPart(json: Buffer, path: DotPath): TextRange {
  const search = new Search(json, path);
  const found = search.run();
  if (found) return found;
  const { depth } = search.missing;
  const reached = depth === 0 ? 'the response' : `"${dotPathText(path.slice(0, depth))}"`;
  const sentence = `response_transform "${dotPathText(path)}" does not exist in the response`;
  throw new ToolFailure(
    'transform',
    `${sentence}: ${reached} has ${keysText(search.missing)}`,
    [],
    sentence + (depth > 0 ? `; the path exists up to ${reached}` : ''),
  );
}

/** Returns true if a path exists in JSON text. */
export function hasPart(json: Buffer, path: DotPath): boolean {
  return new Search(json, path).run() !== undefined;
}

class Search {
  readonly #cursor: JsonCursor;
  readonly #path: DotPath;
  readonly #names: readonly NameTable<true>[];
  #found: TextRange | undefined;
  missing: Missing = { depth: 0, keys: undefined, entries: 0 };

  constructor(json: Buffer, path: DotPath) {
    this.#cursor = new JsonCursor(json);
    this.#path = path;
    this.#names = path.map((name) => {
      const table = new NameTable<true>();
      table.add(name, true);
      return table;
    });
  }

  run(): TextRange | undefined {
    this.#cursor.skipSpace();
    this.#value(0);
    return this.#found;
  }

  #value(depth: number): void {
    const cursor = this.#cursor;
    // A repeated name replaces the earlier value.
    this.#found = undefined;
    if (depth === this.#path.length) {
      const from = cursor.at;
      cursor.skipValue();
      this.#found = { from, end: cursor.at };
    } else if (cursor.isAt('object')) this.#object(depth);
    else if (cursor.isAt('array')) this.#array(depth);
    else {
      cursor.skipValue();
      this.missing = { depth, keys: undefined, entries: -1 };
    }
  }

  #object(depth: number): void {
    const cursor = this.#cursor;
    const keys: string[] = [];
    let entries = 0;
    let isThere = false;
    let best: { count: number; range: TextRange } | undefined;
    cursor.at++;
    while (cursor.next()) {
      const from = cursor.at;
      cursor.skipString();
      const end = cursor.at;
      cursor.skipColon();
      const count = this.#namesOf(depth, from, end);
      if (count > 0 && count <= (best?.count ?? count)) {
        isThere = true;
        this.#value(depth + count);
        if (this.#found) best = { count, range: this.#found };
        else if (best?.count === count) best = undefined;
        continue;
      }
      if (++entries <= maxKeysShown) keys.push(cursor.nameAt(from, end));
      cursor.skipValue();
    }
    this.#found = best?.range;
    if (!isThere) this.missing = { depth, keys, entries };
  }

  /** Returns how many names of the path the key at `from` matches: one, more for a key with dots, or zero. */
  #namesOf(depth: number, from: number, end: number): number {
    const { bytes } = this.#cursor;
    if (this.#names[depth]?.find(bytes, from, end)) return 1;
    if (depth + 1 === this.#path.length || !bytes.subarray(from, end).includes(dot)) return 0;
    const names = this.#cursor.nameAt(from, end).split('.');
    return names.every((name, index) => name === this.#path[depth + index]) ? names.length : 0;
  }

  #array(depth: number): void {
    const cursor = this.#cursor;
    const wanted = indexOf(this.#path[depth] as string) ?? -1;
    let entries = 0;
    cursor.at++;
    while (cursor.next()) {
      if (entries === wanted) this.#value(depth + 1);
      else cursor.skipValue();
      entries++;
    }
    if (wanted < 0 || wanted >= entries) this.missing = { depth, keys: undefined, entries };
  }
}

export function keysText({ keys, entries }: Omit<Missing, 'depth'>): string {
  if (entries < 0) return 'no keys, because it is a single value';
  if (!keys) return entries === 0 ? 'no entries' : `the indexes 0 to ${entries - 1}`;
  if (entries === 0) return 'no keys';
  const more = entries > maxKeysShown ? ` and ${entries - maxKeysShown} more` : '';
  return `the keys ${keys.map((key) => JSON.stringify(key.slice(0, 100))).join(', ')}${more}`;
}
