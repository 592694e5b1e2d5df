import { JsonCursor, nextName, type TextRange } from './json-cursor.ts';

/** JSON text in which large objects were replaced by `{}`, and the objects as text; undefined where there is none. */
export type Shortened = { text: string; objects: (Buffer | undefined)[] };

/** Shorter objects stay in the text, in bytes. */
const leastCut = 1000;

/**
 * Takes large objects at a path out of JSON text: out of an object, or out of each object of an array, for which there
 * is an entry each. Of members with the same name the last one counts, as for a parser.
 */
export function withoutObjects(bytes: Buffer, path: readonly string[]): Shortened {
  const cursor = new JsonCursor(bytes);
  const cuts: TextRange[] = [];
  const found: (TextRange | undefined)[] = [];
  cursor.skipSpace();
  if (cursor.isAt('array')) {
    cursor.at++;
    while (cursor.next()) found.push(findObject(cursor, path, cuts));
  } else found.push(findObject(cursor, path, cuts));
  const pieces: string[] = [];
  let at = 0;
  for (const { from, end } of cuts) {
    pieces.push(bytes.toString('utf8', at, from), '{}');
    at = end;
  }
  pieces.push(bytes.toString('utf8', at));
  return { text: pieces.join(''), objects: found.map((range) => range && bytes.subarray(range.from, range.end)) };
}

/** The range of the object at a path below the value at the cursor, which goes behind that value. */
function findObject(cursor: JsonCursor, path: readonly string[], cuts: TextRange[]): TextRange | undefined {
  const [name, ...rest] = path;
  const from = cursor.at;
  if (!cursor.isAt('object') || name === undefined) {
    const isObject = cursor.isAt('object');
    cursor.skipValue();
    if (!isObject || cursor.at - from < leastCut) return undefined;
    const range = { from, end: cursor.at };
    cuts.push(range);
    return range;
  }
  let last: TextRange | undefined;
  cursor.at++;
  while (cursor.next()) {
    if (nextName(cursor, [name]) === undefined) cursor.skipValue();
    else last = findObject(cursor, rest, cuts);
  }
  return last;
}
