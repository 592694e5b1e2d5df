/** The names that HTML has for characters, as far as they may stand in a credential. */

/**
 * ASCII, by the table of HTML5. The names in capitals of some are other characters, so case counts. HTML has no name for
 * the hyphen of ASCII, nor for the tilde.
 */
const ascii =
  'Tab:\t NewLine:\n excl:! quot:" QUOT:" num:# dollar:$ percnt:% amp:& AMP:& apos:\' lpar:( rpar:) ast:* midast:* plus:+' +
  ' comma:, period:. sol:/ colon:: semi:; lt:< LT:< equals:= gt:> GT:> quest:? commat:@ lsqb:[ lbrack:[ bsol:\\ rsqb:]' +
  ' rbrack:] Hat:^ lowbar:_ UnderBar:_ grave:` DiacriticalGrave:` lcub:{ lbrace:{ verbar:| vert:| VerticalLine:| rcub:}' +
  ' rbrace:} fjlig:fj';

/** From U+00A0 to U+00FF. */
const latin =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para' +
  ' middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave' +
  ' Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc' +
  ' Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc' +
  ' iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml';

/** What only says where a line may break is nothing, and a blank that may not break is a blank. */
const invisible: readonly [name: string, meaning: string][] = [
  ['shy', ''],
  ['ZeroWidthSpace', ''],
  ['nbsp', ' '],
];

/** The meaning of each name in bytes of UTF-8. */
const meanings = new Map<string, Uint8Array>(
  [
    ...latin.split(' ').map((name, at): [string, string] => [name, String.fromCharCode(0xa0 + at)]),
    ...ascii.split(' ').map((entry): [string, string] => {
      const colon = entry.indexOf(':');
      return [entry.slice(0, colon), entry.slice(colon + 1)];
    }),
    ...invisible,
  ].map(([name, meaning]) => [name, Buffer.from(meaning)]),
);

const longestName = Math.max(...[...meanings.keys()].map(({ length }) => length));

// Some answers are in capitals.
for (const [name, bytes] of [...meanings])
  if (!meanings.has(name.toLowerCase())) meanings.set(name.toLowerCase(), bytes);

/** The name that begins at `at` and ends with a semicolon; undefined when HTML has none. */
export function findNamedCharacter(text: string, at: number): { bytes: Uint8Array; end: number } | undefined {
  let end = at;
  while (end - at <= longestName && isNameCharacter(text.charCodeAt(end))) end++;
  if (end === at || text[end] !== ';') return undefined;
  const name = text.slice(at, end);
  const bytes = meanings.get(name) ?? meanings.get(name.toLowerCase());
  return bytes && { bytes, end: end + 1 };
}

function isNameCharacter(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || (code >= 0x30 && code <= 0x39);
}
