import { isKeyBody } from './api-key.ts';

/**
 * Finds a credential of ours inside a text that would be sent to somebody else, however it is wrapped: quoted, behind a
 * name, with a damaged prefix, in another case, percent-encoded, in Base64 or in hex, and in these again.
 */

const idLength = 12;
const keyLength = 49;
const tokenLength = 43;
/** Of an access token, `tha_…`; nothing shorter holds a credential, nor becomes one when it is decoded. */
const shortest = 4 + tokenLength;
const shortestBase64 = Math.ceil((shortest * 4) / 3);
/** An encoding within an encoding within an encoding. */
const mostLayers = 3;
/** Characters looked at for one text, its decoded forms included: some eight times of what a header can hold. */
const mostCharacters = 128 * 1024;

/** Whether a credential begins like one of ours (API keys, and the tokens of the OAuth proxy), valid or not. */
export function looksLikeOurs(credential: string): boolean {
  return /^th[a-z]_/i.test(credential);
}

/** Whether a credential is one of ours or holds one. A text with more layers than can be looked at counts as one. */
export function holdsOurCredential(credential: string): boolean {
  return looksLikeOurs(credential) || isWrapped(credential);
}

/** Whether an API key stands in a text just as it was made; quick for a text of any length that holds none. */
export function holdsApiKey(text: string): boolean {
  return text.includes('thk_') && look(Buffer.from(text, 'latin1'), isIntactKey).found;
}

function isWrapped(credential: string): boolean {
  if (credential.length < shortest) return false;
  let left = mostCharacters;
  let layer: Buffer[] = [Buffer.from(credential, 'latin1')];
  for (let depth = 0; layer.length > 0; depth++) {
    const next: Buffer[] = [];
    for (const bytes of layer) {
      left -= bytes.length;
      const { found, isEncoded } = look(bytes, isOurs);
      if (left < 0 || found) return true;
      if (isEncoded && depth < mostLayers) next.push(...decoded(bytes.toString('latin1')));
    }
    layer = next;
  }
  return false;
}

/** Told of letters and digits between others: where they begin and end, and how many stood before the one in front. */
type Judge = (bytes: Buffer, start: number, end: number, before: number) => boolean;

const base64Sign = 1;
const alphanumeric = 2;
/** What each byte can be part of. */
const kinds = Uint8Array.from({ length: 256 }, (_, code) => {
  const character = String.fromCharCode(code);
  return /[0-9A-Za-z]/.test(character) ? alphanumeric : /[+/_-]/.test(character) ? base64Sign : 0;
});

/** Looks once at each byte: whether a credential stands there, and whether some of it may be an encoding. */
function look(bytes: Buffer, judge: Judge): { found: boolean; isEncoded: boolean } {
  let isEncoded = bytes.includes('%');
  let before = 0;
  let start = 0;
  let encodedFrom = 0;
  for (let i = 0; i <= bytes.length; i++) {
    const kind = i < bytes.length ? kinds[bytes[i] as number] : 0;
    if (kind === alphanumeric) continue;
    if (i - start >= tokenLength && judge(bytes, start, i, before)) return { found: true, isEncoded };
    before = i - start;
    start = i + 1;
    if (kind === base64Sign) continue;
    isEncoded ||= i - encodedFrom >= shortestBase64;
    encodedFrom = i + 1;
  }
  return { found: false, isEncoded };
}

const isIntactKey: Judge = (bytes, start, end, before) =>
  end - start >= keyLength &&
  before >= idLength &&
  isKeyBody(
    bytes.toString('latin1', start - 1 - idLength, start - 1),
    bytes.toString('latin1', start, start + keyLength),
  );

/**
 * In another case a checksum no longer fits, and tokens have none, so their shape has to do. It is narrower in a long
 * text: the Base64 of other issuers' tokens holds something alike by chance.
 */
const isOurs: Judge = (bytes, start, end, before) => {
  if (isIntactKey(bytes, start, end, before)) return true;
  const text = bytes.toString('latin1', Math.max(0, start - idLength - mostOfPrefix), start);
  const isShort = bytes.length <= mostOfShort;
  if (end - start === tokenLength && (token.test(text) || (isShort && damagedToken.test(text)))) return true;
  if (end - start < keyLength) return false;
  const isAlone = end - start === keyLength;
  return wholeKey.test(text) || (isShort ? damagedKey.test(text) : isAlone && damagedKeyAlone.test(text));
};

const mostOfPrefix = 8;
const mostOfShort = 200;
const token = /(?<![0-9a-z])th[a-z]_$/i;
const damagedToken = /(?<![0-9a-z])(?:.ha|.hr|t.a|t.r)_$/i;
const wholeKey = /thk_[0-9a-z]{12}_$/i;
const damagedKey = /(?:.?hk|t.?k|th.?|htk|tkh|th.k|thk.)_[0-9a-z]{12}_$/i;
const damagedKeyAlone = /(?<![0-9a-z])(?:.?hk|t.?k|th.?|htk|tkh|th.k|thk.)_[0-9a-z]{12}_$/i;

// Whole runs, whose length is judged afterwards: a pattern that asks for a length would try again from each character.
const base64Runs = /[0-9A-Za-z+/_-]+/g;
const hexRuns = /[0-9A-Fa-f]+/g;

/** The runs of a text that are long enough, in time proportional to the text. */
function longRuns(text: string, runs: RegExp, least: number): string[] {
  return (text.match(runs) ?? []).filter((run) => run.length >= least);
}

/** What a text may stand for, one layer less. */
function decoded(text: string): Buffer[] {
  const found: Buffer[] = [];
  if (text.includes('%')) {
    const plain = text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    if (plain !== text) found.push(Buffer.from(plain, 'latin1'));
  }
  for (const run of longRuns(text, base64Runs, shortestBase64)) {
    // What stands in front of it without a separator moves the groups of four.
    for (let from = 0; from < 4; from++) found.push(withoutNul(Buffer.from(run.slice(from), 'base64')));
  }
  for (const run of longRuns(text, hexRuns, 2 * shortest)) {
    for (let from = 0; from < 2; from++) found.push(withoutNul(Buffer.from(run.slice(from), 'hex')));
  }
  return found;
}

/** So that two bytes a character (UTF-16) read like one. */
function withoutNul(bytes: Buffer): Buffer {
  const first = bytes.indexOf(0);
  if (first < 0 || bytes[first + 2] !== 0 || bytes[first + 4] !== 0) return bytes;
  return Buffer.from(bytes.toString('latin1').replaceAll('\0', ''), 'latin1');
}
