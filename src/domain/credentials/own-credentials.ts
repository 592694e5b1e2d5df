import { holdsKeyBody, isKeyBody } from './api-key.ts';

/**
 * Finds one of our credentials inside a text that would be sent to an upstream, in any wrapping: quoted, behind a name,
 * with a damaged prefix, in another case, with or without separators between its characters, backwards,
 * percent-encoded, escaped, in Base64, Base32 or hex, and in any nesting of these.
 *
 * The rule: the letters and digits of a text contain no part whose checksum makes it a key, and the same is true of every
 * decoded form of the text, until there is nothing left to decode.
 */

const idLength = 12;
const keyLength = 49;
const tokenLength = 43;
/** Length of an access token, `tha_…`; no shorter text holds a credential or decodes to one. */
const shortest = 4 + tokenLength;
const shortestBase64 = Math.ceil((shortest * 4) / 3);
const shortestBase32 = Math.ceil((shortest * 8) / 5);
/**
 * Most characters searched for one text, its decoded forms included: about sixteen times the size of a header. They are
 * counted before a form is made.
 */
const mostCharacters = 256 * 1024;
/** A text of at most this many characters is also searched backwards, and as one run of Base64. */
const mostOfSuspicious = 2048;

/**
 * Keys, access and refresh tokens, wrapped refresh tokens and clients; also as a keyboard writes them with a capital, or in
 * capitals. Of the random tokens of other issuers one in a million begins so; with any letter in any case it would be one in
 * 80,000.
 */
const ourBeginning = /^(?:[Tt]h[akrpc]|TH[AKRPC])_/;

/** Whether a credential begins like one of ours, valid or not. */
export function looksLikeOurs(credential: string): boolean {
  return ourBeginning.test(credential);
}

/** Characters that may still be searched, decoded forms included. */
type Work = { left: number };

/** Whether a credential is one of ours or holds one. A text with more layers than can be searched counts as one. */
export function holdsOurCredential(credential: string): boolean {
  return looksLikeOurs(credential) || isWrapped(credential, { left: mostCharacters });
}

/**
 * Whether one of many texts holds a whole credential; one that only begins like ours is a text as any other. They are
 * decoded one after the other until together they were too much work; from then on a credential is found in its plain
 * form only.
 */
export function findOurCredential(): (text: string) => boolean {
  const work: Work = { left: mostCharacters };
  return (text) => {
    if (isWrapped(text, work) && work.left >= 0) return true;
    return work.left < 0 && text.length >= shortest && look(Buffer.from(text, 'latin1'), isOurs);
  };
}

function isWrapped(credential: string, work: Work): boolean {
  if (credential.length < shortest) return false;
  work.left -= credential.length;
  if (work.left < 0) return true;
  let layer: Buffer[] = [Buffer.from(credential, 'latin1')];
  // Every decoded form is shorter than its source, so this ends.
  while (layer.length > 0) {
    const next: Buffer[] = [];
    for (const bytes of layer) {
      const isReadable = isText(bytes);
      if (look(bytes, isOurs)) return true;
      if (holdsKeyBody(bytes, isReadable && bytes.length <= mostOfSuspicious)) return true;
      if (isReadable && bytes.length >= shortest) next.push(...decoded(bytes.toString('latin1'), work));
      if (work.left < 0) return true;
    }
    layer = next;
  }
  return false;
}

/** Receives a run of letters and digits: its start and end, and the length of the run before it. */
type TokenTest = (bytes: Buffer, start: number, end: number, before: number) => boolean;

/** Which bytes are letters or digits. */
const isAlphanumeric = charactersOf(/[0-9A-Za-z]/);

/** Searches the letters and digits for a credential, with one look at each byte. */
function look(bytes: Buffer, isToken: TokenTest): boolean {
  let before = 0;
  let start = 0;
  for (let i = 0; i <= bytes.length; i++) {
    if (i < bytes.length && isAlphanumeric[bytes[i] as number]) continue;
    if (i - start >= tokenLength && isToken(bytes, start, i, before)) return true;
    before = i - start;
    start = i + 1;
  }
  return false;
}

/** Whether nine of ten bytes are printable: true for a correct decoding, hardly ever for a wrong one. */
function isText(bytes: Buffer): boolean {
  let printable = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (byte >= 0x20 && byte <= 0x7e) printable++;
  }
  return printable * 10 >= bytes.length * 9;
}

const isIntactKey: TokenTest = (bytes, start, end, before) =>
  end - start >= keyLength &&
  before >= idLength &&
  isKeyBody(
    bytes.toString('latin1', start - 1 - idLength, start - 1),
    bytes.toString('latin1', start, start + keyLength),
  );

/**
 * A checksum does not fit in another case, and tokens have none, so these are recognised by their shape. The shape is
 * narrower in a long text, because the Base64 of other issuers' tokens may match by chance.
 */
const isOurs: TokenTest = (bytes, start, end, before) => {
  if (isIntactKey(bytes, start, end, before)) return true;
  const text = bytes.toString('latin1', Math.max(0, start - idLength - mostOfPrefix), start);
  // The checksum may be missing, because it can be computed from the rest.
  if (wholeKey.test(text)) return true;
  const isShort = bytes.length <= mostOfShort;
  if (end - start === tokenLength && (token.test(text) || (isShort && damagedToken.test(text)))) return true;
  if (end - start < keyLength) return false;
  const isAlone = end - start === keyLength;
  return isShort ? damagedKey.test(text) : isAlone && damagedKeyAlone.test(text);
};

