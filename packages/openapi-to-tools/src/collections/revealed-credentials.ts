import { foldHeaderName } from '@toolhost/tool-config/http/parameter-names';

/**
 * Matches names of possible credentials. Recorded requests contain what people typed, and every agent reads the
 * examples in a tool's description. No credential may become an example, so the pattern rather matches too much.
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

function isMixed(part: string): boolean {
  return /\d/.test(part) && /[A-Za-z]/.test(part) && !/^v\d+$/i.test(part) && !/^\d+T\d+Z?$/.test(part);
}

/** Returns true if a path segment is an ID or a token. `bot123:…` has the token of a Telegram bot. */
export function isOpaqueSegment(segment: string): boolean {
  return /^bot\d+:/.test(segment) || segment.split(/[-.~:_]/).some(isOpaque);
}

/**
 * Returns true if a part of a segment is long enough for a token and contains digits. Placeholders and OData keys
 * contain brackets, so they do not match.
 */
function isOpaque(part: string): boolean {
  if (/^[A-Za-z0-9]{24,}$/.test(part)) return /\d/.test(part);
  return /^[A-Za-z0-9]{16,}$/.test(part) && /\d.*\d/.test(part) && /[A-Za-z]/.test(part);
}
