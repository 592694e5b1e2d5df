/**
 * Compares parameter and header names in one place. Receivers read names differently: PHP writes `.` and space as `_`
 * and cuts at `[` and NUL; Rails and Express read `[name]` and `name[]` as `name`; Rack drops backslashes in multipart
 * names; ASP.NET and Java ignore case; some receivers decode twice. If any of them could read a name as one that
 * Toolhost sets itself, that name must not be sent next to it.
 */

import { normalizeText } from '../normalized-text.ts';
import { percentDecode } from './values.ts';

const maxDecodings = 5;

/** Matches an ASCII character in an overlong UTF-8 encoding of two to six bytes; the first group is its highest bit. */
const overlongPattern = /%(?:c|(?:e0|f0%80|f8%80%80|fc%80%80%80)%8)([01])%([89ab][0-9a-f])/gi;

/** Decodes percent-encoding as receivers do: UTF-8, including overlong encodings, `%uXXXX` of ASP, and `+`. */
function decodeOnce(text: string): string {
  const partlyDecoded = text
    .replaceAll('+', ' ')
    .replaceAll(overlongPattern, (_, high: string, low: string) =>
      String.fromCharCode((Number(high) << 6) | (Number.parseInt(low, 16) & 0x3f)),
    )
    .replaceAll(/%u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return partlyDecoded.includes('%') ? percentDecode(partlyDecoded).toString() : partlyDecoded;
}

/** Decodes a text until nothing changes, at most five times. */
export function decodeFully(text: string): string {
  let previous = text;
  for (let round = 0; round < maxDecodings; round++) {
    const next = decodeOnce(previous);
    if (next === previous) return next;
    previous = next;
  }
  return previous;
}

/** Folds full-width and accented letters to plain ones, lowers their case, and removes invisible characters. */
function toPlainLetters(text: string): string {
  const plainText = normalizeText(text, 'NFKD')
    .replaceAll(/[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .toUpperCase()
    .toLowerCase();
  return normalizeText(plainText, 'NFKD').replaceAll(/\p{M}/gu, '');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose
const outerBlankPattern = /^[\s\u0000-\u001f\u007f]+|(?<![\s\u0000-\u001f\u007f])[\s\u0000-\u001f\u007f]+$/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose
const controlPattern = /[\u0000-\u001f\u007f-\u009f]/g;

function toUnderscores(text: string): string {
  return text.replaceAll(outerBlankPattern, '').replaceAll(controlPattern, '').replaceAll(/[\s.]/gu, '_');
}

/** Returns the spelling that receivers agree on for a plain name, such as a name that Toolhost sets itself. */
export function foldName(name: string): string {
  return toUnderscores(toPlainLetters(decodeFully(name)));
}

/** A trie of names, so a text of any length is compared with all of them in one pass. */
type NameTrie = { readonly children: Map<number, NameTrie>; name?: string };

/**
 * Names that Toolhost sets itself, as receivers store them. The trie may contain more names than `folded`, so a name
 * that is found in the trie must also be in `folded`.
 */
export type OwnedNames = { folded: ReadonlySet<string>; trie: NameTrie };

export function toOwnedNames(names: readonly string[]): OwnedNames {
  const folded = new Set(names.flatMap(getStoredNames));
  return { folded, trie: buildTrie(folded) };
}

/**
 * Returns a function that selects some of the names and adds the names of `always`. Each name is folded only once, for
 * any number of calls.
 */
export function createOwnedNamesSelector(
  names: readonly string[],
  always: OwnedNames,
): (isIncluded: (index: number) => boolean) => OwnedNames {
  const storedNames = names.map(getStoredNames);
  const trie = buildTrie(always.folded.union(new Set(storedNames.flat())));
  return (isIncluded) => ({
    folded: always.folded.union(new Set(storedNames.filter((_, index) => isIncluded(index)).flat())),
    trie,
  });
}

/**
 * Returns the names under which receivers store a name. PHP stores `a[b]` as a part of `a`, so `a` would replace it;
 * others store it as `a.b`, which they also write as `a_b`.
 */
function getStoredNames(rawName: string): string[] {
  const name = foldName(rawName);
  const bracket = name.indexOf('[');
  if (bracket <= 0) return [name];
  return [name, name.slice(0, bracket), name.replaceAll('[', '_').replaceAll(']', '')];
}

function buildTrie(names: ReadonlySet<string>): NameTrie {
  const trie: NameTrie = { children: new Map() };
  for (const name of names) {
    let node = trie;
    for (let index = 0; index < name.length; index++) {
      const unit = name.charCodeAt(index);
      const next: NameTrie = node.children.get(unit) ?? { children: new Map() };
      node.children.set(unit, next);
      node = next;
    }
    node.name = name;
  }
  return trie;
}

const nul = 0;
const space = 0x20;
const dot = 0x2e;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const underscore = 0x5f;

const isControl = (unit: number) => unit < space || (unit >= 0x7f && unit < 0xa0);
const isBlank = (unit: number) =>
  unit <= space || unit === 0x7f || (unit > 0x7f && /\s/.test(String.fromCharCode(unit)));

/** Called for each name of the trie that a text contains. Returning `true` ends the search. */
type NameMatcher = (name: string) => boolean;

/**
 * Returns true if a receiver could read a matching name at the beginning of a decoded, folded text. With `text`, the
 * name must be the whole text; with `beginnings` it may also end before a `.`, a bracket, or a NUL; with `joined`, a
 * bracket counts as `_` or is ignored.
 */
function matchesBeginning(
  text: string,
  trie: NameTrie,
  isMatch: NameMatcher,
  mode: 'whole' | 'beginnings' | 'joined',
): boolean {
  const endsMatchingName = (node: NameTrie | undefined) => node?.name !== undefined && isMatch(node.name);
  // Node for all text read so far, and for that text without trailing blanks, which receivers ignore.
  let currentNode: NameTrie | undefined = trie;
  let trimmedNode: NameTrie | undefined = trie;
  let hasBegun = false;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (mode === 'beginnings' && (unit === dot || unit === openBracket || unit === closeBracket || unit === nul))
      if (endsMatchingName(trimmedNode)) return true;
    if (mode === 'joined' && unit === closeBracket) continue;
    if (isBlank(unit) && (!hasBegun || isControl(unit))) continue;
    const isUnderscore = unit === dot || isBlank(unit) || (mode === 'joined' && unit === openBracket);
    if (!isControl(unit)) currentNode = currentNode?.children.get(isUnderscore ? underscore : unit);
    if (isBlank(unit)) continue;
    hasBegun = true;
    trimmedNode = currentNode;
    if (!trimmedNode) return false;
  }
  return endsMatchingName(trimmedNode);
}

/** Returns true if a receiver could read a matching name in a decoded, folded text. Takes a few steps per character. */
function containsMatch(text: string, trie: NameTrie, isMatch: NameMatcher): boolean {
  // Semicolons separate pairs in old parsers. A name that is decoded twice can contain the other separators.
  const hasMatchInPart = (part: string) => {
    const inner = removeLeadingBrackets(part);
    // PHP writes an unclosed bracket as `_`; other receivers treat `a[b]` and `a.b` as one path.
    return (
      matchesBeginning(inner, trie, isMatch, 'beginnings') ||
      (inner.length < part.length && matchesBeginning(part, trie, isMatch, 'whole')) ||
      (/[[\]]/.test(inner) && matchesBeginning(inner, trie, isMatch, 'joined'))
    );
  };
  const hasMatchIn = (candidate: string) => candidate.split(/[&;=?#]/).some(hasMatchInPart);
  return hasMatchIn(text) || (text.includes('\\') && hasMatchIn(text.replaceAll('\\', '')));
}

/** Removes leading blanks and brackets. */
function removeLeadingBrackets(part: string): string {
  let from = 0;
  while (from < part.length && isBlank(part.charCodeAt(from))) from++;
  while (part.charCodeAt(from) === openBracket || part.charCodeAt(from) === closeBracket) from++;
  return part.slice(from);
}

/** Returns true if some receiver could read one of the names, encoded or not, as one of `owned`. */
export function isAnyReadAs(names: readonly string[], { folded, trie }: OwnedNames): boolean {
  if (folded.size === 0) return false;
  // All names are checked together, because each pass over a text has a fixed cost.
  return containsMatch(toPlainLetters(decodeFully(names.join('&'))), trie, (name) => folded.has(name));
}

/** Matches names that every receiver reads the same way, except for case. */
const simpleNamePattern = /^[A-Za-z0-9_-]*$/;

/** Returns true if some receiver could read `name` as one of `owned`. */
export function isReadAs(name: string, owned: OwnedNames): boolean {
  if (simpleNamePattern.test(name)) return owned.folded.has(name.toLowerCase());
  return isAnyReadAs([name], owned);
}

/** Comparison of names in the same query, form, or object. Names are identified by index. */
export type NameComparison = {
  folded: readonly string[];
  /**
   * Returns the indexes of the other names that a receiver could read as the same parameter, or as a part of it, so
   * that one would replace the other. `a[b]` and `a[c]` do not conflict: they are two parts of one parameter.
   */
  getConflicts(index: number): readonly number[];
};

/** Compares names of a query or a form. Decodes and reads each name only once, however many there are. */
export function compareParameterNames(names: readonly string[]): NameComparison {
  const texts = names.map((name) =>
    simpleNamePattern.test(name) ? name.toLowerCase() : toPlainLetters(decodeFully(name)),
  );
  const folded = texts.map(toUnderscores);
  const forms = folded.map((name) => [...new Set([name, name.replaceAll('[', '_').replaceAll(']', '')])]);
  const trie = names.every((name) => simpleNamePattern.test(name)) ? undefined : buildTrie(new Set(forms.flat()));
  const readings = texts.map((text) => {
    if (!trie || simpleNamePattern.test(text)) return [text];
    const matches = new Set<string>();
    containsMatch(text, trie, (name) => {
      matches.add(name);
      return false;
    });
    return [...matches];
  });
  const [indexesByForm, indexesByReading] = [groupIndexes(forms), groupIndexes(readings)];
  const findConflicts = (nameIndex: number) => {
    const hasConflict = new Uint8Array(names.length);
    for (const form of forms[nameIndex] ?? [])
      for (const index of indexesByReading.get(form) ?? []) hasConflict[index] = 1;
    for (const form of readings[nameIndex] ?? [])
      for (const index of indexesByForm.get(form) ?? []) hasConflict[index] = 1;
    hasConflict[nameIndex] = 0;
    const conflicts: number[] = [];
    for (let index = 0; index < names.length; index++) if (hasConflict[index] === 1) conflicts.push(index);
    return conflicts;
  };
  return { folded, getConflicts: memoizeByIndex(findConflicts) };
}

/** Compares names in JSON, where receivers can confuse only case and different spellings of the same letters. */
export function compareJsonNames(names: readonly string[]): NameComparison {
  const folded = names.map(foldName);
  const indexesByName = groupIndexes(folded.map((name) => [name]));
  return {
    folded,
    getConflicts: memoizeByIndex((nameIndex) =>
      (indexesByName.get(folded[nameIndex] ?? '') ?? []).filter((index) => index !== nameIndex),
    ),
  };
}

/** Returns, for each text, the indexes of the lists that contain it. */
function groupIndexes(lists: readonly (readonly string[])[]): ReadonlyMap<string, readonly number[]> {
  const indexes = new Map<string, number[]>();
  for (const [index, list] of lists.entries())
    for (const text of list) {
      const indexList = indexes.get(text);
      if (indexList) indexList.push(index);
      else indexes.set(text, [index]);
    }
  return indexes;
}

function memoizeByIndex(find: (index: number) => readonly number[]): NameComparison['getConflicts'] {
  const cache = new Map<number, readonly number[]>();
  return (index) => {
    const result = cache.get(index) ?? find(index);
    cache.set(index, result);
    return result;
  };
}

/** Returns the encoded names in a query string that some receiver could read as one of `owned`. */
export function findOwnedInQuery(query: string, owned: OwnedNames): string[] {
  if (!isAnyReadAs([query], owned)) return [];
  const names = query.split(/[&;]/).map((pair) => pair.replace(/=.*$/s, ''));
  const isOwned = new Map([...new Set(names)].map((name) => [name, isReadAs(name, owned)]));
  return names.filter((name) => name !== '' && isOwned.get(name));
}

/** Folds a header name. CGI and its descendants write every character except letters and digits as `_`. */
export function foldHeaderName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-');
}
