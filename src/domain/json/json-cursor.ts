import { Buffer } from 'node:buffer';

const quote = 0x22;
const backslash = 0x5c;
const openObject = 0x7b;
const openArray = 0x5b;

/** Bytes of a value in JSON text: `bytes[from, end)`. */
export type TextRange = { from: number; end: number };

/** Walks over the bytes of valid JSON text without creating values. */
export class JsonCursor {
  readonly bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  skipSpace(): void {
    while ((this.bytes[this.at] as number) <= 0x20) this.at++;
  }

  /** Moves from the opening quote of a string past its closing quote. */
  skipString(): void {
    const { bytes } = this;
    let at = this.at + 1;
    while (bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
    this.at = at + 1;
  }

  /** Moves from the first byte of a value past its last byte. */
  skipValue(): void {
    const { bytes } = this;
    const first = bytes[this.at];
    if (first === quote) this.skipString();
    else if (first === openObject || first === openArray) this.#skipContainer();
    else {
      let at = this.at + 1;
      while (at < bytes.length && !endsScalar(bytes[at] as number)) at++;
      this.at = at;
    }
  }

  #skipContainer(): void {
    const { bytes } = this;
    let depth = 0;
    do {
      const byte = bytes[this.at] as number;
      if (byte === quote) {
        this.skipString();
        continue;
      }
      this.at++;
      // Brackets and braces differ in one bit.
      const shape = byte | 0x20;
      if (shape === openObject) depth++;
      else if (shape === 0x7d) depth--;
    } while (depth > 0);
  }

  /** Returns true if the cursor is at the first byte of an object or array. */
  isAt(container: 'object' | 'array'): boolean {
    return this.bytes[this.at] === (container === 'object' ? openObject : openArray);
  }

  /**
   * Moves to the next entry of a container: to the name in an object, to the value in an array. The cursor must be just
   * after the container's opening byte or its previous entry. Returns false after the closing byte.
   */
  next(): boolean {
    this.skipSpace();
    const byte = this.bytes[this.at] as number;
    if ((byte | 0x20) === 0x7d) {
      this.at++;
      return false;
    }
    if (byte === 0x2c) {
      this.at++;
      this.skipSpace();
    }
    return true;
  }

  /** Moves from the end of a name to its value. */
  skipColon(): void {
    this.skipSpace();
    this.at++;
    this.skipSpace();
  }

  /** Returns the name between two quotes, the first at `from`. */
  nameAt(from: number, end: number): string {
    return JSON.parse(this.bytes.toString('utf8', from, end)) as string;
  }
}

function endsScalar(byte: number): boolean {
  return byte <= 0x20 || byte === 0x2c || byte === 0x5d || byte === 0x7d;
}

type Piece = TextRange & { bytes: Buffer };

/**
 * Copies a range of JSON text to `target` from `start`, without the white space between tokens. Returns the end
 * position in `target`.
 */
export function copyCompact({ bytes, from, end }: Piece, target: Buffer, start: number): number {
  let to = start;
  let at = from;
  while (at < end) {
    const byte = bytes[at] as number;
    if (byte === quote) {
      const cursor = new JsonCursor(bytes, at);
      cursor.skipString();
      while (at < cursor.at) target[to++] = bytes[at++] as number;
    } else {
      if (byte > 0x20) target[to++] = byte;
      at++;
    }
  }
  return to;
}

/** Returns JSON text without the white space between its tokens. The text must be valid JSON. */
export function compactJson(bytes: Buffer): Buffer {
  const target = Buffer.allocUnsafe(bytes.length);
  return target.subarray(0, copyCompact({ bytes, from: 0, end: bytes.length }, target, 0));
}

/**
 * Looks up names in JSON text by their bytes, because creating a string for every name costs more than all other work.
 */
export class NameTable<Entry> {
  readonly #byHash = new Map<number, One<Entry> | Many<Entry>>();

  add(name: string, entry: Entry): void {
    const bytes = Buffer.from(name);
    const hash = hashOf(bytes, 0, bytes.length);
    const others = this.#byHash.get(hash);
    if (others === undefined) this.#byHash.set(hash, { bytes, entry });
    else this.#byHash.set(hash, manyOf(others).set(bytes.toString('latin1'), entry));
  }

  /** Returns the entry for the name whose quotes are at `from` and before `end`. */
  find(text: Buffer, from: number, end: number): Entry | undefined {
    let hash = 0;
    for (let at = from + 1; at < end - 1; at++) {
      const byte = text[at] as number;
      if (byte === 0x5c) return this.#findEscaped(text, from, end);
      hash = Math.imul(hash, 31) + byte;
    }
    return this.#lookUp(hash | 0, text, from + 1, end - 1);
  }

  #findEscaped(text: Buffer, from: number, end: number): Entry | undefined {
    const bytes = Buffer.from(JSON.parse(text.toString('utf8', from, end)) as string);
    return this.#lookUp(hashOf(bytes, 0, bytes.length), bytes, 0, bytes.length);
  }

  #lookUp(hash: number, text: Buffer, from: number, end: number): Entry | undefined {
    const found = this.#byHash.get(hash);
    if (found === undefined) return undefined;
    if (found instanceof Map) return found.get(text.toString('latin1', from, end));
    const { bytes, entry } = found;
    return bytes.length === end - from && bytes.compare(text, from, end) === 0 ? entry : undefined;
  }
}

/** The only name with its hash. */
type One<Entry> = { bytes: Buffer; entry: Entry };
/**
 * Names that were deliberately chosen to collide. String hashes of the engine are seeded per process, so a Map is safe.
 */
type Many<Entry> = Map<string, Entry>;

function manyOf<Entry>(known: One<Entry> | Many<Entry>): Many<Entry> {
  return known instanceof Map ? known : new Map([[known.bytes.toString('latin1'), known.entry]]);
}

function hashOf(bytes: Buffer, from: number, end: number): number {
  let hash = 0;
  for (let at = from; at < end; at++) hash = Math.imul(hash, 31) + (bytes[at] as number);
  return hash | 0;
}
