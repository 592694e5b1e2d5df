import { redact } from '../../domain/credentials/redactor.ts';

/** Narrower than RFC 6749, 5.2, so that a code can hold neither markup nor a sentence. */
const codePattern = /^[A-Za-z0-9_.-]{1,64}$/;

/**
 * The error code of a provider, such as redirect_uri_mismatch, or undefined when clients and people may not see it. It
 * must be one word, and hold none of `secrets`, which a careless or hostile provider could repeat there.
 */
export function shownCode(error: string, secrets: readonly string[]): string | undefined {
  // The length first: two long texts that the provider has chosen are not searched in each other.
  if (!codePattern.test(error)) return undefined;
  const holdsSecret = secrets.some((secret) => secret !== '' && (error.includes(secret) || secret.includes(error)));
  return !holdsSecret && redact(error, secrets) === error ? error : undefined;
}
