import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';

/** JSON.parse of the engine, even after `repairJsonParse`. It always reads a single string or number correctly. */
export const parseNative = JSON.parse;

const spacePattern = /[ \t\n\r]*/y;
/** Matches a string without escapes, as nearly every string is. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON allows no control characters in a string
const plainStringPattern = /"[^"\\\u0000-\u001f]*"/y;
const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const comma = 0x2c;
const openObject = 0x7b;
const closeObject = 0x7d;
const openList = 0x5b;
const closeList = 0x5d;

/** Number of values that are read before yielding to the event loop, some milliseconds of work. */
const valuesPerChunk = 5000;

/** Parses JSON text. `parseNumber` converts the source text of each number. @throws SyntaxError */
export function readJson(text: string, parseNumber: (number: string) => unknown): unknown {
  const reader = new JsonReader(text, parseNumber);
  reader.read(Infinity);
  return reader.root;
}

/** Parses JSON text in chunks and yields to the event loop between them. */
export async function readJsonInChunks(text: string, parseNumber: (number: string) => unknown): Promise<unknown> {
  const reader = new JsonReader(text, parseNumber);
  while (!reader.read(valuesPerChunk)) await yieldToEventLoop();
  return reader.root;
}

type Container = unknown[] | { [name: string]: unknown };

class JsonReader {
  readonly #text: string;
  readonly #parseNumber: (number: string) => unknown;
  #position = 0;
  /** Open lists and objects, innermost last. The innermost one is also `#inner`. */
  readonly #open: Container[] = [];
  #inner: Container | undefined;
  /** Name of the next member, if the innermost container is an object. */
  #name = '';
  root: unknown;

  constructor(text: string, parseNumber: (number: string) => unknown) {
    this.#text = text;
    this.#parseNumber = parseNumber;
  }

  /** Reads up to `maxValues` values; a list or an object counts when it begins. Returns true at the end of the text. */
  read(maxValues: number): boolean {
    for (let values = 0; values < maxValues; values++) {
      if (this.#readValue() && this.#advance()) return true;
    }
    return false;
  }

  /** Reads a value, or the opening of a non-empty list or object. Returns true if the value is complete. */
  #readValue(): boolean {
    this.#skipSpace();
    switch (this.#text.charCodeAt(this.#position)) {
      case openObject:
        return this.#openContainer({}, closeObject);
      case openList:
        return this.#openContainer([], closeList);
      case quote:
        return this.#addValue(this.#readString());
      case 0x74:
        return this.#addValue(this.#readLiteral('true', true));
      case 0x66:
        return this.#addValue(this.#readLiteral('false', false));
      case 0x6e:
        return this.#addValue(this.#readLiteral('null', null));
      default:
        return this.#addValue(this.#readNumber());
    }
  }

  #openContainer(container: Container, closingCode: number): boolean {
    this.#addValue(container);
    this.#position++;
    if (this.#consumeIfNext(closingCode)) return true;
    this.#open.push(container);
    this.#inner = container;
    if (!Array.isArray(container)) this.#readName();
    return false;
  }

