import { toPlaceholderName } from './placeholders.ts';

/** Expression whose value is not in the script. A placeholder with its name represents it. */
export class UnknownValue {
  readonly name: string;

  constructor(expression: string) {
    this.name = toPlaceholderName(expression.slice(0, 200));
  }

  toString(): string {
    return `{{${this.name}}}`;
  }
}

/** Pairs of `new URLSearchParams(…)`, which are sent as a form. */
export class FormValue {
  readonly pairs: (readonly [string, string])[];

  constructor(value: ScriptValue) {
    this.pairs =
      typeof value === 'string'
        ? [...new URLSearchParams(value)]
        : value instanceof Map
          ? [...value].map(([name, entryValue]) => [name, toScriptText(entryValue)])
          : [];
  }
}

export type ScriptValue = string | number | boolean | null | UnknownValue | FormValue | ScriptValue[] | ScriptObject;
export type ScriptObject = Map<string, ScriptValue>;

/** Converts a value to text. Unknown parts become `{{name}}`. */
export function toScriptText(value: ScriptValue | undefined): string {
  if (value === undefined || value === null) return '';
  if (value instanceof FormValue)
    return value.pairs.map(([name, pairValue]) => `${encodeURIComponent(name)}=${pairValue}`).join('&');
  return value instanceof Map || Array.isArray(value) ? scriptToJson(value) : String(value);
}

/** Formats a value like `JSON.stringify`, with placeholders for unknown values. */
export function scriptToJson(value: ScriptValue): string {
  if (value instanceof UnknownValue) return String(value);
  if (value instanceof FormValue) return '{}';
  if (Array.isArray(value)) return `[${value.map(scriptToJson).join(',')}]`;
  if (value instanceof Map)
    return `{${[...value].map(([name, entryValue]) => `${JSON.stringify(name)}:${scriptToJson(entryValue)}`).join(',')}}`;
  return JSON.stringify(value);
}

const maxDepth = 60;

/**
 * Reads JavaScript values from a position in a script. Supports literals and the calls that requests are built with.
 */
export class ScriptReader {
  /** Position of the next character. */
  position: number;
  readonly #text: string;
  readonly #constants: ReadonlyMap<string, ScriptValue>;

  constructor(text: string, position: number, constants: ReadonlyMap<string, ScriptValue>) {
    this.#text = text;
    this.position = position;
    this.#constants = constants;
  }

  /** Reads the arguments of a call, after its opening bracket. */
  readArguments(depth = 0): ScriptValue[] {
    return this.#readList(')', depth);
  }

