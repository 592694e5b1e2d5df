import { nextTurn } from '../work/next-turn.ts';

/** The engine's own JSON.parse, also after `repairJsonParse`. It reads a single string or number correctly. */
export const parseNative = JSON.parse;

const space = /[ \t\n\r]*/y;
/** Matches a string without escapes, as nearly every string is. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON allows no control characters in a string
const plainString = /"[^"\\\u0000-\u001f]*"/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const comma = 0x2c;
const openObject = 0x7b;
const closeObject = 0x7d;
const openList = 0x5b;
const closeList = 0x5d;

/** Number of values that are read before yielding to the event loop, some milliseconds of work. */
const valuesOfTurn = 5000;

/** Parses JSON text. `numberOf` converts the source text of each number. @throws SyntaxError */
export function readJson(text: string, numberOf: (number: string) => unknown): unknown {
  const reader = new Reader(text, numberOf);
  reader.read(Infinity);
  return reader.root;
}

/** Parses JSON text in chunks and yields to the event loop between them. */
export async function readJsonInTurns(text: string, numberOf: (number: string) => unknown): Promise<unknown> {
  const reader = new Reader(text, numberOf);
  while (!reader.read(valuesOfTurn)) await nextTurn();
  return reader.root;
}

type Container = unknown[] | { [name: string]: unknown };

class Reader {
  readonly #text: string;
  readonly #numberOf: (number: string) => unknown;
  #at = 0;
  /** Open lists and objects, innermost last. The innermost one is also `#inner`. */
  readonly #open: Container[] = [];
  #inner: Container | undefined;
  /** Name of the next member, if the innermost container is an object. */
  #name = '';
  root: unknown;

  constructor(text: string, numberOf: (number: string) => unknown) {
    this.#text = text;
    this.#numberOf = numberOf;
  }

  /** Reads up to this many values. Returns true at the end of the text. A list or an object counts when it begins. */
  read(most: number): boolean {
    for (let values = 0; values < most; values++) {
      if (this.#value() && this.#goOn()) return true;
    }
    return false;
  }

  /** Reads a value, or the opening of a non-empty list or object. Returns true if the value is complete. */
  #value(): boolean {
    this.#skipSpace();
    switch (this.#text.charCodeAt(this.#at)) {
      case openObject:
        return this.#begin({}, closeObject);
      case openList:
        return this.#begin([], closeList);
      case quote:
        return this.#put(this.#string());
      case 0x74:
        return this.#put(this.#word('true', true));
      case 0x66:
        return this.#put(this.#word('false', false));
      case 0x6e:
        return this.#put(this.#word('null', null));
      default:
        return this.#put(this.#number());
    }
  }

  #begin(container: Container, end: number): boolean {
    this.#put(container);
    this.#at++;
    if (this.#isNext(end)) return true;
    this.#open.push(container);
    this.#inner = container;
    if (!Array.isArray(container)) this.#readName();
    return false;
  }

  #put(value: unknown): true {
    const container = this.#inner;
    if (container === undefined) this.root = value;
    else if (Array.isArray(container)) container.push(value);
    // An assignment would change the prototype.
    else if (this.#name === '__proto__') define(container, this.#name, value);
    else container[this.#name] = value;
    return true;
  }

  /**
   * Continues after the end of a value, up to the next value or the end of the text. Returns true at the end of the
   * text.
   */
  #goOn(): boolean {
    while (this.#inner) {
      const isList = Array.isArray(this.#inner);
      if (this.#isNext(comma)) {
        if (!isList) this.#readName();
        return false;
      }
      if (!this.#isNext(isList ? closeList : closeObject)) throw this.#fault();
      this.#open.pop();
      this.#inner = this.#open.at(-1);
    }
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#fault();
    return true;
  }

  #readName(): void {
    this.#skipSpace();
    this.#name = this.#string();
    if (!this.#isNext(colon)) throw this.#fault();
  }

  #isNext(code: number): boolean {
    this.#skipSpace();
    if (this.#text.charCodeAt(this.#at) !== code) return false;
    this.#at++;
    return true;
  }

  #skipSpace(): void {
    if (this.#text.charCodeAt(this.#at) > 0x20) return;
    space.lastIndex = this.#at;
    space.test(this.#text);
    this.#at = space.lastIndex;
  }

  #string(): string {
    const from = this.#at;
    if (this.#take(plainString)) return this.#text.slice(from + 1, this.#at - 1);
    if (this.#text.charCodeAt(from) !== quote) throw this.#fault();
    // A regular expression for the whole string overflows on strings of 20 MB.
    this.#at = closingQuote(this.#text, from + 1) + 1;
    if (this.#at === 0) throw this.#fault();
    return parseNative(this.#text.slice(from, this.#at)) as string;
  }

  #word<Value>(word: string, value: Value): Value {
    if (!this.#text.startsWith(word, this.#at)) throw this.#fault();
    this.#at += word.length;
    return value;
  }

  #number(): unknown {
    const from = this.#at;
    if (!this.#take(number)) throw this.#fault();
    return this.#numberOf(this.#text.slice(from, this.#at));
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }

  #fault(): SyntaxError {
    return new SyntaxError(`not JSON at position ${this.#at}`);
  }
}

function define(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/**
 * Returns the index of the quote that ends a string, or −1 if there is none. `from` is inside the string and not at an
 * escaped character.
 */
export function closingQuote(text: string, from: number): number {
  // Searching for quotes would be slow if millions of them are escaped.
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at++;
  }
  return -1;
}

/** Returns true if the string that ends before `from` is the name of a member. */
export function isName(text: string, from: number): boolean {
  let at = from;
  // Codes up to 0x20 are white space and control characters.
  while (text.charCodeAt(at) <= 0x20) at++;
  return text.charCodeAt(at) === colon;
}

/** Returns true if a member's name is written with an escape. Takes time proportional to the length of the text. */
export function hasEscapedName(text: string): boolean {
  for (let at = text.indexOf('\\'); at >= 0; at = text.indexOf('\\', at)) {
    const end = closingQuote(text, at + 2);
    if (end < 0) return false;
    if (isName(text, end + 1)) return true;
    at = end + 1;
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
  JSON.parse = parseRightly;
}

function parseRightly(text: string, reviver?: Parameters<typeof JSON.parse>[1]): unknown {
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
