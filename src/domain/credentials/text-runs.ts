/** The parts of a text that are written in some characters, and what they are decoded. */

import { Below, type Layer } from './layer.ts';

/** Characters that may still be decoded for a text. `isShort`: something was not decoded, because fewer are left. */
export type DecodingWork = { left: number; isShort?: boolean };

/** What a layer may be transcriptions of. A text shorter than `least` is of no use. */
export type Transcription = (layer: Layer, least: number, work: DecodingWork) => Layer[];

export type Run = [from: number, end: number];

/** The characters that a pattern takes, as 1 at their number. */
export const setOf = (pattern: RegExp) =>
  Uint8Array.from({ length: 256 }, (_, byte) => Number(pattern.test(String.fromCharCode(byte))));
const printable = setOf(/[\0\t\n\r -~]/);

/** Stands between two texts of a layer. No credential has it. */
export const between = 1;

/**
 * The runs of a set of characters that are at least so long. One of so many characters contains every position that is a
 * multiple of them, so most of an ordinary text is not looked at.
 */
export function runsOf(text: string, set: Uint8Array, least: number): Run[] {
  const runs: Run[] = [];
  for (let start = 0; start + least <= text.length; ) {
    let at = start + least - 1;
    while (at >= start && set[text.charCodeAt(at)]) at--;
    if (at < start) {
      let end = start + least;
      while (end < text.length && set[text.charCodeAt(end)]) end++;
      runs.push([start, end]);
      at = end;
    }
    start = at + 1;
  }
  return runs;
}

/** Bytes, and where each of them begins and ends. */
export type PlacedBytes = { bytes: Uint8Array; startOf: (at: number) => number; endOf: (at: number) => number };

/** A layer of the parts that are text and long enough. */
export function layerOf(found: readonly PlacedBytes[], least: number, { spans }: Layer): Layer | undefined {
  const below = new Below(
    found.reduce((sum, { bytes }) => sum + bytes.length + 1, 0),
    spans,
  );
  for (const { bytes, startOf, endOf } of found) {
    let from = 0;
    for (let at = 0; at <= bytes.length; at++) {
      if (at < bytes.length && printable[bytes[at] as number]) continue;
      if (at - from >= least) {
        for (let each = from; each < at; each++) below.add(bytes[each] as number, startOf(each), endOf(each));
        below.add(between, startOf(at - 1), endOf(at - 1));
      }
      from = at + 1;
    }
  }
  return below.length === 0 ? undefined : below.finish();
}
