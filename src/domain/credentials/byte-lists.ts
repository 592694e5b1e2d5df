import { digitAt } from './escapes.ts';
import type { Layer } from './layer.ts';
import { between, layerOf, type PlacedBytes, type Run, runsOf, setOf, type Transcription } from './text-runs.ts';

/** Bytes of a text as numbers, in lists and in the lines of a hex dump. */

/** Digits, and what may stand between them. */
const listCharacters = setOf(/[0-9A-Fa-fXx\s:;,.|"'-]/);
/** Eight bytes of a hex dump and the blanks between them. */
const shortestColumn = 23;

export const byteLists: Transcription = (layer, least, work) => {
  const runs = runsOf(layer.raw, listCharacters, Math.min(2 * least, shortestColumn));
  if (runs.length === 0) return [];
  const layers: (Layer | undefined)[] = [];
  const long = runs.filter(([from, end]) => end - from >= 2 * least);
  const lines = runs.flatMap((run) => dumpLines(layer.raw, run));
  for (const [places, read] of [
    [long, readNumbers(hexNumber)],
    [long, readNumbers(decimalNumber)],
    [lines.map(({ column }) => column), readNumbers(hexNumber)],
    [lines.map(({ gutter }) => gutter), readText],
  ] as const) {
    const length = places.reduce((sum, [from, end]) => sum + end - from, 0);
    // Each byte is written twice, with the place where it stands.
    work.left -= 2 * length;
    if (work.left < 0) break;
    const bytes = new Bytes(length);
    for (const place of places) read(layer.raw, place, bytes);
    layers.push(layerOf([bytes.found], least, layer));
  }
  return layers.filter((found) => found !== undefined);
};

/** Bytes that are collected one by one. */
class Bytes {
  readonly #bytes: Buffer;
  readonly #spans: Uint32Array;
  #length = 0;

  constructor(most: number) {
    this.#bytes = Buffer.allocUnsafe(most);
    this.#spans = new Uint32Array(2 * most);
  }

  add(byte: number, from: number, end: number): void {
    this.#bytes[this.#length] = byte;
    this.#spans[2 * this.#length] = from;
    this.#spans[2 * this.#length + 1] = end;
    this.#length++;
  }

  get found(): PlacedBytes {
    const spans = this.#spans;
    const startOf = (at: number) => spans[2 * at] as number;
    const endOf = (at: number) => spans[2 * at + 1] as number;
    return { bytes: this.#bytes.subarray(0, this.#length), startOf, endOf };
  }
}

/** Adds the bytes of a run of letters and digits; false where it has none. */
type NumberReader = (text: string, run: Run, bytes: Bytes) => boolean;

/** Adds the bytes of the numbers of a run. */
function readNumbers(read: NumberReader): (text: string, run: Run, bytes: Bytes) => void {
  return (text, [from, end], bytes) => {
    for (let at = from; at < end; ) {
      let stop = at;
      while (stop < end && digitAt(text, stop) < 36) stop++;
      if (stop > at && !read(text, [at, stop], bytes)) bytes.add(between, at, stop);
      at = Math.max(stop, at + 1);
    }
  };
}

function readText(text: string, [from, end]: Run, bytes: Bytes): void {
  for (let at = from; at < end; at++) bytes.add(text.charCodeAt(at), at, at + 1);
}

/** `73`, `736b` and `0x73`. */
function hexNumber(text: string, [from, end]: Run, bytes: Bytes): boolean {
  const isMarked = digitAt(text, from + 1) === digitOfX;
  const start = isMarked ? from + 2 : from;
  if ((end - start) % 2 === 1) return false;
  for (let at = start; at < end; at++) if (!(digitAt(text, at) < 16)) return false;
  for (let at = start; at < end; at += 2)
    bytes.add(16 * digitAt(text, at) + digitAt(text, at + 1), at === start ? from : at, at + 2);
  return true;
}

const digitOfX = 33;

/** `115`, as languages show the bytes of a text. */
function decimalNumber(text: string, [from, end]: Run, bytes: Bytes): boolean {
  const value = end - from <= 3 ? Number(text.slice(from, end)) : Number.NaN;
  if (!(value <= 255)) return false;
  bytes.add(value, from, end);
  return true;
}

/** The offset of a line of a hex dump, and its column of bytes. */
const dumpLine =
  /(?<![0-9a-z])[0-9a-f]{4,16}[:h]?[ \t]{1,4}((?:[0-9a-f]{2}){1,8}(?:[ -]{1,2}(?:[0-9a-f]{2}){1,8}){0,31})/gi;

type DumpLine = { column: Run; gutter: Run };

/** The lines of a hex dump whose offset is in this run, each with the text beside its bytes. */
function dumpLines(text: string, [from, end]: Run): DumpLine[] {
  const part = text.slice(from, end);
  if (!/[ \t]/.test(part)) return [];
  return Array.from(part.matchAll(dumpLine), ({ 0: line, 1: column = '', index }) => {
    const until = from + index + line.length;
    const [, blanks = '', shown = ''] = /^([ \t]*)(.*)/.exec(text.slice(until, until + longestGutter)) ?? [];
    // Without a second bar the first one is a character of the text.
    const framed = /^\|(.*)\|/.exec(shown)?.[1];
    const gutter = framed ?? shown.trimEnd();
    const at = until + blanks.length + (framed === undefined ? 0 : 1);
    return { column: [until - column.length, until], gutter: [at, at + gutter.length] };
  });
}

/** A character may be an escape there. */
const longestGutter = 200;
