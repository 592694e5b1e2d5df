import { digitAt, withoutCuts, withoutEscapes } from './escapes.ts';
import { Below, firstLayer, type Layer } from './layer.ts';
import {
  between,
  type DecodingWork,
  layerOf,
  type PlacedBytes,
  type Run,
  runsOf,
  setOf,
  type Transcription,
} from './text-runs.ts';

/** A text without one encoding after another, to find in it what an upstream has encoded. */

/** How many encodings may be nested, and how many layers a text may have in all. */
const most = { depth: 6, layers: 64 };
/** Most characters that are decoded for one text, all layers together. */
export const mostDecoded = 320_000;
/** What a layer takes of them besides its length. */
const perLayer = 200;

/** A layer, and the encodings that were taken away above it. */
type Nested = { layer: Layer; depth: number };

/** The text as it is, then without its escapes, until there are none. */
export function escapeLayers(text: string): Layer[] {
  const layers = new Layers(mostDecoded);
  layers.add({ layer: firstLayer(text), depth: 1 });
  return layers.all;
}

/** The budget suffices for nearly all layers of a text of at most so many characters. */
const longestShortText = Math.floor(mostDecoded / most.layers) - perLayer;

/**
 * The same, and what each of these layers is if it is a transcription of a text of at least `least` characters. Takes what
 * it decodes from `budget`, and says there whether the texts before this one have left too little: for its escapes, or for
 * anything that a short text may be.
 */
export function plainLayers(text: string, least: number, budget: DecodingWork): Layer[] {
  const before = Math.min(mostDecoded, budget.left);
  const layers = new Layers(before);
  layers.add({ layer: firstLayer(text), depth: 1 });
  const hasEscapes = !layers.work.isShort;
  if (text.length <= mostDecoded) addTranscriptions(layers, least);
  const isDecoded = !layers.work.isShort && layers.work.left > 0;
  budget.left -= before - layers.work.left;
  budget.isShort = before < mostDecoded && !(text.length <= longestShortText ? isDecoded : hasEscapes);
  return layers.all;
}

function addTranscriptions(layers: Layers, least: number): void {
  for (let next = layers.next(); next && layers.work.left > 0; next = layers.next()) {
    for (const transcribed of transcriptions) {
      for (const layer of transcribed(next.layer, least, layers.work)) layers.add({ layer, depth: next.depth + 1 });
    }
  }
}

/** The layers of a text while they are found. */
class Layers {
  readonly all: Layer[] = [];
  readonly work: DecodingWork;
  readonly #seen = new Map<string, number>();
  #waiting: Nested[] = [];

  constructor(left: number) {
    this.work = { left };
  }

  /** Adds a layer and those below it, each without the escapes of the one above. */
  add(first: Nested): void {
    for (let { layer, depth } = first; this.all.length < most.layers; depth++) {
      // Two layers may have the same transcription. Only of the one that is less deep there may be more to find.
      const key = `${layer.spans?.starts[0]}:${layer.text}`;
      if ((this.#seen.get(key) ?? most.depth + 1) <= depth) return;
      this.#seen.set(key, depth);
      this.all.push(layer);
      this.work.left -= perLayer;
      if (depth === most.depth) return;
      this.#waiting.push({ layer, depth });
      if (layer.raw.length > this.work.left) {
        this.work.isShort = true;
        return;
      }
      const next = withoutEscapes(layer);
      if (!next) return;
      this.work.left -= layer.raw.length;
      layer = next;
    }
  }

  /** A layer whose transcriptions were not looked for: the first one, then the shortest, which has least around what it holds. */
  next(): Nested | undefined {
    if (this.all.length >= most.layers) return undefined;
    const [first] = this.#waiting;
    if (!first) return undefined;
    const isShorter = (one: Nested, other: Nested) => one.layer.raw.length < other.layer.raw.length;
    const chosen =
      first.depth === 1 ? first : this.#waiting.reduce((best, other) => (isShorter(other, best) ? other : best), first);
    this.#waiting = this.#waiting.filter((each) => each !== chosen);
    return chosen;
  }
}

/**
 * Encodings of a whole text, which are only guessed: quoted-printable, Base64, and bytes as numbers or in the lines of a
 * hex dump. What they make of other text is no text, so a guess is a layer beside the one that it was made of.
 */

const base64Characters = setOf(/[0-9A-Za-z+/_-]/);

/** Base64 in both alphabets. What stands before it without a space may shift its groups of four. */
const base64: Transcription = (layer, least, work) => {
  const { raw } = layer;
  const found: PlacedBytes[] = [];
  const runs = runsOf(raw, base64Characters, Math.ceil((least * 4) / 3));
  for (const shift of [0, 1, 2, 3]) {
    for (const [from, end] of runs) {
      work.left -= Math.floor(((end - from) * 3) / 4);
      if (work.left < 0) break;
      const bytes = Buffer.from(raw.slice(from + shift, end), 'base64');
      const at = from + shift;
      const startOf = (byte: number) => at + Math.floor((byte * 4) / 3);
      const endOf = (byte: number) => at + Math.floor((byte * 8 + 7) / 6) + 1;
      found.push({ bytes, startOf, endOf });
    }
  }
  const decoded = layerOf(found, least, layer);
  return decoded ? [decoded] : [];
};

const hasQuoted = /=(?:[0-9A-F]{2}|[ \t]{0,8}\r?\n)/;
const quotedByte = /=[0-9A-F]{2}/y;
const softBreak = /=[ \t]{0,8}\r?\n/y;

/** `=3D`, always in capitals, and `=` at the end of a line that goes on. */
const quotedPrintable: Transcription = ({ raw, spans }, _least, work) => {
  if (!hasQuoted.test(raw)) return [];
  work.left -= raw.length;
  if (work.left < 0) return [];
  const below = new Below(raw.length, spans);
  for (let at = 0; at < raw.length; ) {
    quotedByte.lastIndex = at;
    softBreak.lastIndex = at;
    if (quotedByte.test(raw)) at = below.add(16 * digitAt(raw, at + 1) + digitAt(raw, at + 2), at, at + 3);
    else if (softBreak.test(raw)) at = softBreak.lastIndex;
    else at = below.add(raw.charCodeAt(at), at, at + 1);
  }
  return [below.finish()];
};

/** Lines that were made of a text with escapes. */
const inLines: Transcription = (layer, _least, work) => {
  if (2 * layer.raw.length > work.left) {
    work.isShort = true;
    return [];
  }
  const found = withoutCuts(layer);
  work.left -= found.length * layer.raw.length;
  return found;
};

/** Bytes of a text as numbers, in lists and in the lines of a hex dump. */

/** Digits, and what may stand between them. */
const listCharacters = setOf(/[0-9A-Fa-fXx\s:;,.|"'-]/);
/** Eight bytes of a hex dump and the blanks between them. */
const shortestColumn = 23;

const byteLists: Transcription = (layer, least, work) => {
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

const transcriptions: readonly Transcription[] = [inLines, quotedPrintable, base64, byteLists];
