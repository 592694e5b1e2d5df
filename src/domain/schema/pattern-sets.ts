/** A set of characters in a pattern. */
export type CharacterSet = {
  isNegated: boolean;
  /** First and last code of each range, one after the other. */
  ranges: readonly number[];
  named: readonly NamedSet[];
};

export type NamedSet = (code: number) => boolean;

const isDigit = (code: number) => code >= 0x30 && code <= 0x39;
const isSpace = (code: number) => /\s/u.test(String.fromCodePoint(code));
const not =
  (set: NamedSet): NamedSet =>
  (code) =>
    !set(code);

/** ECMAScript's `\w`. */
export function isWordCharacter(code: number): boolean {
  return isDigit(code) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || code === 0x5f;
}

/** `\d` and the like, by their letter. */
export const escapedSets: ReadonlyMap<string, NamedSet> = new Map([
  ['d', isDigit],
  ['D', not(isDigit)],
  ['w', isWordCharacter],
  ['W', not(isWordCharacter)],
  ['s', isSpace],
  ['S', not(isSpace)],
]);

/** The properties of Unicode that a pattern may name; the tables of others take long to build. */
const properties: ReadonlyMap<string, RegExp> = new Map([
  ['L', /\p{L}/u],
  ['Letter', /\p{L}/u],
  ['Lu', /\p{Lu}/u],
  ['Ll', /\p{Ll}/u],
  ['Lt', /\p{Lt}/u],
  ['Lm', /\p{Lm}/u],
  ['Lo', /\p{Lo}/u],
  ['M', /\p{M}/u],
  ['Mn', /\p{Mn}/u],
  ['N', /\p{N}/u],
  ['Number', /\p{N}/u],
  ['Nd', /\p{Nd}/u],
  ['P', /\p{P}/u],
  ['Punctuation', /\p{P}/u],
  ['S', /\p{S}/u],
  ['Sc', /\p{Sc}/u],
  ['Z', /\p{Z}/u],
  ['Zs', /\p{Zs}/u],
  ['C', /\p{C}/u],
  ['Cc', /\p{Cc}/u],
  ['Alphabetic', /\p{Alphabetic}/u],
  ['Uppercase', /\p{Uppercase}/u],
  ['Lowercase', /\p{Lowercase}/u],
  ['Emoji', /\p{Emoji}/u],
  ['Script=Latin', /\p{Script=Latin}/u],
  ['Script=Greek', /\p{Script=Greek}/u],
  ['Script=Cyrillic', /\p{Script=Cyrillic}/u],
  ['Script=Han', /\p{Script=Han}/u],
  ['Script=Hiragana', /\p{Script=Hiragana}/u],
  ['Script=Katakana', /\p{Script=Katakana}/u],
  ['Script=Hangul', /\p{Script=Hangul}/u],
  ['Script=Arabic', /\p{Script=Arabic}/u],
  ['Script=Hebrew', /\p{Script=Hebrew}/u],
]);

export const propertyNames: readonly string[] = [...properties.keys()];

/** `\p{name}`, or `\P{name}` when it is negated; undefined for a property that a pattern may not name. */
export function propertySet(name: string, isNegated: boolean): NamedSet | undefined {
  const property = properties.get(name.replace(/^(gc|General_Category)=|^(sc)=/, (_, gc) => (gc ? '' : 'Script=')));
  return property && ((code) => property.test(String.fromCodePoint(code)) !== isNegated);
}

/** Whether a set has the character with this code. */
export function hasCode({ isNegated, ranges, named }: CharacterSet, code: number): boolean {
  for (let i = 0; i < ranges.length; i += 2) {
    if (code >= (ranges[i] as number) && code <= (ranges[i + 1] as number)) return !isNegated;
  }
  for (const set of named) if (set(code)) return !isNegated;
  return isNegated;
}

/** How many comparisons the test of one character may take. */
export function costOf({ ranges, named }: CharacterSet): number {
  return 1 + (ranges.length >> 4) + 4 * named.length;
}

/** `.` */
export const notLineEnd: CharacterSet = {
  isNegated: true,
  ranges: [0x0a, 0x0a, 0x0d, 0x0d, 0x2028, 0x2029],
  named: [],
};
