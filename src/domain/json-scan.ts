/**
 * Judges JSON text without making values of it (RFC 8259): one pass over its bytes, for text that is passed on as it
 * came. Whether the bytes are UTF-8 is not judged here.
 */

export type JsonScan = {
  /** Deepest nesting of objects and arrays. */
  depth: number;
  /** Number of commas and openings: how much there is to make values of. */
  elements: number;
  /** Whether there is no white space between tokens. */
  isCompact: boolean;
};

const code = {
  tab: 0x09,
  lineFeed: 0x0a,
  carriageReturn: 0x0d,
  space: 0x20,
  quote: 0x22,
  plus: 0x2b,
  comma: 0x2c,
  minus: 0x2d,
  dot: 0x2e,
  zero: 0x30,
  nine: 0x39,
  colon: 0x3a,
  openArray: 0x5b,
  backslash: 0x5c,
  closeArray: 0x5d,
  e: 0x65,
  u: 0x75,
  openObject: 0x7b,
  closeObject: 0x7d,
} as const;

/** What may come next. The order matters: everything up to `key` may be followed by a string. */
const next = { value: 0, valueOrEnd: 1, keyOrEnd: 2, key: 3, colon: 4, commaOrEnd: 5 } as const;

/**
 * What `bytes` hold, or undefined when that is no JSON text. Nesting deeper than `maxDepth` ends the scan: `depth` is
 * then `maxDepth + 1`, and the rest has not been looked at.
 */
export function scanJson(bytes: Uint8Array, maxDepth: number): JsonScan | undefined {
  const end = bytes.length;
  const scan: JsonScan = { depth: 0, elements: 0, isCompact: true };
  /** For each open container whether it is an object. */
  const open: boolean[] = [];
  let inObject = false;
  let expected: number = next.value;
  let at = 0;
  while (at < end) {
    const byte = bytes[at] as number;
    if (byte === code.quote) {
      if (expected > next.key) return undefined;
      at = stringEnd(bytes, at + 1);
      if (at < 0) return undefined;
      expected = expected === next.key || expected === next.keyOrEnd ? next.colon : next.commaOrEnd;
    } else if (byte === code.comma) {
      if (expected !== next.commaOrEnd || open.length === 0) return undefined;
      expected = inObject ? next.key : next.value;
      scan.elements++;
      at++;
    } else if (byte === code.colon) {
      if (expected !== next.colon) return undefined;
      expected = next.value;
      at++;
    } else if (byte === code.openObject || byte === code.openArray) {
      if (expected > next.valueOrEnd) return undefined;
      inObject = byte === code.openObject;
      open.push(inObject);
      scan.elements++;
      if (open.length > scan.depth) scan.depth = open.length;
      if (scan.depth > maxDepth) return scan;
      expected = inObject ? next.keyOrEnd : next.valueOrEnd;
      at++;
    } else if (byte === code.closeObject || byte === code.closeArray) {
      const empty = inObject ? next.keyOrEnd : next.valueOrEnd;
      if (open.length === 0 || inObject !== (byte === code.closeObject)) return undefined;
      if (expected !== next.commaOrEnd && expected !== empty) return undefined;
      open.pop();
      inObject = open[open.length - 1] === true;
      expected = next.commaOrEnd;
      at++;
    } else if (isSpace(byte)) {
      scan.isCompact = false;
      at++;
    } else {
      if (expected > next.valueOrEnd) return undefined;
      at = isDigit(byte) || byte === code.minus ? numberEnd(bytes, at) : wordEnd(bytes, at);
      if (at < 0) return undefined;
      expected = next.commaOrEnd;
    }
  }
  return open.length === 0 && expected === next.commaOrEnd ? scan : undefined;
}

function isSpace(byte: number): boolean {
  return byte === code.space || byte === code.lineFeed || byte === code.carriageReturn || byte === code.tab;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= code.zero && byte <= code.nine;
}

/** Bytes that end the plain run of a string: its quote, a backslash, and control characters. */
const endsRun = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number(byte === code.quote || byte === code.backslash || byte < code.space),
);

/** Where the string that begins at `at` has ended, behind its quote; −1 when it is none. */
function stringEnd(bytes: Uint8Array, at: number): number {
  const end = bytes.length;
  let i = at;
  while (i < end) {
    const byte = bytes[i] as number;
    if (endsRun[byte] === 0) i++;
    else if (byte === code.quote) return i + 1;
    else if (byte === code.backslash) {
      const length = escapeLength(bytes, i + 1);
      if (length === 0) return -1;
      i += 1 + length;
    } else return -1;
  }
  return -1;
}

const singleEscapes = new Set([...'"\\/bfnrt'].map((letter) => letter.charCodeAt(0)));

/** How many bytes after its backslash an escape has; 0 when it is none. */
function escapeLength(bytes: Uint8Array, at: number): number {
  const byte = bytes[at] as number;
  if (byte !== code.u) return singleEscapes.has(byte) ? 1 : 0;
  for (let i = at + 1; i <= at + 4; i++) if (!isHexDigit(bytes[i])) return 0;
  return 5;
}

function isHexDigit(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const letter = byte | 0x20;
  return isDigit(byte) || (letter >= 0x61 && letter <= 0x66);
}

/** Where the number at `at` has ended; −1 when it is none. */
function numberEnd(bytes: Uint8Array, at: number): number {
  let i = bytes[at] === code.minus ? at + 1 : at;
  if (bytes[i] === code.zero) i++;
  else i = digitsEnd(bytes, i);
  if (i > 0 && bytes[i] === code.dot) i = digitsEnd(bytes, i + 1);
  if (i > 0 && ((bytes[i] ?? 0) | 0x20) === code.e) {
    const sign = bytes[i + 1];
    i = digitsEnd(bytes, sign === code.plus || sign === code.minus ? i + 2 : i + 1);
  }
  return i;
}

/** The end of one digit or more; −1 when there is none. */
function digitsEnd(bytes: Uint8Array, at: number): number {
  let i = at;
  while (isDigit(bytes[i])) i++;
  return i === at ? -1 : i;
}

const words = ['true', 'false', 'null'].map((word) => Buffer.from(word));

function wordEnd(bytes: Uint8Array, at: number): number {
  const word = words.find((candidate) => candidate[0] === bytes[at]);
  if (!word) return -1;
  for (let i = 1; i < word.length; i++) if (bytes[at + i] !== word[i]) return -1;
  return at + word.length;
}
