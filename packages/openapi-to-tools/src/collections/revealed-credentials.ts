import { foldHeaderName } from '@toolhost/tool-config/http/parameter-names';

/**
 * Matches names of possible credentials. Recorded requests contain what people typed, and every agent reads the
 * description of a tool. A possible credential must not become an example there, so the pattern rather matches too
 * much.
 */
const revealingNamePattern =
  /key|token|secret|auth|session|passw|passphrase|passcode|pwd|credential|cookie|signature|(?:^|[-_])(?:sig|pass|pin|otp|jwt|csrf|xsrf)(?:$|[-_])/;

export function isRevealingName(name: string): boolean {
  return revealingNamePattern.test(foldHeaderName(name.replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')));
}

/**
 * Returns true if a value looks generated: long, with digits among letters. Words, dates, and versions, as in
 * DynamoDB_20120810.ListTables, do not match.
 */
export function isRevealingValue(value: string): boolean {
  return value.length >= 20 && /^[\w.~+/=:-]+$/.test(value) && value.split(/[-_./:]/).some(isMixed);
}

function isMixed(segmentPart: string): boolean {
  return (
    /\d/.test(segmentPart) &&
    /[A-Za-z]/.test(segmentPart) &&
    !/^v\d+$/i.test(segmentPart) &&
    !/^\d+T\d+Z?$/.test(segmentPart)
  );
}

/** Returns true if a path segment is an ID or a token rather than a word of the API. */
export function isOpaqueSegment(segment: string): boolean {
  return /^bot\d+:/.test(segment) || segment.split(/[-.~:_]/).some(isOpaque);
}

/**
 * Returns true if a piece is long enough for a token and contains digits. Placeholders and OData keys in brackets
 * contain other characters.
 */
function isOpaque(segmentPart: string): boolean {
  if (/^[A-Za-z0-9]{24,}$/.test(segmentPart)) return /\d/.test(segmentPart);
  return /^[A-Za-z0-9]{16,}$/.test(segmentPart) && /\d.*\d/.test(segmentPart) && /[A-Za-z]/.test(segmentPart);
}
