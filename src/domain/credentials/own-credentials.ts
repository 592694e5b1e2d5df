import { holdsPlainCredential } from './plain-credentials.ts';

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
