import { normalised } from '../normalised.ts';
import { stem } from './stem.ts';

/** Words that say nothing about what a tool does. */
const stopWords = new Set(
  (
    'a an and any are as at be been by can could do does for from had has have how i if in into is it its let me my no not ' +
    'of on one or our out please s should so some t than that the their them then there these they this those to us via ' +
    'want was we were what when where which who whose will with would you your'
  ).split(' '),
);

/** Runs of letters and digits; a change from small to capital letters, or between letters and digits, begins a word. */
const wordPattern = /\p{Lu}{2,}(?=\p{Lu}\p{Ll}|[^\p{L}]|$)|\p{Lu}?[\p{Ll}\p{M}]+|\p{Lu}+|[\p{Lo}\p{Lm}\p{M}]+|\p{N}+/gu;
/** Scripts that are written without spaces. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
const longestWord = 40;

/** The words of a text or a name such as `listOpenIssues`, in small letters, with repetitions. */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const [found] of normalised(text, 'NFKC').matchAll(wordPattern)) {
    if (unspaced.test(found)) words.push(...pairsOf(found));
    else words.push(found.slice(0, longestWord).toLowerCase());
  }
  return words;
}

/** Where no space divides words, each two neighbouring characters are one. */
function pairsOf(text: string): string[] {
  const characters = [...text];
  if (characters.length < 2) return characters;
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`);
}

/** The terms of a text that are searched for: stems of its words. `stems` remembers those of words seen before. */
export function termsOf(text: string, stems: Map<string, string>): string[] {
  const terms: string[] = [];
  for (const word of wordsOf(text)) {
    if (stopWords.has(word)) continue;
    let term = stems.get(word);
    if (term === undefined) {
      term = stem(word);
      stems.set(word, term);
    }
    terms.push(term);
  }
  return terms;
}
