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

/** Parses JSON text; `numberOf` gets the source of each number. @throws SyntaxError, and RangeError at great depth */
export function readJson(text: string, numberOf: (number: string) => unknown): unknown {
  const reader = new Reader(text, numberOf);
  const value = reader.value();
  reader.skipSpace();
  if (reader.at < text.length) throw reader.fault();
  return value;
}

class Reader {
  readonly #text: string;
  readonly #numberOf: (number: string) => unknown;
  at = 0;

  constructor(text: string, numberOf: (number: string) => unknown) {
    this.#text = text;
    this.#numberOf = numberOf;
  }

  value(): unknown {
    this.skipSpace();
    switch (this.#text.charCodeAt(this.at)) {
      case 0x7b:
        return this.#object();
      case 0x5b:
        return this.#array();
      case 0x22:
        return this.#string();
      case 0x74:
        return this.#word('true', true);
      case 0x66:
        return this.#word('false', false);
      case 0x6e:
        return this.#word('null', null);
      default:
        return this.#number();
    }
  }

  skipSpace(): void {
    if (this.#text.charCodeAt(this.at) > 0x20) return;
    space.lastIndex = this.at;
    space.test(this.#text);
    this.at = space.lastIndex;
  }

  fault(): SyntaxError {
    return new SyntaxError(`not JSON at position ${this.at}`);
  }

  #object(): object {
    const object: { [name: string]: unknown } = {};
    this.at++;
    if (this.#isNext(0x7d)) return object;
    for (;;) {
      this.skipSpace();
      const name = this.#string();
      if (!this.#isNext(0x3a)) throw this.fault();
      const value = this.value();
      // An assignment would change the prototype.
      if (name === '__proto__') define(object, name, value);
      else object[name] = value;
      if (this.#isNext(0x7d)) return object;
      if (!this.#isNext(0x2c)) throw this.fault();
    }
  }

  #array(): unknown[] {
    const array: unknown[] = [];
    this.at++;
    if (this.#isNext(0x5d)) return array;
    for (;;) {
      array.push(this.value());
      if (this.#isNext(0x5d)) return array;
      if (!this.#isNext(0x2c)) throw this.fault();
    }
  }

  #isNext(code: number): boolean {
    this.skipSpace();
    if (this.#text.charCodeAt(this.at) !== code) return false;
    this.at++;
    return true;
  }

  #string(): string {
    const from = this.at;
    if (this.#take(plainString)) return this.#text.slice(from + 1, this.at - 1);
    if (this.#text.charCodeAt(from) !== quote) throw this.fault();
    // A regular expression for it overflows on strings of 20 MB.
    this.at = closingQuote(this.#text, from + 1) + 1;
    if (this.at === 0) throw this.fault();
    return parseNative(this.#text.slice(from, this.at)) as string;
  }

  #word<Value>(word: string, value: Value): Value {
    if (!this.#text.startsWith(word, this.at)) throw this.fault();
    this.at += word.length;
    return value;
  }

  #number(): unknown {
    const from = this.at;
    if (!this.#take(number)) throw this.fault();
    return this.#numberOf(this.#text.slice(from, this.at));
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.#text)) return false;
    this.at = pattern.lastIndex;
    return true;
  }
}

function define(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Index of the quote that ends a string: one with an even number of backslashes before it. −1 where there is none. */
export function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); ; at = text.indexOf('"', at + 1)) {
    let before = at;
    while (text.charCodeAt(before - 1) === backslash) before--;
    if (at < 0 || (at - before) % 2 === 0) return at;
  }
}

/** Whether the string that ends before `from` is the name of a member. */
export function isName(text: string, from: number): boolean {
  let at = from;
  // White space is the space and control characters.
  while (text.charCodeAt(at) <= 0x20) at++;
  return text.charCodeAt(at) === colon;
}
