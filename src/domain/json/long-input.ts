import { JsonCursor } from './json-cursor.ts';
import type { JsonScan } from './json-scan.ts';

type Fields = { [name: string]: unknown };

/** An input as it is transferred to a thread: JSON text of an object, and fields that replace those of the text. */
export type InputText = { text: Uint8Array<ArrayBuffer>; over: Fields; isLong: boolean };

/** Parsing and checking an input of this size takes some milliseconds; a larger one may be left to a thread. */
export const mostParsed = { values: 1500, characters: 60_000 };

/** Whether a body is larger than that. */
export function isLongInput(bytes: number, { elements, names }: JsonScan): boolean {
  return bytes > mostParsed.characters || elements > mostParsed.values || names > mostParsed.values;
}

/** Members that say what an input is about: they are needed before a thread has parsed it. */
const needed = ['slug', 'expected_version', 'tool'] as const;
/** Longest list or object that is parsed for them, in bytes; a longer one is none that any of them may be. */
const mostOfMember = 1000;

/**
 * A large object that stays JSON text until a thread parses it. Only the members of `needed` are read before that; they
 * are its properties. The text must be JSON.
 */
export class LongInput {
  [name: string]: unknown;
  readonly #text: Buffer;
  readonly #over: Fields;
  readonly #isLong: boolean;
  readonly #read: Fields;

  /** `isLong`: whether it is larger than an input without a whole configuration may be. */
  constructor(text: Buffer, isLong: boolean, over: Fields = {}, read = neededMembers(text)) {
    this.#text = text;
    this.#isLong = isLong;
    this.#over = over;
    this.#read = read;
    for (const name of needed) {
      const value = Object.hasOwn(over, name) ? over[name] : read[name];
      if (value !== undefined) this[name] = value;
    }
  }

  /** The same with other values of some fields, as of `{ ...input, ...over }`. */
  with(over: Fields): LongInput {
    return new LongInput(this.#text, this.#isLong, { ...this.#over, ...over }, this.#read);
  }

  /** A copy for a thread, in memory of its own. */
  copy(): InputText {
    return { text: new Uint8Array(this.#text), over: this.#over, isLong: this.#isLong };
  }
}

const backslash = 0x5c;

/** Where a value is in a text. */
type Range = { from: number; end: number };

function neededMembers(text: Buffer): Fields {
  const ranges = new Map<string, Range>();
  const cursor = new JsonCursor(text);
  cursor.skipSpace();
  cursor.at++;
  while (cursor.next()) {
    const name = nextName(cursor, needed);
    const from = cursor.at;
    cursor.skipValue();
    if (name !== undefined) ranges.set(name, { from, end: cursor.at });
  }
  return Object.fromEntries([...ranges].map(([name, range]) => [name, smallValue(text, range)]));
}

function smallValue(text: Buffer, { from, end }: Range): unknown {
  const isContainer = text[from] === 0x7b || text[from] === 0x5b;
  return isContainer && end - from > mostOfMember ? {} : JSON.parse(text.toString('utf8', from, end));
}

/** Goes from the name of a member to its value. Returns the name if it is one of `names`. */
function nextName<Name extends string>(cursor: JsonCursor, names: readonly Name[]): Name | undefined {
  const from = cursor.at;
  cursor.skipString();
  const end = cursor.at;
  cursor.skipColon();
  return names.find((name) => isText(cursor.bytes, { from, end }, name));
}

/** Whether a JSON string is a word of ASCII letters, which may be written as `\u0061`. */
function isText(bytes: Buffer, { from, end }: Range, word: string): boolean {
  let at = from + 1;
  for (let index = 0; index < word.length; index++) {
    let code = bytes[at++] as number;
    if (code === backslash) {
      // The other escapes stand for characters that no such word has.
      if (bytes[at] !== 0x75) return false;
      code = hexAt(bytes, at + 1);
      at += 5;
    }
    if (code !== word.charCodeAt(index)) return false;
  }
  return at === end - 1;
}

/** The number that four hexadecimal digits are. */
function hexAt(bytes: Buffer, from: number): number {
  let value = 0;
  for (let at = from; at < from + 4; at++) {
    const digit = bytes[at] as number;
    value = value * 16 + (digit <= 0x39 ? digit - 0x30 : (digit | 0x20) - 0x57);
  }
  return value;
}

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
  const cuts: Range[] = [];
  const found: (Range | undefined)[] = [];
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
function findObject(cursor: JsonCursor, path: readonly string[], cuts: Range[]): Range | undefined {
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
  let last: Range | undefined;
  cursor.at++;
  while (cursor.next()) {
    if (nextName(cursor, [name]) === undefined) cursor.skipValue();
    else last = findObject(cursor, rest, cuts);
  }
  return last;
}
