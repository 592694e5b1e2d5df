import { plainFailure } from '../../errors.ts';
import {
  type Authentication,
  credentialHeader,
  credentialQueryKey,
  credentialValue,
  signatureHeaders,
} from '../config/authentication.ts';
import { isHeaderValue } from '../http/headers.ts';
import { encode } from '../http/percent-encoding.ts';

/** The credential of each entry of `authentication`; undefined where a call has none. */
export type Tokens = readonly (string | undefined)[];

/** What a cookie can hold (RFC 6265, 4.1.1). */
const cookieValue = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/;

/**
 * Adds the credentials of a call to its headers and its query. A signature is not added: it is made of the whole request.
 * @throws ToolFailure invalid_arguments when a credential cannot go where it belongs
 */
export function addCredentials(
  all: readonly Authentication[],
  tokens: Tokens,
  headers: string[],
  query: string[],
): void {
  let cookies = '';
  for (let index = 0; index < all.length; index++) {
    const one = all[index] as Authentication;
    const token = tokens[index];
    if (token === undefined || one.type === 'AwsSigV4') continue;
    const header = credentialHeader(one);
    if (header !== undefined) headers.push(header, checkedValue(header, credentialValue(one, token), isHeaderValue));
    else if (one.type === 'Cookie') cookies += `${cookies && '; '}${one.cookie}=${checkedCookie(token)}`;
    else query.push(`${encode(credentialQueryKey(one) as string)}=${encode(token)}`);
  }
  if (cookies !== '') headers.push('Cookie', cookies);
}

function checkedCookie(token: string): string {
  return checkedValue('Cookie', token, (value) => cookieValue.test(value));
}

function checkedValue(name: string, value: string, isPossible: (value: string) => boolean): string {
  if (isPossible(value)) return value;
  const message = `the value for the header ${name} has characters that ${name === 'Cookie' ? 'a cookie' : 'a header'} cannot hold`;
  throw plainFailure('invalid_arguments', message);
}

/** The headers that a signature adds to a request, with a mask for their values. */
export function maskedSignature(one: Authentication, mask: string): string[] {
  const isSent = (name: string) => name !== 'X-Amz-Security-Token' || one.session_token !== undefined;
  return signatureHeaders.filter(isSent).flatMap((name) => [name, mask]);
}
