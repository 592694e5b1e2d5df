import { isUtf8 } from 'node:buffer';

const redactionMark = '[redacted]';
/**
 * Limits of the work for all texts that share a budget, about 10 ms: each character is charged once per form, plus
 * `reading` forms for decoding escapes; each character of a credential is charged `making`. A text that exceeds the
 * budget is replaced completely.
 */
const limits = { work: 5_000_000, reading: 120, making: 500 };
/** Minimum length of a credential; a shorter one would match ordinary text. */
const minCredentialLength = 4;
/** Minimum length of a Base64 form that is searched for. */
const minBase64Length = 8;
/**
 * Number of characters by which a form is found. The match is then extended as far as it continues, so this bounds the
 * search.
 */
const maxPrefixLength = 64;
const maxEscapeDepth = 3;
/** Maximum expansion of a character: 6 as `\u0041`, and 36 if that is escaped again. */
const getMaxExpansion = (length: number) => (length <= 100 ? 36 : length <= 4000 ? 6 : 3);

/** Removes the credentials of a call from a text. */
export function redact(text: string, credentials: readonly string[]): string {
  return new Redactor(credentials).text(text);
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
  readonly #sharesBudget: boolean;
  /** Forms of each credential that was searched for. */
  #forms: Map<string, readonly string[]> | undefined;
  #remainingWork: number;
  /** True if a text was replaced because searching it, after earlier texts, would take too long. */
  isBudgetExceeded: boolean;

  constructor(credentials: readonly string[], mode: 'in one turn' | 'on a thread' = 'in one turn') {
    this.#credentials = credentials;
    this.#sharesBudget = mode === 'in one turn';
    this.#remainingWork = limits.work;
    this.isBudgetExceeded = false;
  }

  /** Maximum length of a form of any credential, at least 1. */
  get maxFormLength(): number {
    const lengths = this.#credentials.filter(isLongEnough).map((value) => Buffer.byteLength(value));
    return Math.max(1, ...lengths.map((length) => length * getMaxExpansion(length)));
  }

  /** Returns the text with `[redacted]` in place of each credential. */
  text(text: string): string {
    const candidates = new Set(
      this.#credentials.filter((value) => isLongEnough(value) && value.length <= text.length * getMaxExpansion(1)),
    );
    if (candidates.size === 0) return text;
    const bytes = Buffer.from(text);
    this.#forms ??= new Map();
    const formsByCredential = this.#forms;
    const forms: string[] = [];
    let remainingWork = this.#sharesBudget ? this.#remainingWork : limits.work;
    for (const value of candidates) {
      if (!formsByCredential.has(value)) remainingWork -= limits.making * value.length;
      if (remainingWork < 0) break;
      const credentialForms = formsByCredential.get(value) ?? getForms(value);
      formsByCredential.set(value, credentialForms);
      forms.push(...credentialForms);
    }
    remainingWork -= (forms.length + limits.reading) * (bytes.length + maxPrefixLength);
    this.#remainingWork = remainingWork;
    this.isBudgetExceeded = remainingWork < 0;
    if (this.isBudgetExceeded) return redactionMark;
    const ranges = decodeLayers(bytes.toString('latin1')).flatMap((layer) =>
      forms.flatMap((form) => findAll(layer, form)),
    );
    return ranges.length === 0 ? text : replaceRanges(bytes, ranges);
  }
}

function isLongEnough(value: string): boolean {
  return value.length >= minCredentialLength;
}

/** A text after some decoding steps, with the position of each of its characters in the original bytes. */
type Layer = { text: string; starts?: Uint32Array; ends?: Uint32Array };

/** Returns the text as it is and after each decoding step, folded. Each character represents one byte of UTF-8. */
function decodeLayers(text: string): Layer[] {
  const layers: Layer[] = [{ text: foldText(text) }];
  let layer: Layer = { text };
  for (let depth = 0; depth < maxEscapeDepth; depth++) {
    const decodedLayer = decodeLayer(layer);
    if (!decodedLayer) break;
    layers.push({ ...decodedLayer, text: foldText(decodedLayer.text) });
    layer = decodedLayer;
  }
  return layers;
}

