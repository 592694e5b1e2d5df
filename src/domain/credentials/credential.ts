import { Unauthenticated } from '../../errors.ts';
import type { RequestHeaders } from '../visit.ts';

/**
 * RFC 6750, 2.1, without its alphabet: many issuers put other visible characters into their tokens. Between two
 * credentials in one field stands a space, as it does between a scheme and what follows.
 */
const bearerPattern = /^Bearer +([\x21-\x7e]+)$/i;

const outerSpace = /^[ \t]|[ \t]$/;

/** One header's value without outer white space (RFC 9110, 5.5); several lines of one name count as none that fits. */
export function headerValue(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name];
  if (typeof value !== 'string') return undefined;
  return outerSpace.test(value) ? value.replace(/^[ \t]+|[ \t]+$/g, '') : value;
}

/** Whether a text can stand in a header as one credential: visible ASCII without spaces. */
export function isCredential(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** The bearer token of a request, or undefined without one. @throws Unauthenticated when the header says something else */
export function bearerToken(headers: RequestHeaders): string | undefined {
  const authorization = headerValue(headers, 'authorization');
  if (authorization === undefined) return undefined;
  const token = bearerPattern.exec(authorization)?.[1];
  if (token === undefined)
    throw new Unauthenticated(
      'invalid',
      'the Authorization header must be "Bearer" and one token of visible ASCII characters without spaces',
    );
  return token;
}
