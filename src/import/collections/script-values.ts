import { placeholderName } from './placeholders.ts';

/** Expression whose value is not in the script; represented by a placeholder with its name. */
export class UnknownValue {
  readonly name: string;

  constructor(expression: string) {
    this.name = placeholderName(expression.slice(0, 200));
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
          ? [...value].map(([name, one]) => [name, toScriptText(one)])
          : [];
  }
}

export type ScriptValue = string | number | boolean | null | UnknownValue | FormValue | ScriptValue[] | ScriptObject;
export type ScriptObject = Map<string, ScriptValue>;

/** Converts a value to text. Unknown parts become `{{name}}`. */
export function toScriptText(value: ScriptValue | undefined): string {
  if (value === undefined || value === null) return '';
  if (value instanceof FormValue)
    return value.pairs.map(([name, one]) => `${encodeURIComponent(name)}=${one}`).join('&');
  return value instanceof Map || Array.isArray(value) ? jsonOf(value) : String(value);
}

/** Formats a value like `JSON.stringify`, with placeholders for unknown values. */
export function jsonOf(value: ScriptValue): string {
  if (value instanceof UnknownValue) return String(value);
  if (value instanceof FormValue) return '{}';
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(',')}]`;
  if (value instanceof Map)
    return `{${[...value].map(([name, one]) => `${JSON.stringify(name)}:${jsonOf(one)}`).join(',')}}`;
  return JSON.stringify(value);
}

const maxDepth = 60;

/**
 * Reads JavaScript values from a position in a script. Supports literals and the calls that requests are built with.
 */
export class ScriptReader {
  /** Position of the next character. */
  at: number;
  readonly #text: string;
  readonly #constants: ReadonlyMap<string, ScriptValue>;

  constructor(text: string, at: number, constants: ReadonlyMap<string, ScriptValue>) {
    this.#text = text;
    this.at = at;
    this.#constants = constants;
  }

  /** Reads the arguments of a call, after its opening bracket. */
  arguments(depth = 0): ScriptValue[] {
    return this.#list(')', depth);
  }

  /** Reads an expression up to the following comma, semicolon, or bracket. */
  expression(depth = 0): ScriptValue {
    const start = this.#skipSpace();
    let value = this.#primary(depth);
    for (let next = this.#peek(); next !== '' && !/[,;)\]}]/.test(next); next = this.#peek()) {
      const from = this.at;
      if (next === '+' && this.#text[this.at + 1] !== '+') {
        this.at++;
        value = added(value, this.#primary(depth));
      } else if (/^(?:\|\||\?\?)/.test(this.#text.slice(this.at, this.at + 2))) {
        this.at += 2;
        const other = this.#primary(depth);
        value = value instanceof UnknownValue ? other : value;
      } else if (this.#isNextStatement()) break;
      else {
        this.#skipExpression(depth);
        value = new UnknownValue(this.#text.slice(start, this.at));
      }
      if (this.at === from) break;
    }
    return value;
  }

  #primary(depth: number): ScriptValue {
    const start = this.#skipSpace();
    const next = this.#text[this.at] ?? '';
    if (depth > maxDepth) {
      this.#skipExpression(depth);
      return new UnknownValue('value');
    }
    if (next === '"' || next === "'") return this.#string(next);
    if (next === '`') return this.#template(depth);
    if (next === '{') return this.#object(depth);
    if (next === '[') {
      this.at++;
      return this.#list(']', depth + 1);
    }
    if (next === '(') {
      this.at++;
      const [value = new UnknownValue('value')] = this.#list(')', depth + 1);
      return value;
    }
    const number = /^[-+]?(?:0x[\da-f]+|\d[\d_]*(?:\.\d+)?(?:e[-+]?\d+)?)/i.exec(
      this.#text.slice(this.at, this.at + 40),
    );
    if (number) {
      this.at += number[0].length;
      return Number(number[0].replaceAll('_', ''));
    }
    return this.#named(start, depth);
  }

  /** Reads a name with its members and calls: `await`, `JSON.stringify(…)`, `user.id`. */
  #named(start: number, depth: number): ScriptValue {
    const path =
      /^(?:(?:await|new|return|typeof|void)\s+)*[A-Za-z_$][\w$]*(?:\s{0,20}\??\.\s{0,20}[A-Za-z_$][\w$]*)*/.exec(
        this.#text.slice(this.at, this.at + 300),
      )?.[0];
    if (path === undefined) {
      this.#skipExpression(depth);
      return new UnknownValue(this.#text.slice(start, this.at));
    }
    this.at += path.length;
    const name = path.replace(/^(?:(?:await|new|return|typeof|void)\s+)*/, '').replaceAll(/[\s?]/g, '');
    if (name === 'true' || name === 'false') return name === 'true';
    if (name === 'null' || name === 'undefined') return null;
    if (this.#peek() !== '(') return this.#constants.get(name) ?? new UnknownValue(name);
    this.at++;
    return called(name, this.#list(')', depth + 1)) ?? new UnknownValue(this.#text.slice(start, this.at));
  }

  #string(quote: string): string {
    let value = '';
    for (this.at++; this.at < this.#text.length; this.at++) {
      const character = this.#text[this.at] as string;
      if (character === quote || character === '\n') break;
      value += character === '\\' ? this.#escape() : character;
    }
    this.at++;
    return value;
  }

  #template(depth: number): string {
    let value = '';
    for (this.at++; this.at < this.#text.length && this.#text[this.at] !== '`'; this.at++) {
      const character = this.#text[this.at] as string;
      if (character === '$' && this.#text[this.at + 1] === '{') {
        this.at += 2;
        value += toScriptText(this.#list('}', depth + 1)[0]);
        this.at--;
      } else value += character === '\\' ? this.#escape() : character;
    }
    this.at++;
    return value;
  }

  /**
   * Decodes an escape. The next character is its backslash; afterwards, the next character is the last one of the
   * escape.
   */
  #escape(): string {
    const text = this.#text.slice(this.at + 1, this.at + 12);
    const code = /^(?:x([\da-f]{2})|u([\da-f]{4})|u\{([\da-f]{1,6})\})/i.exec(text);
    const hex = code?.[1] ?? code?.[2] ?? code?.[3];
    this.at += code?.[0].length ?? 1;
    if (hex !== undefined) {
      const point = Number.parseInt(hex, 16);
      return point > 0x10ffff ? '' : String.fromCodePoint(point);
    }
    const first = text[0] ?? '';
    return { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v', '0': '\0', '\n': '' }[first] ?? first;
  }

  #object(depth: number): ScriptObject {
    const found: ScriptObject = new Map();
    this.at++;
    while (this.#peek() !== '}' && this.#peek() !== '') {
      const from = this.at;
      if (this.#text.startsWith('...', this.at)) {
        this.at += 3;
        const spread = this.expression(depth + 1);
        for (const [name, value] of spread instanceof Map ? spread : []) found.set(name, value);
        if (this.#peek() === ',') this.at++;
        continue;
      }
      const name = this.#name(depth);
      if (this.#peek() === ':') {
        this.at++;
        found.set(name, this.expression(depth + 1));
      } else if (/[,}]/.test(this.#peek()) && /^[A-Za-z_$]/.test(name)) {
        found.set(name, this.#constants.get(name) ?? new UnknownValue(name));
      } else this.#skipExpression(depth);
      if (this.#peek() === ',') this.at++;
      if (this.at === from) this.at++;
    }
    this.at++;
    return found;
  }

  #name(depth: number): string {
    const next = this.#peek();
    if (next === '"' || next === "'") return this.#string(next);
    if (next === '[') {
      this.at++;
      return toScriptText(this.#list(']', depth + 1)[0]);
    }
    const name = /^[\w$]+/.exec(this.#text.slice(this.at, this.at + 200))?.[0] ?? '';
    this.at += name.length;
    return name;
  }

  #list(end: string, depth: number): ScriptValue[] {
    const found: ScriptValue[] = [];
    while (this.#peek() !== end && this.#peek() !== '') {
      const from = this.at;
      found.push(this.expression(depth + 1));
      if (/[,;]/.test(this.#peek())) this.at++;
      if (this.at === from) this.at++;
    }
    this.at++;
    return found;
  }

  /** Skips an expression that cannot be read, including its brackets. */
  #skipExpression(depth: number): void {
    let open = 0;
    for (; this.at < this.#text.length; this.at++) {
      const character = this.#text[this.at] as string;
      if (open === 0 && /[,;)\]}]/.test(character)) return;
      if (/["']/.test(character)) {
        this.#string(character);
        this.at--;
      } else if (character === '`' && depth <= maxDepth) {
        this.#template(depth + 1);
        this.at--;
      } else if (/[([{]/.test(character)) open++;
      else if (/[)\]}]/.test(character)) open--;
    }
  }

  /** Returns true if a new statement begins on another line, which does not require a semicolon. */
  #isNextStatement(): boolean {
    return /\n\s*$/.test(this.#text.slice(Math.max(0, this.at - 100), this.at)) && /[\w$]/.test(this.#peek());
  }

  #peek(): string {
    this.#skipSpace();
    return this.#text[this.at] ?? '';
  }

  /** Skips white space and comments. */
  #skipSpace(): number {
    for (;;) {
      while (/\s/.test(this.#text[this.at] ?? '')) this.at++;
      const isLine = this.#text.startsWith('//', this.at);
      if (!isLine && !this.#text.startsWith('/*', this.at)) return this.at;
      const end = this.#text.indexOf(isLine ? '\n' : '*/', this.at + 2);
      this.at = end < 0 ? this.#text.length : end + (isLine ? 1 : 2);
    }
  }
}

/** Adds two values. Texts are concatenated; the result of any other sum is unknown. */
function added(one: ScriptValue, other: ScriptValue): ScriptValue {
  if (typeof one === 'string' || typeof other === 'string') return toScriptText(one) + toScriptText(other);
  return new UnknownValue(one instanceof UnknownValue ? one.name : toScriptText(other));
}

/** Evaluates a call that is used to build requests. Returns undefined for any other call. */
function called(name: string, [first = null, second]: readonly ScriptValue[]): ScriptValue | undefined {
  if (name === 'Headers') return first ?? new Map();
  if (name === 'JSON.stringify') return jsonOf(first);
  if (name === 'URLSearchParams') return new FormValue(first);
  if (name === 'String' || name === 'Request') return first;
  if (name === 'URL')
    return typeof second === 'string' && !/^[a-z]+:/i.test(toScriptText(first)) ? second + toScriptText(first) : first;
  const isEncoding = /^encodeURI(?:Component)?$/.test(name) && first instanceof UnknownValue;
  return isEncoding ? first : undefined;
}
