/**
 * Maximum number of consecutive marks that are put into canonical order; Unicode's Stream-Safe Text Format has the same
 * limit.
 */
const maxConsecutiveMarks = 30;

/** Combining marks, and other characters whose decomposition begins with one, from kana, Thai, and Lao. */
const markPattern = String.raw`[\p{M}\uff9e\uff9f\u0e33\u0eb3]`;
const longRunPattern = new RegExp(`(${markPattern}{${maxConsecutiveMarks}})(?=${markPattern})`, 'gu');
/** COMBINING GRAPHEME JOINER. It ends a run: no mark moves across it. */
const joiner = '\u034f';

/** Ligatures for whole phrases. They decompose into up to 18 characters. */
const phraseLigatures = /[\ufdfa\ufdfb]/g;
/** REPLACEMENT CHARACTER. */
const replacementCharacter = '\ufffd';

/** Matches text that has the same form in every normalization. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose
const asciiPattern = /^[\u0000-\u007f]*$/;

/**
 * Normalizes a text (UAX #15) in time proportional to its length. `String.prototype.normalize` takes time that grows
 * with the square of the number of consecutive marks and cannot be interrupted. This function divides runs of more than
 * thirty marks with U+034F, as the Stream-Safe Text Format does (UAX #15, 13), and replaces two ligatures for whole
 * phrases with U+FFFD.
 */
export function normalizeText(text: string, form: 'NFC' | 'NFKC' | 'NFKD'): string {
  if (asciiPattern.test(text)) return text;
  return text
    .replaceAll(longRunPattern, `$1${joiner}`)
    .replaceAll(phraseLigatures, replacementCharacter)
    .normalize(form);
}
