import { isKeyBodyAt, isKeyCharacter } from '../ids.ts';
import type { MaybePromise } from '../work/next-turn.ts';
import { nextTurn } from '../work/next-turn.ts';

/**
 * Finds our credentials as they stand, in what is about to be written to another host. A key is found without its prefix
 * too, because its checksum tells it from everything else. A token has none, so only its whole form counts.
 */

const idLength = 12;
/** Letters and digits behind the last `_` of a key, and of a token (`tha_…`, `thr_…`). */
const keyLength = 49;
const tokenLength = 43;
const keyBody = /^[0-9A-Za-z]{61}$/;
const underscore = 0x5f;
/** Longest credential, and the characters around it that decide what it is. */
const longest = 80;
/** Characters that are searched at once: a millisecond for the worst text. */
const pieceLength = 256 * 1024;

/**
 * Whether a text holds one of our keys or tokens in its plain form. It is asked about every request that is sent, so it
 * looks at a few characters of each 43 only: a credential ends in at least so many letters and digits.
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

/** Whether the letters and digits that begin here, behind a `_`, are the end of a credential. */
function endsHere(text: string, start: number): boolean {
  if (!isKeyCharacter(text.charCodeAt(start + tokenLength))) {
    // What stands before it may be the end of an escape, as in %20 and \n.
    return /th[ar]_$/.test(text.slice(Math.max(0, start - 4), start));
  }
  if (start <= idLength) return false;
  const body = text.slice(start - 1 - idLength, start - 1) + text.slice(start, start + keyLength);
  return keyBody.test(body) && isKeyBodyAt(Buffer.from(body, 'latin1'), 0);
}

/** The parts of a finished request that may hold a credential. */
type SearchedRequest = { path: string; headers: readonly string[]; body: string | Buffer | undefined };

/**
 * Whether a finished request holds one of our credentials in its plain form; what other forms there are is refused where
 * credentials, secrets and configurations come in. A long body is searched in several turns of the event loop.
 */
export function requestHoldsCredential({ path, headers, body }: SearchedRequest): MaybePromise<boolean> {
  if (holdsPlainCredential(path) || headers.some(holdsPlainCredential)) return true;
  if (body === undefined) return false;
  if (body.length > pieceLength) return longHoldsCredential(body);
  return holdsPlainCredential(typeof body === 'string' ? body : body.toString('latin1'));
}

/** The pieces overlap, so that each credential is whole in one of them. */
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
 * Finds one of our credentials in a text that comes in to be sent to an upstream later: as it stands, percent-encoded,
 * or in Base64. One layer is decoded, so the work is a small multiple of the length of the text, whatever it holds.
 */

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

/** Whether a credential is one of ours or holds one. */
export function holdsOurCredential(credential: string): boolean {
  return looksLikeOurs(credential) || holdsWholeCredential(credential);
}

/**
 * Characters of an access token (`tha_…`, 47), the shortest of our credentials, in Base64. Base64 of our characters has
 * letters and digits only, and what may stand between them ends a group of four, so each run of these can be decoded.
 */
const base64Runs = /[0-9A-Za-z]{62,}/g;
const percentCodes = /%([0-9a-f]{2})/gi;

/** Whether a text holds a whole credential; one that only begins like ours is a text as any other. */
export function holdsWholeCredential(text: string): boolean {
  if (holdsPlainCredential(text)) return true;
  const plain = text.replaceAll(percentCodes, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  if (plain !== text && holdsPlainCredential(plain)) return true;
  const runs = plain.match(base64Runs) ?? [];
  return runs.some((run) => holdsPlainCredential(Buffer.from(run, 'base64').toString('latin1')));
}
