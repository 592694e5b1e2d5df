import { base64 } from './json-wasm.ts';

/**
 * Checks JSON text without making values of it (RFC 8259), for text that is passed on as it came. Whether the bytes are
 * UTF-8 is not checked here. The work is done in WebAssembly, compiled from `wasm/json.ts`.
 */

export type JsonScan = {
  /** Deepest nesting of objects and arrays. */
  depth: number;
  /** Number of commas and openings: how much there is to make values of. */
  elements: number;
  /** Number of names in objects. One that is new costs more to make than any other value. */
  names: number;
  /** Whether there is no white space between tokens. */
  isCompact: boolean;
};

/** Receives a text as the inside of a JSON string, in pieces. */
export type EscapedPieces = {
  /** The next piece: the first `length` bytes, which are good only until this returns. */
  add(bytes: Buffer, length: number): void;
};

/** The used part of WebAssembly; TypeScript declares it only with the types of browsers. */
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
  /** The length of the escaped piece, −1 or −2. */
  scan(length: number): number;
  finish(): number;
};

const wasm = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(base64, 'base64'))).exports as Exports;
const pieceBytes = wasm.pieceBytes.value;
// A piece is put at the beginning of the memory.
const input = new Uint8Array(wasm.memory.buffer, 0, pieceBytes);
const output = Buffer.from(wasm.memory.buffer, wasm.outputAt.value, 2 * pieceBytes);
const findings = new Int32Array(wasm.memory.buffer, wasm.findingsAt.value, 4);
const tooDeep = -2;

/**
 * The content of `bytes`, or undefined when they are not JSON text. Nesting deeper than `maxDepth`, 131,000 at most, ends
 * the scan: `depth` is then `maxDepth + 1`, and the rest has not been read.
 * `escaped`, when given, receives the text as the inside of a JSON string. What it receives is good only if the result
 * says `isCompact`. A text of at most 64 KiB is one piece.
 */
export function scanJson(bytes: Uint8Array, maxDepth: number, escaped?: EscapedPieces): JsonScan | undefined {
  wasm.begin(maxDepth);
  let length = 0;
  for (let at = 0; at < bytes.length && length >= 0; at += pieceBytes) {
    const piece = bytes.length <= pieceBytes ? bytes : bytes.subarray(at, at + pieceBytes);
    input.set(piece);
    length = wasm.scan(piece.length);
    if (length > 0) escaped?.add(output, length);
  }
  const isJson = wasm.finish() !== 0 && length >= 0;
  if (!isJson && length !== tooDeep) return undefined;
  return {
    depth: findings[0] as number,
    elements: findings[1] as number,
    names: findings[3] as number,
    isCompact: findings[2] === 1,
  };
}