const mostOfPrefix = 8;
const mostOfShort = 200;
const token = /(?<![0-9a-z])th[a-z]_$/i;
const damagedToken = /(?<![0-9a-z])(?:.ha|.hr|t.a|t.r)_$/i;
const wholeKey = /thk_[0-9a-z]{12}_$/i;
const damagedKey = /(?:.?hk|t.?k|th.?|htk|tkh|th.k|thk.)_[0-9a-z]{12}_$/i;
const damagedKeyAlone = /(?<![0-9a-z])(?:.?hk|t.?k|th.?|htk|tkh|th.k|thk.)_[0-9a-z]{12}_$/i;

const base64Characters = charactersOf(/[0-9A-Za-z+/_-]/);
const hexCharacters = charactersOf(/[0-9A-Fa-f]/);
const upperBase32 = charactersOf(/[A-Z2-7]/);
const lowerBase32 = charactersOf(/[a-z2-7]/);

function charactersOf(pattern: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, code) => (pattern.test(String.fromCharCode(code)) ? 1 : 0));
}

/** The long enough runs of a set of characters; reads each character once, and makes no text of short runs. */
function longRuns(text: string, characters: Uint8Array, least: number): string[] {
  const runs: string[] = [];
  let start = 0;
  for (let i = 0; i <= text.length; i++) {
    if (i < text.length && characters[text.charCodeAt(i)]) continue;
    if (i - start >= least) runs.push(text.slice(start, i));
    start = i + 1;
  }
  return runs;
}

/** The possible decodings of a text, by one layer; not all of them where no work is left. */
function decoded(text: string, work: Work): Buffer[] {
  const plain = unescaped(text);
  const found = plain === text ? [] : decodings(plain, latin1, work);
  // Groups such as 74:68:6b are one run without their separators.
  const isGrouped = text.length <= mostOfSuspicious || longRuns(text, base64Characters, shortestBase64).length === 0;
  const joined = isGrouped ? text.replaceAll(/[^0-9A-Za-z+/_-]/g, '') : '';
  const runsOf = (find: (text: string) => string[]) => new Set([text, joined].flatMap(find));
  for (const run of runsOf((each) => longRuns(each, base64Characters, shortestBase64)))
    found.push(...decodings(run, base64, work));
  for (const run of runsOf((each) => longRuns(each, hexCharacters, 2 * shortest)))
    found.push(...decodings(run, hex, work));
  for (const run of runsOf(base32Runs)) found.push(...decodings(run, base32, work));
  return found;
}

/** An encoding of bytes as text, the bits of a character, and at how many positions a group may begin. */
type Encoding = { bits: number; positions: number; decode: (text: string) => Buffer };

const latin1: Encoding = { bits: 8, positions: 1, decode: (text) => Buffer.from(text, 'latin1') };
// A prefix without a separator shifts the groups of four.
const base64: Encoding = { bits: 6, positions: 4, decode: (text) => withoutNul(Buffer.from(text, 'base64')) };
const hex: Encoding = { bits: 4, positions: 2, decode: (text) => withoutNul(Buffer.from(text, 'hex')) };
const base32: Encoding = { bits: 5, positions: 8, decode: decodeBase32 };

/** A run, decoded from each position at which a group may begin. */
function decodings(run: string, { bits, positions, decode }: Encoding, work: Work): Buffer[] {
  const found: Buffer[] = [];
  for (let from = 0; from < positions; from++) {
    work.left -= Math.floor(((run.length - from) * bits) / 8);
    if (work.left < 0) break;
    found.push(decode(run.slice(from)));
  }
  return found;
}

/** Only in one case: text in mixed case is not Base32. */
function base32Runs(text: string): string[] {
  return [upperBase32, lowerBase32].flatMap((characters) => longRuns(text, characters, shortestBase32));
}

/** Makes UTF-16 (two bytes a character) read like one byte a character. */
function withoutNul(bytes: Buffer): Buffer {
  const first = bytes.indexOf(0);
  if (first < 0 || bytes[first + 2] !== 0 || bytes[first + 4] !== 0) return bytes;
  return Buffer.from(bytes.toString('latin1').replaceAll('\0', ''), 'latin1');
}

/** Encodings of bytes as text other than Base64 and hex. */

const base32Alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** RFC 4648, 6; in any case, without padding. Characters of other alphabets must not be in it. */
function decodeBase32(text: string): Buffer {
  const bytes: number[] = [];
  let bits = 0;
  let value = 0;
  for (const character of text.toUpperCase()) {
    value = ((value << 5) | base32Alphabet.indexOf(character)) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((value >> bits) & 0xff);
  }
  return Buffer.from(bytes);
}

/**
 * `%74`, also when the `%` is encoded again and again, `=74`, `\x74`, `\u0074`, `&#x74;`. A run of backslashes is read
 * once, from its beginning.
 */
const hexEscapes = /(?:%(?:25)*|=|(?<!\\)\\+(?:x|u00)|&#x0*)([0-9a-f]{2});?/gi;
/** `&#116;` */
const decimalEscapes = /&#0*(\d{2,3});?/g;

/** The text with every such escape replaced by its character. */
function unescaped(text: string): string {
  return text
    .replaceAll(hexEscapes, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(decimalEscapes, (_, code: string) => String.fromCharCode(Number(code) & 0xff));
}
