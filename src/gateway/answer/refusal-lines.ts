import type { Redactor } from '../../domain/credentials/redactor.ts';
import type { Answer } from '../../outbound/exchange.ts';
import { headerText, type ShownHeader } from './answer-head.ts';

const refusedStatuses: ReadonlySet<number> = new Set([401, 403, 429]);
/** Headers of the time at which a rate limit resets, by GitHub and many others, X, and the IETF draft of RateLimit. */
const resetHeaders = ['X-RateLimit-Reset', 'X-Rate-Limit-Reset', 'RateLimit-Reset'];

/** Maximum length of a challenge that is read, and of its reason that is shown, in characters. */
const maxChallengeLength = 2048;
const maxReasonLength = 300;

/**
 * Lines for the agent about a call that the upstream refused with 401, 403, or 429: the reason in `WWW-Authenticate`, and
 * when the rate limit resets. Headers in `shown` have lines already.
 */
export function refusalLines({ status, headers }: Answer, shown: readonly ShownHeader[], redact: Redactor): string[] {
  if (!refusedStatuses.has(status)) return [];
  const isNew = (name: string) => !shown.some((header) => header.name.toLowerCase() === name.toLowerCase());
  const lineOf = (name: string) => {
    const lines = headers[name.toLowerCase()];
    return lines === undefined || !isNew(name) ? undefined : headerText([lines].flat().join(', '));
  };
  const reason = challengeReason(lineOf('WWW-Authenticate') ?? '', redact);
  // A limit that is not used up is not why the call was refused.
  const isUsedUp = (name: string) =>
    status === 429 || /^0*$/.test(String(headers[name.toLowerCase().replace('reset', 'remaining')] ?? ''));
  const resets = resetHeaders.flatMap((name) => {
    const time = isUsedUp(name) ? resetTime(lineOf(name) ?? '') : undefined;
    return time === undefined ? [] : [`${name}: ${time}`];
  });
  return [...(reason === '' ? [] : [`WWW-Authenticate: ${reason}`]), ...resets];
}

const errorParameter = /(?:^|[\s,])(error|error_description)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi;

/** The error of a challenge and its description (RFC 6750, 3), or the challenge where it has neither. */
function challengeReason(challenge: string, redact: Redactor): string {
  if (challenge.length > maxChallengeLength) return '';
  const found = new Map<string, string>();
  for (const [, name = '', quoted, plain = ''] of challenge.matchAll(errorParameter))
    found.set(name.toLowerCase(), quoted?.replaceAll(/\\(.)/g, '$1') ?? plain);
  const reason = [found.get('error'), found.get('error_description')].filter(Boolean).join(': ');
  // It is cut last, so that no part of a credential is left.
  return redact
    .text(reason || challenge)
    .slice(0, maxReasonLength)
    .toWellFormed()
    .trim();
}

/** The first moment, in seconds since the epoch, that no API can mean as a duration: September 2001. */
const leastEpoch = 1_000_000_000;
const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** A time as ISO text, of seconds or milliseconds since the epoch or an HTTP date, or a duration in seconds. */
function resetTime(value: string): string | undefined {
  const text = value.trim();
  if (httpDate.test(text)) return isoTime(Date.parse(text));
  if (!/^\d{1,13}(?:\.\d{1,9})?$/.test(text)) return undefined;
  const seconds = Number(text);
  if (seconds < leastEpoch) return `in ${text} s`;
  return isoTime(seconds < 1000 * leastEpoch ? 1000 * seconds : seconds);
}

function isoTime(ms: number): string | undefined {
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}
