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
  position: number;

  constructor(bytes: Buffer, position = 0) {
    this.bytes = bytes;
    this.position = position;
  }

  skipSpace(): void {
    while ((this.bytes[this.position] as number) <= 0x20) this.position++;
  }

  /** Moves from the opening quote of a string past its closing quote. */
  skipString(): void {
    const { bytes } = this;
    let position = this.position + 1;
    while (bytes[position] !== quote) position += bytes[position] === backslash ? 2 : 1;
    this.position = position + 1;
  }

  /** Moves from the first byte of a value past its last byte. */
  skipValue(): void {
    const { bytes } = this;
    const firstByte = bytes[this.position];
    if (firstByte === quote) this.skipString();
    else if (firstByte === openObject || firstByte === openArray) this.#skipContainer();
    else {
      let position = this.position + 1;
      while (position < bytes.length && !isScalarEnd(bytes[position] as number)) position++;
      this.position = position;
    }
  }

  #skipContainer(): void {
    const { bytes } = this;
    let depth = 0;
    do {
      const byte = bytes[this.position] as number;
      if (byte === quote) {
        this.skipString();
        continue;
      }
      this.position++;
      // Brackets and braces differ in one bit.
      const foldedByte = byte | 0x20;
      if (foldedByte === openObject) depth++;
      else if (foldedByte === 0x7d) depth--;
    } while (depth > 0);
  }

  /** Returns true if the cursor is at the first byte of an object or array. */
  isAt(container: 'object' | 'array'): boolean {
    return this.bytes[this.position] === (container === 'object' ? openObject : openArray);
  }

  /**
   * Moves to the next entry of a container: to the name in an object, to the value in an array. The cursor must be just
   * after the container's opening byte or its previous entry. Returns false after the closing byte.
   */
  next(): boolean {
    this.skipSpace();
    const byte = this.bytes[this.position] as number;
    if ((byte | 0x20) === 0x7d) {
      this.position++;
      return false;
    }
    if (byte === 0x2c) {
      this.position++;
      this.skipSpace();
    }
    return true;
  }

  /** Moves from the end of a name to its value. */
  skipColon(): void {
    this.skipSpace();
    this.position++;
    this.skipSpace();
  }

  /** Returns the name whose quotes are at `from` and before `end`. */
  readName(from: number, end: number): string {
    return JSON.parse(this.bytes.toString('utf8', from, end)) as string;
  }
}

function isScalarEnd(byte: number): boolean {
  return byte <= 0x20 || byte === 0x2c || byte === 0x5d || byte === 0x7d;
}

type JsonRange = TextRange & { bytes: Buffer };

/**
 * Copies a range of JSON text to `target` from `start`, without the white space between tokens. Returns the end
 * position in `target`.
 */
export function copyCompact({ bytes, from, end }: JsonRange, target: Buffer, start: number): number {
  let length = start;
  let position = from;
  while (position < end) {
    const byte = bytes[position] as number;
    if (byte === quote) {
      const cursor = new JsonCursor(bytes, position);
      cursor.skipString();
      while (position < cursor.position) target[length++] = bytes[position++] as number;
    } else {
      if (byte > 0x20) target[length++] = byte;
      position++;
    }
  }
  return length;
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
  readonly #byHash = new Map<number, SingleName<Entry> | CollidingNames<Entry>>();

  add(name: string, entry: Entry): void {
    const bytes = Buffer.from(name);
    const hash = hashBytes(bytes, 0, bytes.length);
    const existing = this.#byHash.get(hash);
    if (existing === undefined) this.#byHash.set(hash, { bytes, entry });
    else this.#byHash.set(hash, toCollidingNames(existing).set(bytes.toString('latin1'), entry));
  }

  /** Returns the entry for the name whose quotes are at `from` and before `end`. */
  find(text: Buffer, from: number, end: number): Entry | undefined {
    let hash = 0;
    for (let position = from + 1; position < end - 1; position++) {
      const byte = text[position] as number;
      if (byte === 0x5c) return this.#findEscaped(text, from, end);
      hash = Math.imul(hash, 31) + byte;
    }
    return this.#findByHash(hash | 0, text, from + 1, end - 1);
  }

  #findEscaped(text: Buffer, from: number, end: number): Entry | undefined {
    const bytes = Buffer.from(JSON.parse(text.toString('utf8', from, end)) as string);
    return this.#findByHash(hashBytes(bytes, 0, bytes.length), bytes, 0, bytes.length);
  }

  #findByHash(hash: number, text: Buffer, from: number, end: number): Entry | undefined {
    const match = this.#byHash.get(hash);
    if (match === undefined) return undefined;
    if (match instanceof Map) return match.get(text.toString('latin1', from, end));
    const { bytes, entry } = match;
    return bytes.length === end - from && bytes.compare(text, from, end) === 0 ? entry : undefined;
  }
}

/** The only name with its hash. */
type SingleName<Entry> = { bytes: Buffer; entry: Entry };
/**
 * Names that were deliberately chosen to collide. String hashes of the engine are seeded per process, so a Map is safe.
 */
type CollidingNames<Entry> = Map<string, Entry>;

function toCollidingNames<Entry>(entries: SingleName<Entry> | CollidingNames<Entry>): CollidingNames<Entry> {
  return entries instanceof Map ? entries : new Map([[entries.bytes.toString('latin1'), entries.entry]]);
}

function hashBytes(bytes: Buffer, from: number, end: number): number {
  let hash = 0;
  for (let position = from; position < end; position++) hash = Math.imul(hash, 31) + (bytes[position] as number);
  return hash | 0;
}
