/**
 * Compares parameter and header names in one place. Receivers read names differently: PHP writes `.` and space as `_`
 * and cuts at `[` and NUL; Rails and Express read `[name]` and `name[]` as `name`; Rack drops backslashes in multipart
 * names; ASP.NET and Java ignore case; some receivers decode twice. If any of them could read a name as one that
 * Toolhost sets itself, that name must not be sent next to it.
 */

import { normalised } from '../normalised.ts';
import { percentDecoded } from './values.ts';

const maxDecodings = 5;

/** Matches an ASCII character in an overlong UTF-8 encoding of two to six bytes; the first group is its highest bit. */
const overlong = /%(?:c|(?:e0|f0%80|f8%80%80|fc%80%80%80)%8)([01])%([89ab][0-9a-f])/gi;

/** Decodes percent-encoding as receivers do: UTF-8, including overlong encodings, `%uXXXX` of ASP, and `+`. */
function decodedOnce(text: string): string {
  const rest = text
    .replaceAll('+', ' ')
    .replaceAll(overlong, (_, high: string, low: string) =>
      String.fromCharCode((Number(high) << 6) | (Number.parseInt(low, 16) & 0x3f)),
    )
    .replaceAll(/%u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return rest.includes('%') ? percentDecoded(rest).toString() : rest;
}

/** Decodes a text until nothing changes, at most five times. */
export function decoded(text: string): string {
  let before = text;
  for (let round = 0; round < maxDecodings; round++) {
    const after = decodedOnce(before);
    if (after === before) return after;
    before = after;
  }
  return before;
}

/** Folds full-width and accented letters to plain ones, lowers their case, and removes invisible characters. */
function plain(text: string): string {
  const base = normalised(text, 'NFKD')
    .replaceAll(/[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .toUpperCase()
    .toLowerCase();
  return normalised(base, 'NFKD').replaceAll(/\p{M}/gu, '');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose
const outerBlanks = /^[\s\u0000-\u001f\u007f]+|(?<![\s\u0000-\u001f\u007f])[\s\u0000-\u001f\u007f]+$/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose
const controls = /[\u0000-\u001f\u007f-\u009f]/g;

function underscored(text: string): string {
  return text.replaceAll(outerBlanks, '').replaceAll(controls, '').replaceAll(/[\s.]/gu, '_');
}

/** Returns the spelling that receivers agree on for a plain name, such as a name that Toolhost sets itself. */
export function foldedName(name: string): string {
  return underscored(plain(decoded(name)));
}

/** A trie of names, so a text of any length is compared with all of them in one pass. */
type NameTree = { readonly next: Map<number, NameTree>; name?: string };

/**
 * Names that Toolhost sets itself, as receivers store them. The trie may contain more names than `folded`, which
 * decides.
 */
export type OwnedNames = { folded: ReadonlySet<string>; tree: NameTree };

export function ownedNames(names: readonly string[]): OwnedNames {
  const folded = new Set(names.flatMap(heldNames));
  return { folded, tree: treeOf(folded) };
}

/**
 * Returns a function that selects, for each name, the others, and adds the names of `always`. Each name is folded once,
 * regardless of the number of others.
 */
export function ownedBesides(
  names: readonly string[],
  always: OwnedNames,
): (isOther: (index: number) => boolean) => OwnedNames {
  const held = names.map(heldNames);
  const tree = treeOf(always.folded.union(new Set(held.flat())));
  return (isOther) => ({
    folded: always.folded.union(new Set(held.filter((_, index) => isOther(index)).flat())),
    tree,
  });
}

/**
 * Returns the names under which receivers store a name. PHP stores `a[b]` as a part of `a`, so `a` would replace it;
 * others store it as `a.b`, which they also write as `a_b`.
 */
function heldNames(given: string): string[] {
  const name = foldedName(given);
  const bracket = name.indexOf('[');
  if (bracket <= 0) return [name];
  return [name, name.slice(0, bracket), name.replaceAll('[', '_').replaceAll(']', '')];
}

function treeOf(names: ReadonlySet<string>): NameTree {
  const tree: NameTree = { next: new Map() };
  for (const name of names) {
    let node = tree;
    for (let at = 0; at < name.length; at++) {
      const unit = name.charCodeAt(at);
      const next: NameTree = node.next.get(unit) ?? { next: new Map() };
      node.next.set(unit, next);
      node = next;
    }
    node.name = name;
  }
  return tree;
}

const nul = 0;
const space = 0x20;
const dot = 0x2e;
const opening = 0x5b;
const closing = 0x5d;
const underscore = 0x5f;

const isControl = (unit: number) => unit < space || (unit >= 0x7f && unit < 0xa0);
const isBlank = (unit: number) =>
  unit <= space || unit === 0x7f || (unit > 0x7f && /\s/.test(String.fromCharCode(unit)));

/** Receives a name of the trie that was read. Returning `true` ends the search. */
type NameTest = (name: string) => boolean;

/**
 * Returns true if a receiver could read a matching name at the beginning of a decoded, folded text. With `whole`, the
 * name must be the whole text; with `beginnings` it may also end before a `.`, a bracket, or a NUL; with `joined`, a
 * bracket counts as `_` or is ignored.
 */
function beginsWith(text: string, tree: NameTree, isWanted: NameTest, as: 'whole' | 'beginnings' | 'joined'): boolean {
  const isFound = (node: NameTree | undefined) => node?.name !== undefined && isWanted(node.name);
  // Node for all text read so far, and for that text without trailing blanks, which receivers ignore.
  let read: NameTree | undefined = tree;
  let trimmed: NameTree | undefined = tree;
  let isBegun = false;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (as === 'beginnings' && (unit === dot || unit === opening || unit === closing || unit === nul))
      if (isFound(trimmed)) return true;
    if (as === 'joined' && unit === closing) continue;
    if (isBlank(unit) && (!isBegun || isControl(unit))) continue;
    const isSign = unit === dot || isBlank(unit) || (as === 'joined' && unit === opening);
    if (!isControl(unit)) read = read?.next.get(isSign ? underscore : unit);
    if (isBlank(unit)) continue;
    isBegun = true;
    trimmed = read;
    if (!trimmed) return false;
  }
  return isFound(trimmed);
}

/** Returns true if a receiver could read a matching name in a decoded, folded text. Takes a few steps per character. */
function holdsWanted(text: string, tree: NameTree, isWanted: NameTest): boolean {
  // Semicolons separate pairs in old parsers. A name that is decoded twice can contain the other separators.
  const isInPiece = (piece: string) => {
    const inner = withoutBeginning(piece);
    // PHP writes an unclosed bracket as `_`; other receivers treat `a[b]` and `a.b` as one path.
    return (
      beginsWith(inner, tree, isWanted, 'beginnings') ||
      (inner.length < piece.length && beginsWith(piece, tree, isWanted, 'whole')) ||
      (/[[\]]/.test(inner) && beginsWith(inner, tree, isWanted, 'joined'))
    );
  };
  const isIn = (one: string) => one.split(/[&;=?#]/).some(isInPiece);
  return isIn(text) || (text.includes('\\') && isIn(text.replaceAll('\\', '')));
}

/** Removes leading blanks and brackets. */
function withoutBeginning(piece: string): string {
  let from = 0;
  while (from < piece.length && isBlank(piece.charCodeAt(from))) from++;
  while (piece.charCodeAt(from) === opening || piece.charCodeAt(from) === closing) from++;
  return piece.slice(from);
}

/** Returns true if some receiver could read one of these names, which need not be encoded, as one of `owned`. */
export function areReadAs(names: readonly string[], { folded, tree }: OwnedNames): boolean {
  if (folded.size === 0) return false;
  // All names are checked together, because each pass over a text has a fixed cost.
  return holdsWanted(plain(decoded(names.join('&'))), tree, (name) => folded.has(name));
}

/** Matches names that every receiver reads the same way, except for case. */
const simple = /^[A-Za-z0-9_-]*$/;

/** Returns true if some receiver could read `name` as one of `owned`. */
export function isReadAs(name: string, owned: OwnedNames): boolean {
  if (simple.test(name)) return owned.folded.has(name.toLowerCase());
  return areReadAs([name], owned);
}

/** Comparison of names in the same query, form, or object. Names are identified by index. */
export type NamesBeside = {
  folded: readonly string[];
  /**
   * Returns the indexes of the other names that a receiver could read as the same parameter as this one, or that
   * contain it or are contained in it. One of the two would then replace the other. `a[b]` and `a[c]` are two parts of
   * one parameter.
   */
  alike(at: number): readonly number[];
};

/** Compares names of a query or a form. Each is decoded and read once, regardless of the number of others. */
export function namesBeside(names: readonly string[]): NamesBeside {
  const texts = names.map((name) => (simple.test(name) ? name.toLowerCase() : plain(decoded(name))));
  const folded = texts.map(underscored);
  const forms = folded.map((name) => [...new Set([name, name.replaceAll('[', '_').replaceAll(']', '')])]);
  const tree = names.every((name) => simple.test(name)) ? undefined : treeOf(new Set(forms.flat()));
  const read = texts.map((text) => {
    if (!tree || simple.test(text)) return [text];
    const found = new Set<string>();
    holdsWanted(text, tree, (name) => {
      found.add(name);
      return false;
    });
    return [...found];
  });
  const [holders, readers] = [placesOf(forms), placesOf(read)];
  const alikeAt = (at: number) => {
    const isAlike = new Uint8Array(names.length);
    for (const form of forms[at] ?? []) for (const place of readers.get(form) ?? []) isAlike[place] = 1;
    for (const form of read[at] ?? []) for (const place of holders.get(form) ?? []) isAlike[place] = 1;
    isAlike[at] = 0;
    const places: number[] = [];
    for (let place = 0; place < names.length; place++) if (isAlike[place] === 1) places.push(place);
    return places;
  };
  return { folded, alike: onceEach(alikeAt) };
}

/** Compares names in JSON, where receivers can confuse only case and different spellings of the same letters. */
export function sameNames(names: readonly string[]): NamesBeside {
  const folded = names.map(foldedName);
  const places = placesOf(folded.map((name) => [name]));
  return { folded, alike: onceEach((at) => (places.get(folded[at] ?? '') ?? []).filter((place) => place !== at)) };
}

/** Returns, for each text, the indexes of the lists that contain it. */
function placesOf(lists: readonly (readonly string[])[]): ReadonlyMap<string, readonly number[]> {
  const places = new Map<string, number[]>();
  for (const [at, list] of lists.entries())
    for (const text of list) {
      const found = places.get(text);
      if (found) found.push(at);
      else places.set(text, [at]);
    }
  return places;
}

function onceEach(find: (at: number) => readonly number[]): NamesBeside['alike'] {
  const found = new Map<number, readonly number[]>();
  return (at) => {
    const known = found.get(at) ?? find(at);
    found.set(at, known);
    return known;
  };
}

/** Returns the encoded names in a query string that some receiver could read as one of `owned`. */
export function ownedInQuery(query: string, owned: OwnedNames): string[] {
  if (!areReadAs([query], owned)) return [];
  const names = query.split(/[&;]/).map((pair) => pair.replace(/=.*$/s, ''));
  const read = new Map([...new Set(names)].map((name) => [name, isReadAs(name, owned)]));
  return names.filter((name) => name !== '' && read.get(name));
}

/** Folds a header name. CGI and its descendants write every character except letters and digits as `_`. */
export function foldedHeader(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-');
}
