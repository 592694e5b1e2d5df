import { nextTurn } from '../work/next-turn.ts';

/** JSON.parse as the engine has it, also after `repairJsonParse`. A string or a number by itself is read correctly. */
export const parseNative = JSON.parse;

const space = /[ \t\n\r]*/y;
/** A string without escapes, which is nearly every one. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON allows none in a string
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

/** Values that are read in one turn of the event loop, some milliseconds. */
const valuesOfTurn = 5000;

/** Parses JSON text; `numberOf` gets the source of each number. @throws SyntaxError */
export function readJson(text: string, numberOf: (number: string) => unknown): unknown {
  const reader = new Reader(text, numberOf);
  reader.read(Infinity);
  return reader.root;
}

/** The same in several turns of the event loop. */
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
  /** Lists and objects that have not ended, the innermost last, which is `#inner`. */
  readonly #open: Container[] = [];
  #inner: Container | undefined;
  /** Name of the next member, where the innermost is an object. */
  #name = '';
  root: unknown;

  constructor(text: string, numberOf: (number: string) => unknown) {
    this.#text = text;
    this.#numberOf = numberOf;
  }

  /** Reads so many values more; whether the text has ended. A list or an object counts when it begins. */
  read(most: number): boolean {
    for (let values = 0; values < most; values++) {
      if (this.#value() && this.#goOn()) return true;
    }
    return false;
  }

  /** Reads a value, or the beginning of a list or an object that is not empty. Whether the value has ended. */
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

  /** Goes on behind the end of a value, to the next one or to the end of the text. Whether the text has ended. */
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
    // A regular expression for it overflows on strings of 20 MB.
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

/** Index of the quote that ends a string. `from` is inside the string, not at an escaped character. −1 without an end. */
export function closingQuote(text: string, from: number): number {
  // To look for quotes is slow where millions of them are escaped.
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at++;
  }
  return -1;
}

/** Whether the string that ends before `from` is the name of a member. */
export function isName(text: string, from: number): boolean {
  let at = from;
  // White space is the space and control characters.
  while (text.charCodeAt(at) <= 0x20) at++;
  return text.charCodeAt(at) === colon;
}

/** Whether the name of a member is written with an escape. Takes time in proportion to the text. */
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
 * Replaces JSON.parse of this thread by one that reads the names of members correctly, for libraries too. V8 has a fault
 * in versions 12.8 to 14.6 at least (https://github.com/nodejs/node/issues/63785): where a name has an escape (`"\n"`), it
 * may return a name of an earlier text (`"\\"`) whose object had begun with the same names. The earlier text may have come
 * from anybody, so what one caller sends would change what another one sends. To be removed once every supported Node is
 * correct.
 */
export function repairJsonParse(): void {
  JSON.parse = parseRightly;
}

function parseRightly(text: string, reviver?: Parameters<typeof JSON.parse>[1]): unknown {
  // Nothing here uses a reviver.
  if (reviver !== undefined || typeof text !== 'string' || !hasEscapedName(text)) return parseNative(text, reviver);
  try {
    return readJson(text, Number);
  } catch (error) {
    // The engine's own error says where a text is not JSON.
    parseNative(text);
    throw error;
  }
}
