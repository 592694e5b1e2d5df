import { JsonCursor, nextName, type TextRange } from './json-cursor.ts';

type Fields = { [name: string]: unknown };

/** An input as it is transferred to a thread: JSON text of an object, and fields that replace those of the text. */
export type InputText = { text: Uint8Array<ArrayBuffer>; over: Fields };

/** Members that say what an input is about: they are needed before a thread has parsed it. */
const needed = ['slug', 'expected_version', 'tool'] as const;
/** Longest list or object that is parsed for them, in bytes: a longer one is no valid value of any of them. */
const mostOfMember = 1000;

/**
 * A large object that stays JSON text until a thread parses it. Only the members of `needed` are read before that; they
 * are its properties. The text must be JSON.
 */
export class LongInput {
  [name: string]: unknown;
  readonly #text: Buffer;
  readonly #over: Fields;
  readonly #read: Fields;

  constructor(text: Buffer, over: Fields = {}, read = neededMembers(text)) {
    this.#text = text;
    this.#over = over;
    this.#read = read;
    for (const name of needed) {
      const value = Object.hasOwn(over, name) ? over[name] : read[name];
      if (value !== undefined) this[name] = value;
    }
  }

  /** The same with other values of some fields, as of `{ ...input, ...over }`. */
  with(over: Fields): LongInput {
    return new LongInput(this.#text, { ...this.#over, ...over }, this.#read);
  }

  get bytes(): number {
    return this.#text.length;
  }

  /** A copy for a thread, in memory of its own. */
  copy(): InputText {
    return { text: new Uint8Array(this.#text), over: this.#over };
  }
}

function neededMembers(text: Buffer): Fields {
  const ranges = new Map<string, TextRange>();
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

function smallValue(text: Buffer, { from, end }: TextRange): unknown {
  const isContainer = text[from] === 0x7b || text[from] === 0x5b;
  return isContainer && end - from > mostOfMember ? {} : JSON.parse(text.toString('utf8', from, end));
}
