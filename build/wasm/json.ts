/**
 * Validates and escapes JSON text in one pass, in AssemblyScript: TypeScript syntax with WebAssembly types. JavaScript
 * takes twice as long. `npm run wasm` compiles it; `packages/json/src/json-scan.ts` explains its purpose.
 *
 * The text is processed in chunks: JavaScript writes a chunk to `input`, calls `scan`, and reads the result from
 * `output`.
 */

// Memory layout: a chunk of the text, the escaped chunk, the open containers, and the findings.
const input: usize = 0;
const output: usize = 0x10000;
const containers: usize = 0x30000;
const mostContainers: i32 = 0x1ffe0;
const findings: usize = 0x4fff0;

export const pieceBytes: i32 = 0x10000;
export const outputAt: i32 = <i32>output;
export const findingsAt: i32 = <i32>findings;

/** States between tokens. The order matters: any value may follow up to `valueOrEnd`, and a string up to `key`. */
const value: i32 = 0;
const valueOrEnd: i32 = 1;
const keyOrEnd: i32 = 2;
const key: i32 = 3;
const colon: i32 = 4;
const commaOrEnd: i32 = 5;
/** States inside a number. The order matters: the number may end from `zero` on. */
const minus: i32 = 6;
const dot: i32 = 7;
const exponent: i32 = 8;
const exponentSign: i32 = 9;
const zero: i32 = 10;
const integer: i32 = 11;
const fraction: i32 = 12;
const exponentDigits: i32 = 13;
/** State inside true, false, or null. */
const word: i32 = 14;
/** States inside a string: a key, or a value if `ofValue` is added. */
const escaped: i32 = 15;
const hex: i32 = 17;
const text: i32 = 19;
const ofValue: i32 = 1;

const none: i32 = -1;
const tooDeep: i32 = -2;

let saved: i32 = value;
/** Remaining digits of a `\u` escape. */
let hexLeft: i32 = 0;
/** Remaining bytes of a word, with the next byte lowest. */
let wordLeft: u32 = 0;
let depth: i32 = 0;
let deepest: i32 = 0;
let maxDepth: i32 = 0;
let elements: i32 = 0;
let names: i32 = 0;
let isCompact: bool = true;

export function begin(limit: i32): void {
  saved = value;
  depth = 0;
  deepest = 0;
  maxDepth = min(limit, mostContainers);
  elements = 0;
  names = 0;
  isCompact = true;
}

/**
 * Processes the next chunk. Returns its length after escaping: a backslash is added before every quote and backslash,
 * which turns compact JSON into the content of a JSON string. Returns −1 if the text is not JSON, and −2 if it is
 * nested too deeply, so that the remaining text need not be scanned.
 */
export function scan(length: i32): i32 {
  const end = input + length;
  let at = input;
  let to = output;
  let state = saved;
  while (at < end) {
    if (state >= text) {
      while (at + 16 <= end) {
        const bytes = v128.load(at);
        v128.store(to, bytes);
        const mask = specials(bytes);
        const plain = <usize>(mask === 0 ? 16 : ctz(mask));
        at += plain;
        to += plain;
        if (plain < 16) break;
      }
      if (at === end) break;
    }
    const byte = <i32>load<u8>(at);
    if (state >= minus && state <= exponentDigits) {
      const next = afterDigit(state, byte);
      // A number ends before the byte that does not belong to it.
      if (next === none && state < zero) return none;
      state = next === none ? commaOrEnd : next;
      if (next === none) continue;
    } else {
      state = state < minus ? afterToken(state, byte) : afterInner(state, byte);
      if (state < 0) return state;
      if (byte === 0x22 || byte === 0x5c) store<u8>(to++, 0x5c);
    }
    store<u8>(to++, <u8>byte);
    at++;
  }
  saved = state;
  return <i32>(to - output);
}

/** Returns true if the whole text was JSON. Writes the findings to `findings`, even if the nesting was too deep. */
export function finish(): bool {
  store<i32>(findings, deepest);
  store<i32>(findings + 4, elements);
  store<i32>(findings + 8, isCompact ? 1 : 0);
  store<i32>(findings + 12, names);
  return depth === 0 && (saved === commaOrEnd || (saved >= zero && saved <= exponentDigits));
}

