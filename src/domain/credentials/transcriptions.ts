import { byteLists } from './byte-lists.ts';
import { digitAt, withoutCuts } from './escapes.ts';
import { Below } from './layer.ts';
import { layerOf, type PlacedBytes, runsOf, setOf, type Transcription } from './text-runs.ts';

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

export const transcriptions: readonly Transcription[] = [inLines, quotedPrintable, base64, byteLists];
