/** Marks in a row that are put into their canonical order; Unicode's Stream-Safe Text Format has the same limit. */
const mostMarks = 30;

/** Combining marks, and the other characters whose decomposition begins with one, of kana, Thai and Lao. */
const marks = String.raw`[\p{M}\uff9e\uff9f\u0e33\u0eb3]`;
const longRow = new RegExp(`(${marks}{${mostMarks}})(?=${marks})`, 'gu');
/** COMBINING GRAPHEME JOINER, which ends a row: no mark moves across it. */
const joiner = '\u034f';

/** Ligatures of whole phrases, which decompose into up to 18 characters. */
const phrases = /[\ufdfa\ufdfb]/g;
/** REPLACEMENT CHARACTER. */
const unknown = '\ufffd';

/** Other characters than these stay as they are in every form. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const ascii = /^[\u0000-\u007f]*$/;

/**
 * A text in a normalisation form (UAX #15), in a time that is proportional to its length. `String.prototype.normalize` takes
 * a time that grows with the square of the number of marks in a row, which nothing can interrupt. Here rows of more than
 * thirty are divided by U+034F, as by the Stream-Safe Text Format (UAX #15, 13), and two ligatures that stand for whole
 * phrases become U+FFFD.
 */
export function normalised(text: string, form: 'NFC' | 'NFKC' | 'NFKD'): string {
  if (ascii.test(text)) return text;
  return text.replaceAll(longRow, `$1${joiner}`).replaceAll(phrases, unknown).normalize(form);
}
