/**
 * The one comparison of parameter and header names. Receivers read names differently: PHP writes `.` and space as `_` and
 * cuts at `[` and NUL, Rails and Express read `[name]` and `name[]` as `name`, Rack drops the backslashes in names of
 * multipart, ASP.NET and Java ignore case, some decode twice. A name that any of them could read as one that the service sets itself must not be sent beside it.
 */

import { percentDecoded } from './percent-encoding.ts';

const maxDecodings = 5;

/** An ASCII character in two to six bytes of UTF-8, where one is enough; the first group is its highest bit. */
const overlong = /%(?:c|(?:e0|f0%80|f8%80%80|fc%80%80%80)%8)([01])%([89ab][0-9a-f])/gi;

/** Decodes percent-encoding as receivers do: UTF-8, also in more bytes than it needs, `%uXXXX` of ASP, and `+`. */
function decodedOnce(text: string): string {
  const rest = text
    .replaceAll('+', ' ')
    .replaceAll(overlong, (_, high: string, low: string) =>
      String.fromCharCode((Number(high) << 6) | (Number.parseInt(low, 16) & 0x3f)),
    )
    .replaceAll(/%u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return rest.includes('%') ? percentDecoded(rest).toString() : rest;
}

/** A text decoded until nothing changes, five times at most. */
export function decoded(text: string): string {
  let before = text;
  for (let round = 0; round < maxDecodings; round++) {
    const after = decodedOnce(before);
    if (after === before) return after;
    before = after;
  }
  return before;
}

/** Full-width and accented letters as plain ones, in lower case, without what is not visible. */
function plain(text: string): string {
  return text
    .normalize('NFKD')
    .replaceAll(/[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const outerBlanks = /^[\s\u0000-\u001f\u007f]+|[\s\u0000-\u001f\u007f]+$/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controls = /[\u0000-\u001f\u007f-\u009f]/g;

function underscored(text: string): string {
  return text.replaceAll(outerBlanks, '').replaceAll(controls, '').replaceAll(/[\s.]/gu, '_');
}

/** The spelling that receivers agree on for a plain name, such as one that the service sets itself. */
export function foldedName(name: string): string {
  return underscored(plain(decoded(name)));
}

/** Names by their letters, so that a text of any length is compared with all of them at once. */
type NameTree = { readonly next: Map<number, NameTree>; name?: string };

/** Names that the service sets itself, as receivers hold them. The tree may have more names than count. */
export type OwnedNames = { folded: ReadonlySet<string>; tree: NameTree };

export function ownedNames(names: readonly string[]): OwnedNames {
  const folded = new Set(names.flatMap(heldNames));
  return { folded, tree: treeOf(folded) };
}

/** For each of the names the others, and what `always` has. A name is folded once, however many others there are. */
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

/** PHP holds `a[b]` as a part of `a`, so `a` would replace it; others hold it as `a.b`, which they also write as `a_b`. */
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

/**
 * Whether a receiver could read an owned name at the beginning of a decoded, folded text: in all of it, with `beginnings`
 * also in what stands before a `.`, a bracket or a NUL. With `joined` a bracket is written as `_` or not at all.
 */
function beginsOwned(text: string, { folded, tree }: OwnedNames, as: 'whole' | 'beginnings' | 'joined'): boolean {
  const isOwned = (node: NameTree | undefined) => node?.name !== undefined && folded.has(node.name);
  // The place of all that was read, and that without the blanks at its end, which receivers leave out.
  let read: NameTree | undefined = tree;
  let trimmed: NameTree | undefined = tree;
  let isBegun = false;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (as === 'beginnings' && (unit === dot || unit === opening || unit === closing || unit === nul))
      if (isOwned(trimmed)) return true;
    if (as === 'joined' && unit === closing) continue;
    if (isBlank(unit) && (!isBegun || isControl(unit))) continue;
    const isSign = unit === dot || isBlank(unit) || (as === 'joined' && unit === opening);
    if (!isControl(unit)) read = read?.next.get(isSign ? underscore : unit);
    if (isBlank(unit)) continue;
    isBegun = true;
    trimmed = read;
    if (!trimmed) return false;
  }
  return isOwned(trimmed);
}

/** Whether a receiver could read an owned name in a decoded, folded text. That takes a few steps for each character. */
function holdsOwned(text: string, owned: OwnedNames): boolean {
  // Semicolons separate pairs in old parsers; a name that is decoded twice can hold the other separators.
  return text.split(/[&;=?#]/).some((piece) => {
    const inner = withoutBeginning(piece);
    // PHP writes a bracket that is not closed as `_`; `a[b]` and `a.b` are one path to others.
    return (
      beginsOwned(inner, owned, 'beginnings') ||
      (inner.length < piece.length && beginsOwned(piece, owned, 'whole')) ||
      (/[[\]]/.test(inner) && beginsOwned(inner, owned, 'joined'))
    );
  });
}

/** Without the brackets at the beginning, and the blanks before them. */
function withoutBeginning(piece: string): string {
  let from = 0;
  while (from < piece.length && isBlank(piece.charCodeAt(from))) from++;
  while (piece.charCodeAt(from) === opening || piece.charCodeAt(from) === closing) from++;
  return piece.slice(from);
}

/** Whether some receiver could read one of these names, which need not be encoded, as one of `owned`. */
export function areReadAs(names: readonly string[], owned: OwnedNames): boolean {
  if (owned.folded.size === 0) return false;
  // All at once, because each pass over a text has a price of its own.
  const text = plain(decoded(names.join('&')));
  return holdsOwned(text, owned) || (text.includes('\\') && holdsOwned(text.replaceAll('\\', ''), owned));
}

/** Whether some receiver could read `name` as one of `owned`. */
export function isReadAs(name: string, owned: OwnedNames): boolean {
  if (/^[A-Za-z0-9_-]*$/.test(name)) return owned.folded.has(name.toLowerCase());
  return areReadAs([name], owned);
}

/**
 * For each name the first of `others` that a receiver could read as the same parameter, or that has it as a part or is a
 * part of it: one of the two then takes the place of the other. `a[b]` and `a[c]` are two parts of one parameter.
 */
export function readAlike(names: readonly string[], others: readonly string[]): (string | undefined)[] {
  const [ofNames, ofOthers] = [exactly(names), exactly(others)];
  // Nearly always none is, which two looks at all of them together tell.
  if (!areReadAs(names, ofOthers) && !areReadAs(others, ofNames)) return names.map(() => undefined);
  // A pair of names is compared only where one of the two is read as one of all the others.
  const around = others.map((other) => isReadAs(other, ofNames));
  const exact = others.map((other) => exactly([other]));
  return names.map((name) => {
    const isInside = isReadAs(name, ofOthers);
    const own = exactly([name]);
    return others.find(
      (other, at) =>
        (isInside && isReadAs(name, exact[at] as OwnedNames)) || (around[at] === true && isReadAs(other, own)),
    );
  });
}

/** Names without what they would be parts of. */
function exactly(names: readonly string[]): OwnedNames {
  const folded = new Set(
    names.map(foldedName).flatMap((name) => [name, name.replaceAll('[', '_').replaceAll(']', '')]),
  );
  return { folded, tree: treeOf(folded) };
}

/** Encoded names in a query string that some receiver could read as one of `owned`. */
export function ownedInQuery(query: string, owned: OwnedNames): string[] {
  if (!areReadAs([query], owned)) return [];
  const names = query.split(/[&;]/).map((pair) => pair.replace(/=.*$/s, ''));
  const read = new Map([...new Set(names)].map((name) => [name, isReadAs(name, owned)]));
  return names.filter((name) => name !== '' && read.get(name));
}

/** A query string without its `?` and without the pairs that could be read as one of `owned`. */
export function withoutOwned(query: string, owned: OwnedNames): string {
  const kept = query.split('&').filter((pair) => ownedInQuery(pair, owned).length === 0);
  return kept.join('&');
}

/** CGI and its descendants write every character of a header name except letters and digits as `_`. */
export function foldedHeader(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-');
}
