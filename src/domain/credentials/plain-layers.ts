/**
 * A text without one layer of escapes after another, to find in it what an upstream has escaped: percent-encoding, escapes
 * of JSON and of programming languages, HTML entities, UTF-16, and lines that a wrapped Base64 is cut into.
 */

/** Characters as bytes of UTF-8, one character each, compared as `folded` writes them. */
export type Layer = {
  text: string;
  /** Where each character begins and ends in the first layer; undefined in the first layer itself. */
  spans: { starts: Uint32Array; ends: Uint32Array } | undefined;
};

const mostLayers = 5;
/** Most characters that are decoded for one text, all layers together. */
const mostDecoded = 320_000;

/** Case, the two alphabets of Base64 and the space of forms make no difference. The length stays. */
export function folded(text: string): string {
  return Buffer.from(text).toString('latin1').toLowerCase().replaceAll(/[ -]/g, '+').replaceAll('_', '/');
}

/** The same of one byte. */
const foldedBytes = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte === 0x20 || byte === 0x2d) return 0x2b;
  return byte === 0x5f ? 0x2f : String.fromCharCode(byte).toLowerCase().charCodeAt(0);
});

/** The text as it is, then without its escapes, until there are none. */
export function plainLayers(text: string): Layer[] {
  const layers: Layer[] = [{ text: folded(text), spans: undefined }];
  let left = mostDecoded;
  for (let layer = layers[0] as Layer; layers.length < mostLayers; ) {
    left -= layer.text.length;
    const next = left < 0 || !hasEscape.test(layer.text) ? undefined : decoded(layer);
    if (!next || next.text.length === layer.text.length) break;
    layers.push(next);
    layer = next;
  }
  return layers;
}

const hasEscape = /[%\\&\0\r\n]/;

const code = { percent: 0x25, ampersand: 0x26, backslash: 0x5c, u: 0x75, x: 0x78, hash: 0x23, open: 0x7b, close: 0x7d };
const entities: readonly (readonly [name: string, meaning: string])[] = [
  ['amp;', '&'],
  ['lt;', '<'],
  ['gt;', '>'],
  ['quot;', '"'],
  ['apos;', "'"],
  ['sol;', '/'],
  ['plus;', '+'],
  ['equals;', '='],
];
const controls = new Map([
  [0x6e, 0x0a],
  [0x72, 0x0d],
  [0x74, 0x09],
]);

/** The layer below: each escape replaced by its character. */
function decoded({ text, spans }: Layer): Layer {
  const below = new Below(text.length, spans);
  for (let at = 0; at < text.length; ) {
    const first = text.charCodeAt(at);
    const end = isEscape[first] ? readEscape(text, at, below) : at;
    if (end === at) below.add(first, at, ++at);
    else at = end;
  }
  return below.layer;
}

const isEscape = Uint8Array.from({ length: 256 }, (_, byte) => Number(hasEscape.test(String.fromCharCode(byte))));

/** Adds the meaning of the escape that begins here, and gives its end; `at` when there is none. */
function readEscape(text: string, at: number, below: Below): number {
  const first = text.charCodeAt(at);
  if (first === code.ampersand) return readEntity(text, at, below);
  // NUL and line breaks mean nothing.
  if (first !== code.percent && first !== code.backslash) return at + 1;
  const second = text.charCodeAt(at + 1);
  if (second === code.u) {
    const isBraced = text.charCodeAt(at + 2) === code.open;
    const digits = isBraced ? text.slice(at + 3, at + 3 + mostInBraces + 1).indexOf('}') : 4;
    const value = number(text, at + 2 + Number(isBraced), digits, 16);
    if (value >= 0) return below.put(value, at, at + 2 + digits + 2 * Number(isBraced));
  }
  const from = first === code.percent ? at + 1 : at + 2;
  const byte = first === code.percent || second === code.x ? number(text, from, 2, 16) : -1;
  if (byte >= 0) return below.add(byte, at, from + 2);
  if (first === code.percent || at + 1 === text.length) return at;
  const octal = number(text, at + 1, 3, 8);
  if (octal >= 0) return below.add(octal & 0xff, at, at + 4);
  return below.add(controls.get(second) ?? second, at, at + 2);
}

const longestNumber = 9;
/** Digits of `\u{74}`. A brace that never closes is not looked for in the whole text, again for each escape. */
const mostInBraces = 8;

/** `&#116;`, `&#x74;` and `&lt;`; some leave out the semicolon of a number. */
function readEntity(text: string, at: number, below: Below): number {
  if (text.charCodeAt(at + 1) !== code.hash) {
    const entity = entities.find(([name]) => text.startsWith(name, at + 1));
    return entity ? below.add(entity[1].charCodeAt(0), at, at + 1 + entity[0].length) : at;
  }
  const isHex = text.charCodeAt(at + 2) === code.x;
  const from = at + 2 + Number(isHex);
  const base = isHex ? 16 : 10;
  let end = from;
  while (end - from < longestNumber && number(text, end, 1, base) >= 0) end++;
  if (end === from) return at;
  return below.put(number(text, from, end - from, base), at, text[end] === ';' ? end + 1 : end);
}

/** A number of so many digits, or -1. Letters are in lower case. */
function number(text: string, from: number, digits: number, base: number): number {
  if (digits <= 0) return -1;
  let value = 0;
  for (let at = from; at < from + digits; at++) {
    const character = text.charCodeAt(at);
    const digit =
      character >= 0x61 ? character - 0x57 : character >= 0x30 && character <= 0x39 ? character - 0x30 : base;
    if (!(digit < base)) return -1;
    value = value * base + digit;
  }
  return value;
}

/** A layer that grows; it is never longer than the one above. */
class Below {
  readonly #bytes: Buffer;
  readonly #starts: Uint32Array;
  readonly #ends: Uint32Array;
  readonly #above: Layer['spans'];
  #length = 0;

  constructor(most: number, above: Layer['spans']) {
    this.#bytes = Buffer.allocUnsafe(most);
    this.#starts = new Uint32Array(most);
    this.#ends = new Uint32Array(most);
    this.#above = above;
  }

  /** Adds a code point as UTF-8. */
  put(point: number, from: number, end: number): number {
    if (point < 0x80) return this.add(point, from, end);
    const isPoint = point <= 0x10ffff;
    for (const byte of Buffer.from(isPoint ? String.fromCodePoint(point) : '?')) this.add(byte, from, end);
    return end;
  }

  /** Adds one byte, which stands from `from` to `end` in the layer above, and gives `end`. */
  add(byte: number, from: number, end: number): number {
    const at = this.#length++;
    this.#bytes[at] = foldedBytes[byte] as number;
    this.#starts[at] = this.#above ? (this.#above.starts[from] as number) : from;
    this.#ends[at] = this.#above ? (this.#above.ends[end - 1] as number) : end;
    return end;
  }

  get layer(): Layer {
    const length = this.#length;
    const spans = { starts: this.#starts.subarray(0, length), ends: this.#ends.subarray(0, length) };
    return { text: this.#bytes.toString('latin1', 0, length), spans };
  }
}