/** Returns a bit mask of the 16 bytes that need attention in a string: quotes, backslashes, and control characters. */
function specials(bytes: v128): i32 {
  const quotes = i8x16.eq(bytes, i8x16.splat(0x22));
  const backslashes = i8x16.eq(bytes, i8x16.splat(0x5c));
  const controls = i8x16.lt_u(bytes, i8x16.splat(0x20));
  return i8x16.bitmask(v128.or(v128.or(quotes, backslashes), controls));
}

/** Returns the state after a byte outside strings, numbers, and words. */
function afterToken(state: i32, byte: i32): i32 {
  switch (byte) {
    case 0x22: // "
      if (state > key) return none;
      return state <= valueOrEnd ? text + ofValue : text;
    case 0x2c: // ,
      if (state !== commaOrEnd || depth === 0) return none;
      elements++;
      return isInObject() ? key : value;
    case 0x3a: // :
      if (state !== colon) return none;
      names++;
      return value;
    case 0x7b: // {
    case 0x5b: // [
      if (state > valueOrEnd) return none;
      elements++;
      depth++;
      if (depth > deepest) deepest = depth;
      if (depth > maxDepth) return tooDeep;
      store<u8>(containers + depth, <u8>byte);
      return byte === 0x7b ? keyOrEnd : valueOrEnd;
    case 0x7d: // }
    case 0x5d: // ]
      if (depth === 0 || isInObject() !== (byte === 0x7d)) return none;
      if (state !== commaOrEnd && state !== (byte === 0x7d ? keyOrEnd : valueOrEnd)) return none;
      depth--;
      return commaOrEnd;
    case 0x20:
    case 0x0a:
    case 0x0d:
    case 0x09:
      isCompact = false;
      return state;
    default:
      return state <= valueOrEnd ? afterFirst(byte) : none;
  }
}

function isInObject(): bool {
  return load<u8>(containers + depth) === 0x7b;
}

/** Returns the state after the first byte of a number or a word. */
function afterFirst(byte: i32): i32 {
  if (byte === 0x2d) return minus;
  if (byte === 0x30) return zero;
  if (isDigit(byte)) return integer;
  // true, false, null
  wordLeft = byte === 0x74 ? 0x657572 : byte === 0x66 ? 0x65736c61 : byte === 0x6e ? 0x6c6c75 : 0;
  return wordLeft === 0 ? none : word;
}

/** Returns the state after a byte inside a word or a string. */
function afterInner(state: i32, byte: i32): i32 {
  if (state === word) {
    if (<u32>byte !== (wordLeft & 0xff)) return none;
    wordLeft >>= 8;
    return wordLeft === 0 ? commaOrEnd : word;
  }
  if (state >= text) {
    if (byte === 0x22) return state === text ? colon : commaOrEnd;
    if (byte === 0x5c) return state - text + escaped;
    return byte < 0x20 ? none : state;
  }
  if (state >= hex) {
    if (!isHexDigit(byte)) return none;
    return --hexLeft === 0 ? state - hex + text : state;
  }
  if (byte === 0x75) {
    hexLeft = 4;
    return state - escaped + hex;
  }
  return isEscape(byte) ? state - escaped + text : none;
}

function isEscape(byte: i32): bool {
  switch (byte) {
    case 0x22: // "
    case 0x5c: // backslash
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return true;
    default:
      return false;
  }
}

function isDigit(byte: i32): bool {
  return byte >= 0x30 && byte <= 0x39;
}

function isHexDigit(byte: i32): bool {
  return isDigit(byte) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
}

/** Returns the state after another byte of a number, or `none` if the byte does not belong to it (RFC 8259, 6). */
function afterDigit(state: i32, byte: i32): i32 {
  if (isDigit(byte)) {
    if (state === minus) return byte === 0x30 ? zero : integer;
    if (state === zero) return none;
    if (state === dot) return fraction;
    return state === integer || state === fraction ? state : exponentDigits;
  }
  if (byte === 0x2e) return state === zero || state === integer ? dot : none;
  if ((byte | 0x20) === 0x65) return state >= zero && state <= fraction ? exponent : none;
  return state === exponent && (byte === 0x2b || byte === 0x2d) ? exponentSign : none;
}
