import { foldedHeader } from '../../domain/http/parameter-names.ts';

/**
 * Recorded requests hold what people typed. A value that may be a credential must not become an example in the
 * description of a tool, which every agent reads: so rather too many count as one.
 */
const revealingName =
  /key|token|secret|auth|session|passw|passphrase|passcode|pwd|credential|cookie|signature|(?:^|[-_])(?:sig|pass|pin|otp|jwt|csrf|xsrf)(?:$|[-_])/;

export function isRevealingName(name: string): boolean {
  return revealingName.test(foldedHeader(name.replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')));
}

/**
 * Whether a value looks made up by a program: long, and with digits among the letters. Words, dates and versions, as in
 * DynamoDB_20120810.ListTables, do not.
 */
export function isRevealingValue(value: string): boolean {
  return value.length >= 20 && /^[\w.~+/=:-]+$/.test(value) && value.split(/[-_./:]/).some(isMixed);
}

function isMixed(piece: string): boolean {
  return /\d/.test(piece) && /[A-Za-z]/.test(piece) && !/^v\d+$/i.test(piece) && !/^\d+T\d+Z?$/.test(piece);
}

/** Whether a segment of a path is an id or a token rather than a word of the API. */
export function isOpaqueSegment(segment: string): boolean {
  return /^bot\d+:/.test(segment) || segment.split(/[-.~:_]/).some(isOpaque);
}

/** Long enough for a token, and with digits; a placeholder and a key in brackets, as in OData, have other characters. */
function isOpaque(piece: string): boolean {
  if (/^[A-Za-z0-9]{24,}$/.test(piece)) return /\d/.test(piece);
  return /^[A-Za-z0-9]{16,}$/.test(piece) && /\d.*\d/.test(piece) && /[A-Za-z]/.test(piece);
}
