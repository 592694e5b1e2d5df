import { foldedHeader } from '../../domain/http/parameter-names.ts';

/**
 * Matches names of possible credentials. Recorded requests contain what people typed, and every agent reads the
 * description of a tool. A possible credential must not become an example there, so the pattern rather matches too
 * much.
 */
const revealingName =
  /key|token|secret|auth|session|passw|passphrase|passcode|pwd|credential|cookie|signature|(?:^|[-_])(?:sig|pass|pin|otp|jwt|csrf|xsrf)(?:$|[-_])/;

export function isRevealingName(name: string): boolean {
  return revealingName.test(foldedHeader(name.replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')));
}

/**
 * Returns true if a value looks generated: long, with digits among letters. Words, dates, and versions, as in
 * DynamoDB_20120810.ListTables, do not match.
 */
export function isRevealingValue(value: string): boolean {
  return value.length >= 20 && /^[\w.~+/=:-]+$/.test(value) && value.split(/[-_./:]/).some(isMixed);
}

function isMixed(piece: string): boolean {
  return /\d/.test(piece) && /[A-Za-z]/.test(piece) && !/^v\d+$/i.test(piece) && !/^\d+T\d+Z?$/.test(piece);
}

/** Returns true if a path segment is an ID or a token rather than a word of the API. */
export function isOpaqueSegment(segment: string): boolean {
  return /^bot\d+:/.test(segment) || segment.split(/[-.~:_]/).some(isOpaque);
}

/**
 * Returns true if a piece is long enough for a token and contains digits. Placeholders and OData keys in brackets
 * contain other characters.
 */
function isOpaque(piece: string): boolean {
  if (/^[A-Za-z0-9]{24,}$/.test(piece)) return /\d/.test(piece);
  return /^[A-Za-z0-9]{16,}$/.test(piece) && /\d.*\d/.test(piece) && /[A-Za-z]/.test(piece);
}
