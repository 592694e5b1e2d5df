import type { MaybePromise } from '@toolhost/errors/yield-to-event-loop';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { isKeyBodyAt, isKeyCharacter } from './ids.ts';

/**
 * Finds Toolhost credentials in plain form in data that is about to be sent to another host. A key is found even
 * without its prefix, because its checksum distinguishes it from other text. A token has no checksum, so only its
 * complete form counts.
 */

const idLength = 12;
/** Number of letters and digits after the last `_` of a key, and of a token (`tha_…`, `thr_…`). */
const keySuffixLength = 49;
const tokenSuffixLength = 43;
const keyBodyPattern = /^[0-9A-Za-z]{61}$/;
const underscore = 0x5f;
/** Maximum length of a credential including the characters around it that identify it. */
const maxCredentialLength = 80;
/** Number of characters that are searched in one chunk: one millisecond for the worst text. */
const chunkLength = 256 * 1024;

/**
 * Returns true if a text contains a Toolhost key or token in plain form. This runs for every outgoing request, so it
 * examines only a few characters of each 43: a credential ends in at least that many letters and digits.
 */
export function containsPlainCredential(text: string): boolean {
  const lastStart = text.length - tokenSuffixLength;
  for (let start = 0; start <= lastStart; ) {
    let index = start + tokenSuffixLength - 1;
    while (index >= start && isKeyCharacter(text.charCodeAt(index))) index--;
    if (index < start) {
      if (start > 0 && text.charCodeAt(start - 1) === underscore && isCredentialEnd(text, start)) return true;
      for (index = start + tokenSuffixLength; isKeyCharacter(text.charCodeAt(index)); ) index++;
    }
    start = index + 1;
  }
  return false;
}

/** Returns true if the letters and digits that begin here, after a `_`, are the end of a credential. */
function isCredentialEnd(text: string, start: number): boolean {
  if (!isKeyCharacter(text.charCodeAt(start + tokenSuffixLength))) {
    // The preceding text may be the end of an escape, such as %20 or an escaped newline.
    return /th[ar]_$/.test(text.slice(Math.max(0, start - 4), start));
  }
  if (start <= idLength) return false;
  const body = text.slice(start - 1 - idLength, start - 1) + text.slice(start, start + keySuffixLength);
  return keyBodyPattern.test(body) && isKeyBodyAt(Buffer.from(body, 'latin1'), 0);
}

/** The parts of a finished request that may contain a credential. */
type OutgoingRequest = { path: string; headers: readonly string[]; body: string | Buffer | undefined };

/**
 * Returns true if a finished request contains a Toolhost credential in plain form. Other forms are refused when
 * credentials, secrets, and configurations are submitted. A long body is searched in chunks.
 */
export function requestContainsCredential({ path, headers, body }: OutgoingRequest): MaybePromise<boolean> {
  if (containsPlainCredential(path) || headers.some(containsPlainCredential)) return true;
  if (body === undefined) return false;
  if (body.length > chunkLength) return longBodyContainsCredential(body);
  return containsPlainCredential(typeof body === 'string' ? body : body.toString('latin1'));
}

/** Searches a long body. Its chunks overlap, so each credential is complete in one of them. */
async function longBodyContainsCredential(content: string | Buffer): Promise<boolean> {
  for (let at = 0; at < content.length; at += chunkLength) {
    const [from, until] = [Math.max(0, at - maxCredentialLength), at + chunkLength];
    const chunk = typeof content === 'string' ? content.slice(from, until) : content.toString('latin1', from, until);
    if (containsPlainCredential(chunk)) return true;
    await yieldToEventLoop();
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
const ownPrefixPattern = /^(?:[Tt]h[akrpc]|TH[AKRPC])_/;

/** Returns true if a credential begins like a Toolhost credential, valid or not. */
export function hasOwnPrefix(credential: string): boolean {
  return ownPrefixPattern.test(credential);
}

/** Returns true if a credential is a Toolhost credential or contains one. */
export function containsOwnCredential(credential: string): boolean {
  return hasOwnPrefix(credential) || containsCompleteCredential(credential);
}

/**
 * Matches Base64 runs long enough for an access token (`tha_…`, 47 characters), the shortest Toolhost credential.
 * Base64 of its characters consists of letters and digits only, and other characters can only follow a complete group
 * of four, so each run can be decoded by itself.
 */
const base64RunPattern = /[0-9A-Za-z]{62,}/g;
const percentCodePattern = /%([0-9a-f]{2})/gi;

/** Returns true if a text contains a complete credential. Text that only begins like one is ordinary text. */
export function containsCompleteCredential(text: string): boolean {
  if (containsPlainCredential(text)) return true;
  const decodedText = text.replaceAll(percentCodePattern, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  if (decodedText !== text && containsPlainCredential(decodedText)) return true;
  const runs = decodedText.match(base64RunPattern) ?? [];
  return runs.some((run) => containsPlainCredential(Buffer.from(run, 'base64').toString('latin1')));
}
