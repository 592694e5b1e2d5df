import { isUtf8 } from 'node:buffer';

const mark = '[redacted]';
/**
 * Limits of the work for all texts that share a budget, about 15 ms: each character is charged once per form, plus
 * `reading` forms for decoding escapes; each character of a credential is charged `making`. A text that exceeds the
 * budget is replaced completely.
 */
const most = { work: 8_000_000, reading: 120, making: 500 };
/** Minimum length of a credential; a shorter one would match ordinary text. */
const shortest = 4;
/** Minimum length of a Base64 form that is searched for. */
const shortestPart = 8;
/**
 * Number of characters by which a form is found. The match is then extended as far as it continues, so this bounds the
 * search.
 */
const longestPiece = 64;
const escapeDepth = 3;
/** Maximum expansion of a character: 6 as `\u0041`, and 36 if that is escaped again. */
const mostPerCharacter = (length: number) => (length <= 100 ? 36 : length <= 4000 ? 6 : 3);

/** Removes the credentials of a call from a text. */
export function redact(text: string, sensitive: readonly string[]): string {
  return new Redactor(sensitive).text(text);
}

/**
 * Removes credentials from texts that an upstream returns. A credential is found in any case: in plain form, in
 * percent, JSON, and HTML escapes (also nested, three deep), in hex, and in Base64 of either alphabet with any text
 * around it. SECURITY.md describes the forms that are not found. The work is a fixed multiple of the text's length for
 * each credential.
 *
 * One redactor serves the texts that are read in one chunk of work on the event loop, which share the limit of one
 * text. On a thread, which has its own time limit, each text has the full limit. Most responses create a redactor and
 * use none of it.
 */
export class Redactor {
  readonly #credentials: readonly string[];
  readonly #isShared: boolean;
  /** Forms of each credential that was searched for. */
  #forms: Map<string, readonly string[]> | undefined;
  #workLeft: number;
  /** True if a text was replaced because searching it, after earlier texts, would take too long. */
  isSpent: boolean;

  constructor(credentials: readonly string[], place: 'in one turn' | 'on a thread' = 'in one turn') {
    this.#credentials = credentials;
    this.#isShared = place === 'in one turn';
    this.#workLeft = most.work;
    this.isSpent = false;
  }

  /** Maximum length of a form of any credential, at least 1. */
  get longest(): number {
    const lengths = this.#credentials.filter(isLong).map((value) => Buffer.byteLength(value));
    return Math.max(1, ...lengths.map((length) => length * mostPerCharacter(length)));
  }

  /** Returns the text with `[redacted]` in place of each credential. */
  text(text: string): string {
    const possible = new Set(
      this.#credentials.filter((value) => isLong(value) && value.length <= text.length * mostPerCharacter(1)),
    );
    if (possible.size === 0) return text;
    const bytes = Buffer.from(text);
    this.#forms ??= new Map();
    const known = this.#forms;
    const forms: string[] = [];
    let left = this.#isShared ? this.#workLeft : most.work;
    for (const value of possible) {
      if (!known.has(value)) left -= most.making * value.length;
      if (left < 0) break;
      const made = known.get(value) ?? formsOf(value);
      known.set(value, made);
      forms.push(...made);
    }
    left -= (forms.length + most.reading) * (bytes.length + longestPiece);
    this.#workLeft = left;
    this.isSpent = left < 0;
    if (this.isSpent) return mark;
    const found = layersOf(bytes.toString('latin1')).flatMap((layer) => forms.flatMap((form) => findAll(layer, form)));
    return found.length === 0 ? text : without(bytes, found);
  }
}

function isLong(value: string): boolean {
  return value.length >= shortest;
}

/** A text after some decoding steps, with the position of each of its characters in the original bytes. */
type Layer = { text: string; starts?: Uint32Array; ends?: Uint32Array };

/** Returns the text as it is and after each decoding step, folded. Each character represents one byte of UTF-8. */
function layersOf(text: string): Layer[] {
  const layers: Layer[] = [{ text: folded(text) }];
  let layer: Layer = { text };
  for (let depth = 0; depth < escapeDepth; depth++) {
    const next = decoded(layer);
    if (!next) break;
    layers.push({ ...next, text: folded(next.text) });
    layer = next;
  }
  return layers;
}

