/**
 * The one comparison of parameter and header names. Receivers read names differently: PHP writes `.` and space as `_` and
 * cuts at `[` and NUL, Rails and Express read `[name]` and `name[]` as `name`, ASP.NET and Java ignore case, some decode
 * twice. A name that any of them could read as one that the service sets itself must not be sent beside it.
 */

const maxDecodings = 5;

/** Decodes percent-encoding as receivers do: UTF-8, two bytes for an ASCII character, `%uXXXX` of ASP, and `+`. */
function decodedOnce(text: string): string {
  return text
    .replaceAll('+', ' ')
    .replaceAll(/%c([01])%([89ab][0-9a-f])/gi, (_, high: string, low: string) =>
      String.fromCharCode((Number(high) << 6) | (Number.parseInt(low, 16) & 0x3f)),
    )
    .replaceAll(/%u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/(?:%[0-9a-f]{2})+/gi, (bytes) => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString('utf8'));
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

/** Every name that a receiver could read in a decoded, folded name. */
function readings(name: string): Set<string> {
  const found = new Set<string>();
  // Semicolons separate pairs in old parsers; a name that is decoded twice can hold the other separators.
  for (const piece of name.split(/[&;=?#]/)) {
    const inner = piece.replaceAll(outerBlanks, '').replace(/^[[\]]+/, '');
    // PHP writes a bracket that is not closed as `_`; `a[b]` and `a.b` are one path to others.
    for (const text of [piece, inner, inner.replaceAll('[', '_').replaceAll(']', '')]) found.add(underscored(text));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: PHP ends a name at a NUL
    for (const { index } of inner.matchAll(/[.[\]\u0000]/g)) found.add(underscored(inner.slice(0, index)));
  }
  return found;
}

/** Names that the service sets itself, as `isReadAs` compares them: folded, and by their letters and digits. */
export type OwnedNames = { folded: ReadonlySet<string>; letters: readonly string[] };

export function ownedNames(names: readonly string[]): OwnedNames {
  const folded = new Set(names.map(foldedName).flatMap(asReceiversHold));
  return { folded, letters: [...folded].map(lettersOf) };
}

/** PHP holds `a[b]` as a part of `a`, so `a` would replace it; others hold it as `a.b`, which readings write as `a_b`. */
function asReceiversHold(name: string): string[] {
  const bracket = name.indexOf('[');
  if (bracket <= 0) return [name];
  return [name, name.slice(0, bracket), name.replaceAll('[', '_').replaceAll(']', '')];
}

function lettersOf(text: string): string {
  return text.replaceAll(/[^a-z0-9]/g, '');
}

/** Whether a decoded, folded text contains the letters of an owned name; hardly any text does. */
function hasLettersOf(text: string, owned: OwnedNames): boolean {
  const letters = lettersOf(text);
  return owned.letters.some((own) => letters.includes(own));
}

/** No receiver needs a longer name; a longer one with the letters of an owned name counts as that name. */
const maxOddName = 300;

/** Whether some receiver could read `name` as one of `owned`. */
export function isReadAs(name: string, owned: OwnedNames): boolean {
  if (/^[A-Za-z0-9_-]*$/.test(name)) return owned.folded.has(name.toLowerCase());
  const text = plain(decoded(name));
  if (!hasLettersOf(text, owned)) return false;
  if (name.length > maxOddName) return true;
  for (const reading of readings(text)) if (owned.folded.has(reading)) return true;
  return false;
}

/** Encoded names in a query string that some receiver could read as one of `owned`. */
export function ownedInQuery(query: string, owned: OwnedNames): string[] {
  // Once for all pairs, so that a query of thousands of odd names costs no more than one.
  if (!hasLettersOf(plain(decoded(query)), owned)) return [];
  return query
    .split(/[&;]/)
    .map((pair) => pair.replace(/=.*$/s, ''))
    .filter((name) => name !== '' && isReadAs(name, owned));
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
