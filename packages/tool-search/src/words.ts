import { normalizeText } from '@toolhost/tool-config/normalized-text';

/** Words that carry no meaning about a tool's function. */
const stopWords = new Set(
  (
    'a an and any are as at be been by can could do does for from had has have how i if in into is it its let me my no not ' +
    'of on one or our out please s should so some t than that the their them then there these they this those to us via ' +
    'want was we were what when where which who whose will with would you your'
  ).split(' '),
);

/** Runs of letters and digits. A change from lowercase to uppercase, or between letters and digits, begins a word. */
const wordPattern = /\p{Lu}{2,}(?=\p{Lu}\p{Ll}|[^\p{L}]|$)|\p{Lu}?[\p{Ll}\p{M}]+|\p{Lu}+|[\p{Lo}\p{Lm}\p{M}]+|\p{N}+/gu;
/** Scripts without spaces between words. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
const maxWordLength = 40;

/** Returns the words of a text or of a name such as `listOpenIssues`, in lowercase, with repetitions. */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  for (const [match] of normalizeText(text, 'NFKC').matchAll(wordPattern)) {
    if (unspaced.test(match)) words.push(...toCharacterPairs(match));
    else words.push(match.slice(0, maxWordLength).toLowerCase());
  }
  return words;
}

/** Splits text without spaces between words into pairs of adjacent characters. */
function toCharacterPairs(text: string): string[] {
  const characters = [...text];
  if (characters.length < 2) return characters;
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`);
}

/** Returns the searchable terms of a text: the stems of its words. `stems` caches the stems of words. */
export function getTerms(text: string, stems: Map<string, string>): string[] {
  const terms: string[] = [];
  for (const word of splitWords(text)) {
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

/**
 * Returns the stem of an English word: "issues", "issued", and "issuing" become one term. The algorithm is from M. F.
 * Porter, "An algorithm for suffix stripping" (1980). The numbers of the steps are those of the paper.
 */
export function stem(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word;
  return step5(step4(step3(step2(step1(word)))));
}

const isConsonant = (word: string, at: number): boolean => {
  const letter = word[at] as string;
  if (letter === 'y') return at === 0 || !isConsonant(word, at - 1);
  return !'aeiou'.includes(letter);
};

/** Counts changes from a vowel to a consonant: m in the paper. */
function measure(text: string): number {
  let count = 0;
  for (let at = 1; at < text.length; at++) if (isConsonant(text, at) && !isConsonant(text, at - 1)) count++;
  return count;
}

function hasVowel(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (!isConsonant(text, at)) return true;
  return false;
}

const endsInDoubleConsonant = (text: string) =>
  text.length > 1 && text.at(-1) === text.at(-2) && isConsonant(text, text.length - 1);

/** Returns true if a text ends in consonant, vowel, consonant, and the last one is not w, x, or y. */
function endsInShortSyllable(text: string): boolean {
  const last = text.length - 1;
  if (last < 2 || 'wxy'.includes(text[last] as string)) return false;
  return isConsonant(text, last) && !isConsonant(text, last - 1) && isConsonant(text, last - 2);
}

/** Removes plural and participle suffixes. */
function step1(word: string): string {
  let text = word;
  if (/(?:ss|i)es$/.test(text)) text = text.slice(0, -2);
  else if (/[^s]s$/.test(text)) text = text.slice(0, -1);
  if (text.endsWith('eed')) {
    if (measure(text.slice(0, -3)) > 0) text = text.slice(0, -1);
  } else {
    const suffix = /(?:ed|ing)$/.exec(text)?.[0];
    if (suffix && hasVowel(text.slice(0, -suffix.length))) text = repairEnd(text.slice(0, -suffix.length));
  }
  return text.endsWith('y') && hasVowel(text.slice(0, -1)) ? `${text.slice(0, -1)}i` : text;
}

/** Repairs the end of a word after "ed" or "ing" was removed: "creat" becomes "create", "submitt" becomes "submit". */
function repairEnd(text: string): string {
  if (/(?:at|bl|iz)$/.test(text)) return `${text}e`;
  if (endsInDoubleConsonant(text) && !/[lsz]$/.test(text)) return text.slice(0, -1);
  return measure(text) === 1 && endsInShortSyllable(text) ? `${text}e` : text;
}

type Rules = readonly (readonly [suffix: string, replacement: string])[];

/** Parses pairs of a suffix and its replacement. */
function parseRules(text: string): Rules {
  return text.split(' ').map((pair) => pair.split(':') as [string, string]);
}

const rules2 = parseRules(
  'ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e ousli:ous ization:ize ' +
    'ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble logi:log',
);
const rules3 = parseRules('icate:ic ative: alize:al iciti:ic ical:ic ful: ness:');
const suffixes4 = /(?:ement|ance|ence|able|ible|ment|ant|ent|ism|ate|iti|ous|ive|ize|al|er|ic|ou|(?<=[st])ion)$/;

const step2 = (word: string) => replaceSuffix(word, rules2);
const step3 = (word: string) => replaceSuffix(word, rules3);

function replaceSuffix(word: string, rules: Rules): string {
  const rule = rules.find(([suffix]) => word.endsWith(suffix));
  const base = rule && word.slice(0, -rule[0].length);
  return rule && base !== undefined && measure(base) > 0 ? base + rule[1] : word;
}

function step4(word: string): string {
  const suffix = suffixes4.exec(word)?.[0];
  const base = suffix && word.slice(0, -suffix.length);
  return base && measure(base) > 1 ? base : word;
}

/** Removes a final e, and one l of a final double l. */
function step5(word: string): string {
  let text = word;
  if (text.endsWith('e')) {
    const base = text.slice(0, -1);
    const count = measure(base);
    if (count > 1 || (count === 1 && !endsInShortSyllable(base))) text = base;
  }
  return text.endsWith('ll') && measure(text) > 1 ? text.slice(0, -1) : text;
}