const escapePattern =
  /%([0-9a-f]{2})|(\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\u[0-9a-f]{4})|\\(["\\/bfnrt])|&#(?:x([0-9a-f]{1,6})|(\d{1,7}));|&(amp|lt|gt|quot|apos);/gi;
const controls: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Decodes one level of escapes. Undefined if nothing is escaped. */
function decodeLayer({ text, starts, ends }: Layer): Layer | undefined {
  const decodedParts: string[] = [];
  const positions = { starts: new Uint32Array(text.length), ends: new Uint32Array(text.length) };
  let length = 0;
  let processedTo = 0;
  const add = (part: string, from: number, step: number, end?: number) => {
    decodedParts.push(part);
    for (let index = 0; index < part.length; index++, length++) {
      const at = from + index * step;
      positions.starts[length] = starts ? (starts[at] as number) : at;
      const lastIndex = end === undefined ? at : end - 1;
      positions.ends[length] = ends ? (ends[lastIndex] as number) : lastIndex + 1;
    }
  };
  for (const match of text.matchAll(escapePattern)) {
    const { index, 0: all } = match;
    add(text.slice(processedTo, index), processedTo, 1);
    processedTo = index + all.length;
    add(decodeEscape(match), index, 0, processedTo);
  }
  if (processedTo === 0) return undefined;
  add(text.slice(processedTo), processedTo, 1);
  return {
    text: decodedParts.join(''),
    starts: positions.starts.subarray(0, length),
    ends: positions.ends.subarray(0, length),
  };
}

/** Returns the meaning of an escape, as bytes of UTF-8. */
function decodeEscape([all, percent, units, control, hex, decimal, name]: RegExpMatchArray): string {
  if (percent !== undefined) return String.fromCharCode(Number.parseInt(percent, 16));
  if (control !== undefined) return controls[control.toLowerCase()] ?? control;
  if (name !== undefined) return entities[name.toLowerCase()] ?? '';
  if (units !== undefined) return toByteString(JSON.parse(`"${units.toLowerCase()}"`) as string);
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  return code > 0x10ffff ? all : toByteString(String.fromCodePoint(code));
}

/** Converts each byte of a text in UTF-8 to one character. */
function toByteString(text: string): string {
  return Buffer.from(text).toString('latin1');
}

const standardAlphabet: Readonly<Record<string, string>> = { '-': '+', _: '/' };

/** Folds text to lower case and to one Base64 alphabet. */
function foldText(text: string): string {
  return text
    .replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
    .replace(/[-_]/g, (mark) => standardAlphabet[mark] ?? mark);
}

/** Ways in which programs embed a text in another. */
const embeddings: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => encodeURIComponent(text.toWellFormed()),
  (text) => JSON.stringify(text).slice(1, -1),
  (text) => text.replace(/[&<>"]/g, (sign) => `&${Object.keys(entities).find((name) => entities[name] === sign)};`),
];

function embedText(text: string): string[] {
  return /^[\w.~-]+$/.test(text) ? [text] : embeddings.map((write) => write(text));
}

/** The start of an escape at the end of a credential, which the text after it may complete. */
const partialEscapePattern = /(?:%[0-9a-f]?|\\(?:u[0-9a-f]{0,3})?|&(?:#?[0-9a-z]{0,7})?)$/i;

/**
 * Returns the folded forms of a credential to search for. A credential that contains something like an escape loses it
 * when the text around it is decoded, so each form is decoded like the text. The end of a credential may also combine
 * with the text after it, so its undecoded form is searched for, too, and the credential without that end.
 */
function getForms(value: string): string[] {
  const credentials = [value, ...decodeBasicPair(value)];
  const texts = new Set(credentials.flatMap((text) => [text, text.replace(partialEscapePattern, '')]));
  const embedded = [...texts].filter(isLongEnough).flatMap(embedText);
  const embeddedTwice = new Set(embedded.flatMap(embedText).map(toByteString));
  const layers = [...embeddedTwice].flatMap((text) => decodeLayers(text).map((layer) => layer.text));
  const encoded = [...new Set(embedded)].map((text) => Buffer.from(text));
  const binaryForms = encoded.flatMap((bytes) => [
    bytes.toString('hex'),
    ...[0, 1, 2].map((shift) => getStableBase64(bytes, shift)),
  ]);
  return [
    ...new Set([...layers, ...binaryForms.filter(({ length }) => length >= minBase64Length).map(foldText)]),
  ].filter(isLongEnough);
}

/**
 * Returns the decoded `user:password` and the password, if a credential is the Base64 token of type Basic: an upstream
 * would echo these.
 */
function decodeBasicPair(value: string): string[] {
  const bytes = Buffer.from(value, 'base64');
  const pair = bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');
  const colon = pair.indexOf(':', 1);
  return colon > 0 && colon < pair.length - 1 && !/\p{C}/u.test(pair) ? [pair, pair.slice(colon + 1)] : [];
}

/**
 * Returns the Base64 characters that a value always produces at an offset of `shift` bytes from a multiple of three,
 * regardless of its surroundings.
 */
function getStableBase64(value: Buffer, shift: number): string {
  const shifted = Buffer.concat([Buffer.alloc(shift), value]);
  return shifted.toString('base64').slice(Math.ceil((shift * 4) / 3), Math.floor((shifted.length * 4) / 3));
}

type Range = [from: number, end: number];

function findAll({ text, starts, ends }: Layer, form: string): Range[] {
  const ranges: Range[] = [];
  const prefix = form.slice(0, maxPrefixLength);
  for (let at = text.indexOf(prefix); at >= 0; ) {
    let length = prefix.length;
    while (length < form.length && text[at + length] === form[length]) length++;
    const lastIndex = at + length - 1;
    ranges.push([starts ? (starts[at] as number) : at, ends ? (ends[lastIndex] as number) : lastIndex + 1]);
    at = text.indexOf(prefix, lastIndex + 1);
  }
  return ranges;
}

/** Replaces each group of overlapping ranges with one mark. */
function replaceRanges(bytes: Buffer, ranges: Range[]): string {
  ranges.sort((a, b) => a[0] - b[0]);
  let clean = '';
  let copiedTo = 0;
  let markedTo = -1;
  for (const [from, end] of ranges) {
    if (from >= markedTo) clean += bytes.toString('utf8', copiedTo, from) + redactionMark;
    markedTo = Math.max(markedTo, end);
    copiedTo = markedTo;
  }
  return clean + bytes.toString('utf8', copiedTo);
}

/**
 * Returns the first `limit` bytes of a long text without credentials, and without a partial credential at the end.
 * Reads only a few times `limit` bytes, however long the text is.
 */
export function redactPrefix(text: Buffer, limit: number, redactor: Redactor): string {
  const { maxFormLength } = redactor;
  const readLength = limit + maxFormLength * 2;
  const clean = redactor.text(text.toString('utf8', 0, readLength));
  if (text.length <= readLength) return truncateBytes(clean, limit);
  return truncateBytes(clean, Math.max(0, Math.min(limit, Buffer.byteLength(clean) - maxFormLength)));
}

/** Returns at most the first `limit` bytes of a text, as whole characters. */
export function truncateBytes(text: string, limit: number): string {
  if (text.length * 3 <= limit) return text;
  // A character takes at least one byte.
  const bytes = Buffer.from(text.slice(0, limit + 1));
  if (bytes.length <= limit) return text;
  let end = limit;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
