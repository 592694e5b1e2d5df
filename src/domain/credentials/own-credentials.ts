import { isKeyBodyAt, isKeyCharacter } from '../ids.ts';
import type { MaybePromise } from '../work/next-turn.ts';
import { nextTurn } from '../work/next-turn.ts';

/**
 * Finds Toolhost credentials in plain form in data that is about to be sent to another host. A key is found even
 * without its prefix, because its checksum distinguishes it from other text. A token has no checksum, so only its
 * complete form counts.
 */

const idLength = 12;
/** Number of letters and digits after the last `_` of a key, and of a token (`tha_…`, `thr_…`). */
const keyLength = 49;
const tokenLength = 43;
const keyBody = /^[0-9A-Za-z]{61}$/;
const underscore = 0x5f;
/** Maximum length of a credential including the characters around it that identify it. */
const longest = 80;
/** Number of characters that are searched in one chunk: one millisecond for the worst text. */
const pieceLength = 256 * 1024;

/**
 * Returns true if a text contains a Toolhost key or token in plain form. This runs for every outgoing request, so it
 * examines only a few characters of each 43: a credential ends in at least that many letters and digits.
 */
export function holdsPlainCredential(text: string): boolean {
  const last = text.length - tokenLength;
  for (let start = 0; start <= last; ) {
    let at = start + tokenLength - 1;
    while (at >= start && isKeyCharacter(text.charCodeAt(at))) at--;
    if (at < start) {
      if (start > 0 && text.charCodeAt(start - 1) === underscore && endsHere(text, start)) return true;
      for (at = start + tokenLength; isKeyCharacter(text.charCodeAt(at)); ) at++;
    }
    start = at + 1;
  }
  return false;
}

/** Returns true if the letters and digits that begin here, after a `_`, are the end of a credential. */
function endsHere(text: string, start: number): boolean {
  if (!isKeyCharacter(text.charCodeAt(start + tokenLength))) {
    // The preceding text may be the end of an escape, such as %20 or an escaped newline.
    return /th[ar]_$/.test(text.slice(Math.max(0, start - 4), start));
  }
  if (start <= idLength) return false;
  const body = text.slice(start - 1 - idLength, start - 1) + text.slice(start, start + keyLength);
  return keyBody.test(body) && isKeyBodyAt(Buffer.from(body, 'latin1'), 0);
}

/** The parts of a finished request that may contain a credential. */
type SearchedRequest = { path: string; headers: readonly string[]; body: string | Buffer | undefined };

/**
 * Returns true if a finished request contains a Toolhost credential in plain form. Other forms are refused when
 * credentials, secrets, and configurations are submitted. A long body is searched in chunks.
 */
export function requestHoldsCredential({ path, headers, body }: SearchedRequest): MaybePromise<boolean> {
  if (holdsPlainCredential(path) || headers.some(holdsPlainCredential)) return true;
  if (body === undefined) return false;
  if (body.length > pieceLength) return longHoldsCredential(body);
  return holdsPlainCredential(typeof body === 'string' ? body : body.toString('latin1'));
}

/** Searches a long body. Its chunks overlap, so each credential is complete in one of them. */
async function longHoldsCredential(content: string | Buffer): Promise<boolean> {
  for (let at = 0; at < content.length; at += pieceLength) {
    const [from, until] = [Math.max(0, at - longest), at + pieceLength];
    const piece = typeof content === 'string' ? content.slice(from, until) : content.toString('latin1', from, until);
    if (holdsPlainCredential(piece)) return true;
    await nextTurn();
  }
  return false;
}

/**
 * Finds Toolhost credentials in text that was submitted to be sent to an upstream later: in plain form,
 * percent-encoded, or in Base64. One layer is decoded, so the work is a small multiple of the text's length for any
 * text.
 */

/**
 * Matches prefixes of keys, access and refresh tokens, wrapped refresh tokens, and clients, including forms that a
 * keyboard capitalizes or writes in capitals. One in a million random tokens of other issuers begins like this; if any
 * mix of cases matched, it would be one in 80,000.
 */
const ourBeginning = /^(?:[Tt]h[akrpc]|TH[AKRPC])_/;

/** Returns true if a credential begins like a Toolhost credential, valid or not. */
export function looksLikeOurs(credential: string): boolean {
  return ourBeginning.test(credential);
}

/** Returns true if a credential is a Toolhost credential or contains one. */
export function holdsOurCredential(credential: string): boolean {
  return looksLikeOurs(credential) || holdsWholeCredential(credential);
}

/**
 * Matches Base64 runs long enough for an access token (`tha_…`, 47 characters), the shortest Toolhost credential.
 * Base64 of its characters consists of letters and digits only, and other characters can only follow a complete group
 * of four, so each run can be decoded by itself.
 */
const base64Runs = /[0-9A-Za-z]{62,}/g;
const percentCodes = /%([0-9a-f]{2})/gi;

/** Returns true if a text contains a complete credential. Text that only begins like one is ordinary text. */
export function holdsWholeCredential(text: string): boolean {
  if (holdsPlainCredential(text)) return true;
  const plain = text.replaceAll(percentCodes, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  if (plain !== text && holdsPlainCredential(plain)) return true;
  const runs = plain.match(base64Runs) ?? [];
  return runs.some((run) => holdsPlainCredential(Buffer.from(run, 'base64').toString('latin1')));
}