const escapes =
  /%([0-9a-f]{2})|(\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\u[0-9a-f]{4})|\\(["\\/bfnrt])|&#(?:x([0-9a-f]{1,6})|(\d{1,7}));|&(amp|lt|gt|quot|apos);/gi;
const controls: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Decodes one level of escapes. Undefined if nothing is escaped. */
function decoded({ text, starts, ends }: Layer): Layer | undefined {
  const parts: string[] = [];
  const next = { starts: new Uint32Array(text.length), ends: new Uint32Array(text.length) };
  let length = 0;
  let done = 0;
  const add = (part: string, from: number, step: number, end?: number) => {
    parts.push(part);
    for (let index = 0; index < part.length; index++, length++) {
      const at = from + index * step;
      next.starts[length] = starts ? (starts[at] as number) : at;
      const last = end === undefined ? at : end - 1;
      next.ends[length] = ends ? (ends[last] as number) : last + 1;
    }
  };
  for (const match of text.matchAll(escapes)) {
    const { index, 0: all } = match;
    add(text.slice(done, index), done, 1);
    done = index + all.length;
    add(meant(match), index, 0, done);
  }
  if (done === 0) return undefined;
  add(text.slice(done), done, 1);
  return { text: parts.join(''), starts: next.starts.subarray(0, length), ends: next.ends.subarray(0, length) };
}

/** Returns the meaning of an escape, as bytes of UTF-8. */
function meant([all, percent, units, control, hex, decimal, name]: RegExpMatchArray): string {
  if (percent !== undefined) return String.fromCharCode(Number.parseInt(percent, 16));
  if (control !== undefined) return controls[control.toLowerCase()] ?? control;
  if (name !== undefined) return entities[name.toLowerCase()] ?? '';
  if (units !== undefined) return utf8(JSON.parse(`"${units.toLowerCase()}"`) as string);
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  return code > 0x10ffff ? all : utf8(String.fromCodePoint(code));
}

/** Converts each byte of a text in UTF-8 to one character. */
function utf8(text: string): string {
  return Buffer.from(text).toString('latin1');
}

const alphabet: Readonly<Record<string, string>> = { '-': '+', _: '/' };

/** Folds text to lower case and to one Base64 alphabet. */
function folded(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()).replace(/[-_]/g, (mark) => alphabet[mark] ?? mark);
}

/** Ways in which programs embed a text in another. */
const writings: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => encodeURIComponent(text.toWellFormed()),
  (text) => JSON.stringify(text).slice(1, -1),
  (text) => text.replace(/[&<>"]/g, (sign) => `&${Object.keys(entities).find((name) => entities[name] === sign)};`),
];

function written(text: string): string[] {
  return /^[\w.~-]+$/.test(text) ? [text] : writings.map((write) => write(text));
}

/**
 * Returns the folded forms of a credential to search for. A credential that contains something like an escape loses it
 * when the text around it is decoded, so each form is decoded like the text. The end of a credential may also combine
 * with the text after it, so its undecoded form is searched for, too.
 */
function formsOf(value: string): string[] {
  const texts = [value, ...pairIn(value)];
  const within = texts.flatMap(written);
  const twice = new Set(within.flatMap(written).map(utf8));
  const layers = [...twice].flatMap((text) => layersOf(text).map((layer) => layer.text));
  const encoded = [...new Set(within)].map((text) => Buffer.from(text));
  const parts = encoded.flatMap((bytes) => [bytes.toString('hex'), ...[0, 1, 2].map((shift) => partOf(bytes, shift))]);
  return [...new Set([...layers, ...parts.filter(({ length }) => length >= shortestPart).map(folded)])].filter(isLong);
}

/**
 * Returns the decoded `user:password` and the password, if a credential is the Base64 token of type Basic: an upstream
 * would echo these.
 */
function pairIn(value: string): string[] {
  const bytes = Buffer.from(value, 'base64');
  const pair = bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');
  const colon = pair.indexOf(':', 1);
  return colon > 0 && colon < pair.length - 1 && !/\p{C}/u.test(pair) ? [pair, pair.slice(colon + 1)] : [];
}

/**
 * Returns the Base64 characters that a value always produces at an offset of `shift` bytes from a multiple of three,
 * regardless of its surroundings.
 */
function partOf(value: Buffer, shift: number): string {
  const whole = Buffer.concat([Buffer.alloc(shift), value]);
  return whole.toString('base64').slice(Math.ceil((shift * 4) / 3), Math.floor((whole.length * 4) / 3));
}

type Range = [from: number, end: number];

function findAll({ text, starts, ends }: Layer, form: string): Range[] {
  const found: Range[] = [];
  const piece = form.slice(0, longestPiece);
  for (let at = text.indexOf(piece); at >= 0; ) {
    let length = piece.length;
    while (length < form.length && text[at + length] === form[length]) length++;
    const last = at + length - 1;
    found.push([starts ? (starts[at] as number) : at, ends ? (ends[last] as number) : last + 1]);
    at = text.indexOf(piece, last + 1);
  }
  return found;
}

/** Replaces each group of overlapping ranges with one mark. */
function without(bytes: Buffer, ranges: Range[]): string {
  ranges.sort((a, b) => a[0] - b[0]);
  let clean = '';
  let done = 0;
  let marked = -1;
  for (const [from, end] of ranges) {
    if (from >= marked) clean += bytes.toString('utf8', done, from) + mark;
    marked = Math.max(marked, end);
    done = marked;
  }
  return clean + bytes.toString('utf8', done);
}

/**
 * Returns the first `limit` bytes of a long text without credentials, and without a partial credential at the end.
 * Reads only a few times `limit` bytes, however long the text is.
 */
export function redactedStart(text: Buffer, limit: number, redact: Redactor): string {
  const { longest } = redact;
  const looked = limit + longest * 2;
  const clean = redact.text(text.toString('utf8', 0, looked));
  if (text.length <= looked) return cut(clean, limit);
  return cut(clean, Math.max(0, Math.min(limit, Buffer.byteLength(clean) - longest)));
}

/** Returns at most the first `limit` bytes of a text, as whole characters. */
export function cut(text: string, limit: number): string {
  if (text.length * 3 <= limit) return text;
  // A character takes at least one byte.
  const bytes = Buffer.from(text.slice(0, limit + 1));
  if (bytes.length <= limit) return text;
  let end = limit;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