  #addValue(value: unknown): true {
    const container = this.#inner;
    if (container === undefined) this.root = value;
    else if (Array.isArray(container)) container.push(value);
    // An assignment would change the prototype.
    else if (this.#name === '__proto__') defineMember(container, this.#name, value);
    else container[this.#name] = value;
    return true;
  }

  /**
   * Continues after the end of a value, up to the next value or the end of the text. Returns true at the end of the
   * text.
   */
  #advance(): boolean {
    while (this.#inner) {
      const isList = Array.isArray(this.#inner);
      if (this.#consumeIfNext(comma)) {
        if (!isList) this.#readName();
        return false;
      }
      if (!this.#consumeIfNext(isList ? closeList : closeObject)) throw this.#syntaxError();
      this.#open.pop();
      this.#inner = this.#open.at(-1);
    }
    this.#skipSpace();
    if (this.#position < this.#text.length) throw this.#syntaxError();
    return true;
  }

  #readName(): void {
    this.#skipSpace();
    this.#name = this.#readString();
    if (!this.#consumeIfNext(colon)) throw this.#syntaxError();
  }

  #consumeIfNext(code: number): boolean {
    this.#skipSpace();
    if (this.#text.charCodeAt(this.#position) !== code) return false;
    this.#position++;
    return true;
  }

  #skipSpace(): void {
    if (this.#text.charCodeAt(this.#position) > 0x20) return;
    spacePattern.lastIndex = this.#position;
    spacePattern.test(this.#text);
    this.#position = spacePattern.lastIndex;
  }

  #readString(): string {
    const from = this.#position;
    if (this.#consume(plainStringPattern)) return this.#text.slice(from + 1, this.#position - 1);
    if (this.#text.charCodeAt(from) !== quote) throw this.#syntaxError();
    // A regular expression for the whole string overflows on strings of 20 MB.
    this.#position = findClosingQuote(this.#text, from + 1) + 1;
    if (this.#position === 0) throw this.#syntaxError();
    return parseNative(this.#text.slice(from, this.#position)) as string;
  }

  #readLiteral<Value>(literal: string, value: Value): Value {
    if (!this.#text.startsWith(literal, this.#position)) throw this.#syntaxError();
    this.#position += literal.length;
    return value;
  }

  #readNumber(): unknown {
    const from = this.#position;
    if (!this.#consume(numberPattern)) throw this.#syntaxError();
    return this.#parseNumber(this.#text.slice(from, this.#position));
  }

  #consume(pattern: RegExp): boolean {
    pattern.lastIndex = this.#position;
    if (!pattern.test(this.#text)) return false;
    this.#position = pattern.lastIndex;
    return true;
  }

  #syntaxError(): SyntaxError {
    return new SyntaxError(`not JSON at position ${this.#position}`);
  }
}

function defineMember(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/**
 * Returns the index of the quote that ends a string, or −1 if there is none. `from` is inside the string and not at an
 * escaped character.
 */
export function findClosingQuote(text: string, from: number): number {
  // Searching for quotes would be slow if millions of them are escaped.
  for (let index = from; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === quote) return index;
    if (code === backslash) index++;
  }
  return -1;
}

/** Returns true if the string that ends before `from` is the name of a member. */
export function isMemberName(text: string, from: number): boolean {
  let index = from;
  // Codes up to 0x20 are white space and control characters.
  while (text.charCodeAt(index) <= 0x20) index++;
  return text.charCodeAt(index) === colon;
}

/** Returns true if a member's name is written with an escape. Takes time proportional to the length of the text. */
export function hasEscapedName(text: string): boolean {
  for (let index = text.indexOf('\\'); index >= 0; index = text.indexOf('\\', index)) {
    const end = findClosingQuote(text, index + 2);
    if (end < 0) return false;
    if (isMemberName(text, end + 1)) return true;
    index = end + 1;
  }
  return false;
}

/**
 * Replaces this thread's JSON.parse with one that reads member names correctly, including for libraries. V8 versions
 * 12.8 to at least 14.6 have a bug (https://github.com/nodejs/node/issues/63785): for a name with an escape (`"\n"`)
 * they may return a name from an earlier text (`"\\"`) whose object began with the same names. The earlier text may
 * come from anyone, so one caller's data could change another's. Remove this once every supported Node version is
 * fixed.
 */
export function repairJsonParse(): void {
  JSON.parse = parseCorrectly;
}

function parseCorrectly(text: string, reviver?: Parameters<typeof JSON.parse>[1]): unknown {
  // No code in this process uses a reviver.
  if (reviver !== undefined || typeof text !== 'string' || !hasEscapedName(text)) return parseNative(text, reviver);
  try {
    return readJson(text, Number);
  } catch (error) {
    // The engine's own error reports where the text is not JSON.
    parseNative(text);
    throw error;
  }
}
