import { Below, type Layer } from './layer.ts';
import { setOf } from './text-runs.ts';

/**
 * Escapes that no text has by chance where it has a credential: percent-encoding, escapes of JSON and of programming
 * languages, characters of HTML, UTF-16, and what cuts a long text into lines.
 */

const hasEscape = /[%\\&\0\t\r\n]|<w?br/i;

const code = {
  percent: 0x25,
  ampersand: 0x26,
  backslash: 0x5c,
  u: 0x75,
  U: 0x55,
  x: 0x78,
  hash: 0x23,
  open: 0x7b,
  tag: 0x3c,
  b: 0x62,
  w: 0x77,
};
const blank = 0x20;
const controls = new Map([
  [0x6e, 0x0a],
  [0x72, 0x0d],
  [0x74, 0x09],
]);

/** The layer below: each escape replaced by its character. Undefined where there is none. */
export function withoutEscapes(layer: Layer): Layer | undefined {
  return hasEscape.test(layer.raw) ? without(layer, isEscape, readEscape) : undefined;
}

/** The beginning of an escape, behind which a line ends. */
const hasCutEscape = /[%\\&=][\w#{]{0,18}(?:\\?[\0\t\r\n]|<w?br)/i;

/**
 * The layers below, without what cuts a text into lines, where that cuts an escape. A backslash at the end of a line is
 * such a cut in one of them, and the beginning of an escape in the other.
 */
export function withoutCuts(layer: Layer): Layer[] {
  if (!hasCutEscape.test(layer.raw)) return [];
  const layers = [without(layer, isCut, endOfCut), without(layer, isCutOrBackslash, endOfCutLine)];
  return layers.filter((found) => found !== undefined);
}

function without(
  { raw, spans }: Layer,
  isFirst: Uint8Array,
  read: (text: string, at: number, below: Below) => number,
): Layer | undefined {
  const below = new Below(raw.length, spans);
  for (let at = 0; at < raw.length; ) {
    const first = raw.charCodeAt(at);
    const end = isFirst[first] ? read(raw, at, below) : at;
    if (end === at) below.add(first, at, ++at);
    else at = end;
  }
  return below.length === raw.length ? undefined : below.finish();
}

const isEscape = setOf(/[%\\&\0\t\r\n<]/);
const isCut = setOf(/[\0\t\r\n<]/);
const isCutOrBackslash = setOf(/[\\\0\t\r\n<]/);

/** Adds the meaning of the escape that begins here, and gives its end; `at` when there is none. */
function readEscape(text: string, at: number, below: Below): number {
  const first = text.charCodeAt(at);
  if (first === code.ampersand) return readCharacter(text, at, below);
  if (first === code.backslash) return readBackslash(text, at, below);
  if (first !== code.percent) return endOfCut(text, at);
  // `%u0074`, as old scripts write it.
  if (lower(text.charCodeAt(at + 1)) === code.u) {
    const value = number(text, at + 2, 4, 16);
    if (value >= 0) return below.put(value, at, at + 6);
  }
  const byte = number(text, at + 1, 2, 16);
  return byte < 0 ? at : below.add(byte, at, at + 3);
}

/** NUL, tabs and line breaks mean nothing. */
function endOfCut(text: string, at: number): number {
  return text.charCodeAt(at) === code.tag ? endOfBreak(text, at) : endOfFold(text, at);
}

function endOfCutLine(text: string, at: number): number {
  if (text.charCodeAt(at) !== code.backslash) return endOfCut(text, at);
  return isLineBreak(text.charCodeAt(at + 1)) ? endOfFold(text, at + 1) : at;
}

function isLineBreak(character: number): boolean {
  return character === 0x0a || character === 0x0d;
}

/** Behind a line break blanks are how far the next line is indented. */
function endOfFold(text: string, at: number): number {
  let end = at + 1;
  if (!isLineBreak(text.charCodeAt(at))) return end;
  for (
    let next = text.charCodeAt(end);
    next === blank || next === 0x09 || isLineBreak(next);
    next = text.charCodeAt(end)
  )
    end++;
  return end;
}

const longestBreak = 8;

/** `<wbr>` and `<br />` mean no more than a line break. */
function endOfBreak(text: string, at: number): number {
  const second = lower(text.charCodeAt(at + 1));
  if (second !== code.b && second !== code.w) return at;
  const tag = /^<w?br ?\/?>/i.exec(text.slice(at, at + longestBreak));
  return tag ? at + tag[0].length : at;
}

/** Digits of `\u{74}`. A brace that never closes is not looked for in the whole text, again for each escape. */
const mostInBraces = 8;

function readBackslash(text: string, at: number, below: Below): number {
  const second = text.charCodeAt(at + 1);
  if (at + 1 === text.length) return at;
  // A text of several lines in YAML, C and shells.
  if (isLineBreak(second)) return endOfFold(text, at + 1);
  const kind = lower(second);
  if ((kind === code.u || kind === code.x) && text.charCodeAt(at + 2) === code.open) {
    const digits = text.slice(at + 3, at + 3 + mostInBraces + 1).indexOf('}');
    const value = number(text, at + 3, digits, 16);
    if (value >= 0) return below.put(value, at, at + digits + 4);
  }
  for (const digits of second === code.U ? [8, 4] : [kind === code.u ? 4 : 2]) {
    const value = kind === code.u || kind === code.x ? number(text, at + 2, digits, 16) : -1;
    if (value < 0) continue;
    return kind === code.x ? below.add(value, at, at + 4) : below.put(value, at, at + 2 + digits);
  }
  const octal = number(text, at + 1, 3, 8);
  if (octal >= 0) return below.add(octal & 0xff, at, at + 4);
  return below.add(controls.get(kind) ?? second, at, at + 2);
}

const longestNumber = 9;

/** `&#116;`, `&#x74;` and `&lt;`; some leave out the semicolon of a number. */
function readCharacter(text: string, at: number, below: Below): number {
  if (text.charCodeAt(at + 1) !== code.hash) {
    const named = findNamedCharacter(text, at + 1);
    return named ? below.addAll(named.bytes, at, named.end) : at;
  }
  const isHex = lower(text.charCodeAt(at + 2)) === code.x;
  const from = at + 2 + Number(isHex);
  const base = isHex ? 16 : 10;
  let end = from;
  while (end - from < longestNumber && number(text, end, 1, base) >= 0) end++;
  if (end === from) return at;
  return below.put(number(text, from, end - from, base), at, text[end] === ';' ? end + 1 : end);
}

/** A letter in lower case; of other characters another one. */
function lower(character: number): number {
  return character | 0x20;
}

/** A number of so many digits, or -1. */
function number(text: string, from: number, digits: number, base: number): number {
  if (digits <= 0) return -1;
  let value = 0;
  for (let at = from; at < from + digits; at++) {
    const digit = digitAt(text, at);
    if (!(digit < base)) return -1;
    value = value * base + digit;
  }
  return value;
}

/** The value of a digit, up to that of `z`; NaN behind the end of the text. */
export function digitAt(text: string, at: number): number {
  const character = text.charCodeAt(at);
  if (character <= 0x39) return character >= 0x30 ? character - 0x30 : 99;
  const letter = lower(character);
  return letter >= 0x61 && letter <= 0x7a && character >= 0x41 ? letter - 0x57 : Number.NaN;
}

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
function findNamedCharacter(text: string, at: number): { bytes: Uint8Array; end: number } | undefined {
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
