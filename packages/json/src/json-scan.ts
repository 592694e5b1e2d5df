import { base64 } from './json-wasm.ts';

/**
 * Checks JSON text without creating values (RFC 8259), for text that is forwarded unchanged. It does not check that the
 * bytes are UTF-8. The work is done in WebAssembly, compiled from `build/wasm/json.ts`.
 */

export type JsonScan = {
  /** Deepest nesting of objects and arrays. */
  depth: number;
  /** Number of commas and opening brackets: an estimate of the number of values. */
  elements: number;
  /** Number of names in objects. Creating a new name costs more than creating any other value. */
  names: number;
  /** True if there is no white space between tokens. */
  isCompact: boolean;
};

/** Limits of a body, in the units of `JsonScan`. */
export type BodyLimits = { bytes: number; depth: number; elements: number; names: number };

/** Receives text as the content of a JSON string, in chunks. */
export type EscapedChunks = {
  /** Receives the next chunk: the first `length` bytes, which are valid only until this returns. */
  add(bytes: Buffer, length: number): void;
};

/** The part of WebAssembly that is used here; TypeScript declares it only with the browser types. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { exports: object };
};

type Exports = {
  memory: { buffer: ArrayBuffer };
  pieceBytes: { value: number };
  outputAt: { value: number };
  findingsAt: { value: number };
  begin(maxDepth: number): void;
  /** Returns the length of the escaped chunk, −1, or −2. */
  scan(length: number): number;
  finish(): number;
};

const wasm = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(base64, 'base64'))).exports as Exports;
const chunkBytes = wasm.pieceBytes.value;
// A chunk is stored at the beginning of the memory.
const input = new Uint8Array(wasm.memory.buffer, 0, chunkBytes);
const output = Buffer.from(wasm.memory.buffer, wasm.outputAt.value, 2 * chunkBytes);
const findings = new Int32Array(wasm.memory.buffer, wasm.findingsAt.value, 4);
const tooDeepResult = -2;

/**
 * Scans JSON text. Returns undefined if `bytes` is not JSON. Nesting deeper than `maxDepth`, 131,000 at most, ends the
 * scan: `depth` is then `maxDepth + 1`, and the remaining text is not read. `escaped` receives the text as the content
 * of a JSON string, which is valid only if the result has `isCompact`. A text of at most 64 KiB is one chunk.
 */
export function scanJson(bytes: Uint8Array, maxDepth: number, escaped?: EscapedChunks): JsonScan | undefined {
  wasm.begin(maxDepth);
  let length = 0;
  for (let offset = 0; offset < bytes.length && length >= 0; offset += chunkBytes) {
    const chunk = bytes.length <= chunkBytes ? bytes : bytes.subarray(offset, offset + chunkBytes);
    input.set(chunk);
    length = wasm.scan(chunk.length);
    if (length > 0) escaped?.add(output, length);
  }
  const isJson = wasm.finish() !== 0 && length >= 0;
  if (!isJson && length !== tooDeepResult) return undefined;
  return {
    depth: findings[0] as number,
    elements: findings[1] as number,
    names: findings[3] as number,
    isCompact: findings[2] === 1,
  };
}

/** Returns true if a body exceeds these limits; its depth does not count. */
export function exceedsLimits(bytes: number, { elements, names }: JsonScan, limits: BodyLimits): boolean {
  return bytes > limits.bytes || elements > limits.elements || names > limits.names;
}

/** Describes the limit that a posted body exceeds, or returns undefined. */
export function getBodyProblem({ depth, elements, names }: JsonScan, limits: BodyLimits): string | undefined {
  if (depth > limits.depth) return `nested deeper than ${limits.depth} levels`;
  if (elements > limits.elements) return `the body has more than ${limits.elements} elements; split the request`;
  if (names > limits.names) return `the body has more than ${limits.names} names; split the request`;
  return undefined;
}

/**
 * JSON can contain half a surrogate pair (`"\ud83d"`), which is not a character. Many parsers then reject the whole
 * text (RFC 8259, 8.2; RFC 7493, 2.1), so their client would lose a whole message.
 */

const backslash = 0x5c;
const letterU = 0x75;
const letterD = 0x64;
const hexDigits = '0123456789abcdef';
const hexValues = new Uint8Array(256).fill(0xff);
for (const [value, digit] of [...hexDigits].entries()) {
  hexValues[digit.charCodeAt(0)] = value;
  hexValues[digit.toUpperCase().charCodeAt(0)] = value;
}
const replacement = Buffer.from('fffd');
/** Length of an escape such as `\ud83d`. */
const escapeLength = 6;

/**
 * Replaces each lone surrogate in JSON text with U+FFFD. Bytes without one are returned unchanged. Bytes that are not
 * JSON do not become JSON.
 */
export function toWellFormedJson(bytes: Buffer): Buffer {
  const firstBackslash = bytes.indexOf(backslash);
  if (
    firstBackslash < 0 ||
    !(bytes.includes('\\ud', firstBackslash, 'latin1') || bytes.includes('\\uD', firstBackslash, 'latin1'))
  )
    return bytes;
  let copy: Buffer | undefined;
  for (let index = firstBackslash; index < bytes.length; index++) {
    if (bytes[index] !== backslash) continue;
    const surrogate = getSurrogateAt(bytes, index);
    if (surrogate === 'high' && getSurrogateAt(bytes, index + escapeLength) === 'low') index += escapeLength;
    else if (surrogate !== undefined) {
      copy ??= Buffer.from(bytes);
      copy.set(replacement, index + 2);
    }
    // The character after a backslash may be another backslash.
    index++;
  }
  return copy ?? bytes;
}

/** Replaces each lone surrogate in JSON text, for a string. */
export function toWellFormedJsonText(json: string): string {
  return json.includes('\\ud') || json.includes('\\uD') ? toWellFormedJson(Buffer.from(json)).toString('utf8') : json;
}

/**
 * Returns the half of a surrogate pair that is escaped at `index`; undefined for anything else, even a truncated
 * escape.
 */
function getSurrogateAt(bytes: Buffer, index: number): 'high' | 'low' | undefined {
  if (index + escapeLength > bytes.length) return undefined;
  if (bytes[index] !== backslash || bytes[index + 1] !== letterU) return undefined;
  if (((bytes[index + 2] ?? 0) | 0x20) !== letterD) return undefined;
  const second = hexValues[bytes[index + 3] ?? 0] ?? 0xff;
  if (second < 8 || second > 15) return undefined;
  return second < 12 ? 'high' : 'low';
}