  /** Reads an expression up to the following comma, semicolon, or bracket. */
  readExpression(depth = 0): ScriptValue {
    const start = this.#skipSpace();
    let value = this.#readPrimary(depth);
    for (
      let nextCharacter = this.#peek();
      nextCharacter !== '' && !/[,;)\]}]/.test(nextCharacter);
      nextCharacter = this.#peek()
    ) {
      const positionBefore = this.position;
      if (nextCharacter === '+' && this.#text[this.position + 1] !== '+') {
        this.position++;
        value = addValues(value, this.#readPrimary(depth));
      } else if (/^(?:\|\||\?\?)/.test(this.#text.slice(this.position, this.position + 2))) {
        this.position += 2;
        const fallbackValue = this.#readPrimary(depth);
        value = value instanceof UnknownValue ? fallbackValue : value;
      } else if (this.#isNextStatement()) break;
      else {
        this.#skipExpression(depth);
        value = new UnknownValue(this.#text.slice(start, this.position));
      }
      if (this.position === positionBefore) break;
    }
    return value;
  }

  #readPrimary(depth: number): ScriptValue {
    const start = this.#skipSpace();
    const nextCharacter = this.#text[this.position] ?? '';
    if (depth > maxDepth) {
      this.#skipExpression(depth);
      return new UnknownValue('value');
    }
    if (nextCharacter === '"' || nextCharacter === "'") return this.#readString(nextCharacter);
    if (nextCharacter === '`') return this.#readTemplate(depth);
    if (nextCharacter === '{') return this.#readObject(depth);
    if (nextCharacter === '[') {
      this.position++;
      return this.#readList(']', depth + 1);
    }
    if (nextCharacter === '(') {
      this.position++;
      const [value = new UnknownValue('value')] = this.#readList(')', depth + 1);
      return value;
    }
    const number = /^[-+]?(?:0x[\da-f]+|\d[\d_]*(?:\.\d+)?(?:e[-+]?\d+)?)/i.exec(
      this.#text.slice(this.position, this.position + 40),
    );
    if (number) {
      this.position += number[0].length;
      return Number(number[0].replaceAll('_', ''));
    }
    return this.#readNamed(start, depth);
  }

  /** Reads a name with its members and calls: `await`, `JSON.stringify(…)`, `user.id`. */
  #readNamed(start: number, depth: number): ScriptValue {
    const path =
      /^(?:(?:await|new|return|typeof|void)\s+)*[A-Za-z_$][\w$]*(?:\s{0,20}\??\.\s{0,20}[A-Za-z_$][\w$]*)*/.exec(
        this.#text.slice(this.position, this.position + 300),
      )?.[0];
    if (path === undefined) {
      this.#skipExpression(depth);
      return new UnknownValue(this.#text.slice(start, this.position));
    }
    this.position += path.length;
    const name = path.replace(/^(?:(?:await|new|return|typeof|void)\s+)*/, '').replaceAll(/[\s?]/g, '');
    if (name === 'true' || name === 'false') return name === 'true';
    if (name === 'null' || name === 'undefined') return null;
    if (this.#peek() !== '(') return this.#constants.get(name) ?? new UnknownValue(name);
    this.position++;
    return (
      evaluateCall(name, this.#readList(')', depth + 1)) ?? new UnknownValue(this.#text.slice(start, this.position))
    );
  }

  #readString(quote: string): string {
    let value = '';
    for (this.position++; this.position < this.#text.length; this.position++) {
      const character = this.#text[this.position] as string;
      if (character === quote || character === '\n') break;
      value += character === '\\' ? this.#readEscape() : character;
    }
    this.position++;
    return value;
  }

  #readTemplate(depth: number): string {
    let value = '';
    for (this.position++; this.position < this.#text.length && this.#text[this.position] !== '`'; this.position++) {
      const character = this.#text[this.position] as string;
      if (character === '$' && this.#text[this.position + 1] === '{') {
        this.position += 2;
        value += toScriptText(this.#readList('}', depth + 1)[0]);
        this.position--;
      } else value += character === '\\' ? this.#readEscape() : character;
    }
    this.position++;
    return value;
  }

  /**
   * Decodes an escape and moves from its backslash to its last character, because the loops of the callers then move on
   * to the next character.
   */
  #readEscape(): string {
    const text = this.#text.slice(this.position + 1, this.position + 12);
    const match = /^(?:x([\da-f]{2})|u([\da-f]{4})|u\{([\da-f]{1,6})\})/i.exec(text);
    const hex = match?.[1] ?? match?.[2] ?? match?.[3];
    this.position += match?.[0].length ?? 1;
    if (hex !== undefined) {
      const codePoint = Number.parseInt(hex, 16);
      return codePoint > 0x10ffff ? '' : String.fromCodePoint(codePoint);
    }
    const character = text[0] ?? '';
    return { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v', '0': '\0', '\n': '' }[character] ?? character;
  }

  #readObject(depth: number): ScriptObject {
    const object: ScriptObject = new Map();
    this.position++;
    while (this.#peek() !== '}' && this.#peek() !== '') {
      const start = this.position;
      if (this.#text.startsWith('...', this.position)) {
        this.position += 3;
        const spread = this.readExpression(depth + 1);
        for (const [name, value] of spread instanceof Map ? spread : []) object.set(name, value);
        if (this.#peek() === ',') this.position++;
        continue;
      }
      const name = this.#readName(depth);
      if (this.#peek() === ':') {
        this.position++;
        object.set(name, this.readExpression(depth + 1));
      } else if (/[,}]/.test(this.#peek()) && /^[A-Za-z_$]/.test(name)) {
        object.set(name, this.#constants.get(name) ?? new UnknownValue(name));
      } else this.#skipExpression(depth);
      if (this.#peek() === ',') this.position++;
      if (this.position === start) this.position++;
    }
    this.position++;
    return object;
  }

  #readName(depth: number): string {
    const nextCharacter = this.#peek();
    if (nextCharacter === '"' || nextCharacter === "'") return this.#readString(nextCharacter);
    if (nextCharacter === '[') {
      this.position++;
      return toScriptText(this.#readList(']', depth + 1)[0]);
    }
    const name = /^[\w$]+/.exec(this.#text.slice(this.position, this.position + 200))?.[0] ?? '';
    this.position += name.length;
    return name;
  }

  #readList(closingBracket: string, depth: number): ScriptValue[] {
    const items: ScriptValue[] = [];
    while (this.#peek() !== closingBracket && this.#peek() !== '') {
      const start = this.position;
      items.push(this.readExpression(depth + 1));
      if (/[,;]/.test(this.#peek())) this.position++;
      if (this.position === start) this.position++;
    }
    this.position++;
    return items;
  }

  /** Skips an expression that cannot be read, including its brackets. */
  #skipExpression(depth: number): void {
    let openCount = 0;
    for (; this.position < this.#text.length; this.position++) {
      const character = this.#text[this.position] as string;
      if (openCount === 0 && /[,;)\]}]/.test(character)) return;
      if (/["']/.test(character)) {
        this.#readString(character);
        this.position--;
      } else if (character === '`' && depth <= maxDepth) {
        this.#readTemplate(depth + 1);
        this.position--;
      } else if (/[([{]/.test(character)) openCount++;
      else if (/[)\]}]/.test(character)) openCount--;
    }
  }

  /** Returns true if the next character begins a new statement: on a new line, no semicolon is required before it. */
  #isNextStatement(): boolean {
    return (
      /\n\s*$/.test(this.#text.slice(Math.max(0, this.position - 100), this.position)) && /[\w$]/.test(this.#peek())
    );
  }

  #peek(): string {
    this.#skipSpace();
    return this.#text[this.position] ?? '';
  }

  /** Skips white space and comments. */
  #skipSpace(): number {
    for (;;) {
      while (/\s/.test(this.#text[this.position] ?? '')) this.position++;
      const isLine = this.#text.startsWith('//', this.position);
      if (!isLine && !this.#text.startsWith('/*', this.position)) return this.position;
      const commentEnd = this.#text.indexOf(isLine ? '\n' : '*/', this.position + 2);
      this.position = commentEnd < 0 ? this.#text.length : commentEnd + (isLine ? 1 : 2);
    }
  }
}

/** Adds two values. Texts are concatenated; the result of any other sum is unknown. */
function addValues(first: ScriptValue, second: ScriptValue): ScriptValue {
  if (typeof first === 'string' || typeof second === 'string') return toScriptText(first) + toScriptText(second);
  return new UnknownValue(first instanceof UnknownValue ? first.name : toScriptText(second));
}

/** Evaluates a call that is used to build requests. Returns undefined for any other call. */
function evaluateCall(
  name: string,
  [firstArgument = null, secondArgument]: readonly ScriptValue[],
): ScriptValue | undefined {
  if (name === 'Headers') return firstArgument ?? new Map();
  if (name === 'JSON.stringify') return scriptToJson(firstArgument);
  if (name === 'URLSearchParams') return new FormValue(firstArgument);
  if (name === 'String' || name === 'Request') return firstArgument;
  if (name === 'URL')
    return typeof secondArgument === 'string' && !/^[a-z]+:/i.test(toScriptText(firstArgument))
      ? secondArgument + toScriptText(firstArgument)
      : firstArgument;
  const isEncoding = /^encodeURI(?:Component)?$/.test(name) && firstArgument instanceof UnknownValue;
  return isEncoding ? firstArgument : undefined;
}
