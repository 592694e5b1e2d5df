import type { Redactor } from '@toolhost/credentials/redactor';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import { type DisplayedHeader, decodeHeaderText } from './response-head.ts';

const refusedStatuses: ReadonlySet<number> = new Set([401, 403, 429]);
/**
 * Headers with the time at which a rate limit resets, as sent by GitHub and many others, by X, and by the IETF
 * RateLimit draft.
 */
const resetHeaders = ['X-RateLimit-Reset', 'X-Rate-Limit-Reset', 'RateLimit-Reset'];

/** Maximum length of a challenge that is parsed, and of its reason that is shown, in characters. */
const maxChallengeLength = 2048;
const maxReasonLength = 300;

/**
 * Returns lines for the agent about a call that the upstream refused with 401, 403, or 429: the reason in
 * `WWW-Authenticate`, and the time at which the rate limit resets. Omits headers in `displayed`, which are shown anyway.
 */
export function formatRefusalLines(
  { status, headers }: UpstreamResponse,
  displayed: readonly DisplayedHeader[],
  redactor: Redactor,
): string[] {
  if (!refusedStatuses.has(status)) return [];
  const isDisplayed = (name: string) => displayed.some((header) => header.name.toLowerCase() === name.toLowerCase());
  const getLine = (name: string) => {
    const lines = headers[name.toLowerCase()];
    return lines === undefined || isDisplayed(name) ? undefined : decodeHeaderText([lines].flat().join(', '));
  };
  const reason = getChallengeReason(getLine('WWW-Authenticate') ?? '', redactor);
  // A limit that is not exhausted did not cause the refusal.
  const isExhausted = (name: string) =>
    status === 429 || /^0*$/.test(String(headers[name.toLowerCase().replace('reset', 'remaining')] ?? ''));
  const resets = resetHeaders.flatMap((name) => {
    const time = isExhausted(name) ? formatResetTime(getLine(name) ?? '') : undefined;
    return time === undefined ? [] : [`${name}: ${time}`];
  });
  return [...(reason === '' ? [] : [`WWW-Authenticate: ${reason}`]), ...resets];
}

/** Matches the `error` and `error_description` of a challenge, quoted or not. */
const errorParameter = /(?:^|[\s,])(error|error_description)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi;

/** Returns the error code and description of a challenge (RFC 6750, 3), or the complete challenge if it has neither. */
function getChallengeReason(challenge: string, redactor: Redactor): string {
  if (challenge.length > maxChallengeLength) return '';
  const parameters = new Map<string, string>();
  for (const [, name = '', quoted, plain = ''] of challenge.matchAll(errorParameter))
    parameters.set(name.toLowerCase(), quoted?.replaceAll(/\\(.)/g, '$1') ?? plain);
  const reason = [parameters.get('error'), parameters.get('error_description')].filter(Boolean).join(': ');
  // Truncated last, so that no part of a credential remains.
  return redactor
    .text(reason || challenge)
    .slice(0, maxReasonLength)
    .toWellFormed()
    .trim();
}

/** The earliest epoch time in seconds, September 2001. APIs use smaller numbers only for durations. */
const minEpochSeconds = 1_000_000_000;
/** Matches an HTTP date (RFC 9110, 5.6.7). */
const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * Formats a reset time as ISO text, from seconds or milliseconds since the epoch or an HTTP date. A duration in seconds
 * becomes "in … s".
 */
function formatResetTime(value: string): string | undefined {
  const text = value.trim();
  if (httpDate.test(text)) return formatIsoTime(Date.parse(text));
  if (!/^\d{1,13}(?:\.\d{1,9})?$/.test(text)) return undefined;
  const seconds = Number(text);
  if (seconds < minEpochSeconds) return `in ${text} s`;
  return formatIsoTime(seconds < 1000 * minEpochSeconds ? 1000 * seconds : seconds);
}

function formatIsoTime(ms: number): string | undefined {
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}
