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

/** Whether a value looks made up by a program: long, with digits and letters, and neither a date nor a text. */
export function isRevealingValue(value: string): boolean {
  if (/^\d{4}-\d\d-\d\d/.test(value)) return false;
  return value.length >= 20 && /^[\w.~+/=:-]+$/.test(value) && /\d/.test(value) && /[A-Za-z]/.test(value);
}

/** Whether a segment of a path is an id or a token rather than a word of the API. */
export function isOpaqueSegment(segment: string): boolean {
  return (
    /^bot\d+:/.test(segment) ||
    segment
      .split(/[-.~:]/)
      .some(
        (piece) =>
          /^[A-Za-z0-9]{24,}$/.test(piece) ||
          (/^\w{16,}$/.test(piece) && /\d.*\d/.test(piece) && /[A-Za-z]/.test(piece)),
      )
  );
}
