/**
 * Maximum number of consecutive marks that are put into canonical order; Unicode's Stream-Safe Text Format has the same
 * limit.
 */
const mostMarks = 30;

/** Combining marks, and other characters whose decomposition begins with one, from kana, Thai, and Lao. */
const marks = String.raw`[\p{M}\uff9e\uff9f\u0e33\u0eb3]`;
const longRow = new RegExp(`(${marks}{${mostMarks}})(?=${marks})`, 'gu');
/** COMBINING GRAPHEME JOINER. It ends a run: no mark moves across it. */
const joiner = '\u034f';

/** Ligatures for whole phrases. They decompose into up to 18 characters. */
const phrases = /[\ufdfa\ufdfb]/g;
/** REPLACEMENT CHARACTER. */
const unknown = '\ufffd';

/** Matches text that has the same form in every normalization. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose
const ascii = /^[\u0000-\u007f]*$/;

/**
 * Normalizes a text (UAX #15) in time proportional to its length. `String.prototype.normalize` takes time that grows
 * with the square of the number of consecutive marks and cannot be interrupted. This function divides runs of more than
 * thirty marks with U+034F, as the Stream-Safe Text Format does (UAX #15, 13), and replaces two ligatures for whole
 * phrases with U+FFFD.
 */
export function normalised(text: string, form: 'NFC' | 'NFKC' | 'NFKD'): string {
  if (ascii.test(text)) return text;
  return text.replaceAll(longRow, `$1${joiner}`).replaceAll(phrases, unknown).normalize(form);
}
