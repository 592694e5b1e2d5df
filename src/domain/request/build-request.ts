import { plainFailure, type ToolFailure } from '../../errors.ts';
import {
  type Authentication,
  credentialHeader,
  credentialQueryKey,
  credentialValue,
  signatureHeaders,
} from '../config/authentication.ts';
import { isHeaderValue } from '../http/headers.ts';
import { fillPlaceholders, fillPlaceholdersIn } from '../http/placeholders.ts';
import { checked, renderUrl } from '../http/url-template.ts';
import {
  encode,
  encodeCookie,
  hasControlCharacter,
  lengthOf,
  mostHeaderLength,
  own,
  refuseLonger,
  valueText,
  type WireText,
  wireText,
} from '../http/values.ts';
import { contentOf } from './body.ts';
import { addPairs, encodedPairs, isSeparated, joinedText, type Pairs, pairsOf, styledText } from './pairs.ts';
import type { RequestTemplate } from './request-template.ts';
import type { Arguments, SentArgument } from './sent-argument.ts';
import type { UpstreamRequest } from './upstream-request.ts';

/** Credential of each entry of `authentication`; undefined where a call has none. */
export type Tokens = readonly (string | undefined)[];

/** Characters that a cookie value may contain (RFC 6265, 4.1.1). */
const cookieValue = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/;

/** Credentials of a call. `secret` throws if a value is missing. */
export type CallCredentials = { tokens: Tokens; secret: (name: string) => string };

/**
 * Builds the request of a call (specification 4.3) without sending anything.
 * @throws ToolFailure invalid_arguments if an argument cannot be sent in its location
 * @throws ToolFailure secret_missing from `credentials.secret`
 */
export function buildRequest(
  template: RequestTemplate,
  given: Arguments,
  credentials: CallCredentials,
): UpstreamRequest {
  const { constants, hasSecrets } = template;
  const filled = constants && hasSecrets ? (fillPlaceholdersIn(constants, credentials.secret) as Arguments) : constants;
  const args = filled === undefined ? given : { ...given, ...filled };
  const { path, query } = renderUrl(template.url, {
    argument(name) {
      const value = own(args, name);
      const styled = value === undefined ? undefined : template.styledTokens?.get(name);
      const text = styled ? styledToken(styled, value) : wireText(name, value);
      if (text === undefined) return undefined;
      const hasControl = typeof text === 'string' ? hasControlCharacter(text) : text.some(hasControlCharacter);
      if (hasControl) throw plainFailure('invalid_arguments', `${name}: must not contain control characters`);
      return text;
    },
    secret: credentials.secret,
  });
  // The configuration was checked when it was stored, but the values of its secrets were not.
  const headers = template.fixedHeaders.slice();
  for (const { name, value } of template.filledHeaders) {
    const text = fillPlaceholders(value, credentials.secret);
    if (text.length > mostHeaderLength) throw tooLong(name);
    headers.push(name, headerText(name, text));
  }
  let pairs: Pairs | undefined;
  const cookies: string[] = [];
  for (const argument of template.arguments) {
    const value = own(args, argument.name);
    if (value === undefined) continue;
    if (argument.location === 'header') headers.push(...argumentHeaders(argument, value));
    else if (argument.location === 'cookie') cookies.push(...argumentCookie(argument, value));
    else {
      pairs ??= pairsOf('a URL', template.arrayFormat);
      addPairs(pairs, argument, value);
    }
  }
  if (pairs) query.push(...encodedPairs(pairs));
  const content = template.body.kind === 'none' ? undefined : contentOf(template.body, args, credentials.secret);
  const contentType = template.body.contentType === undefined ? content?.contentType : undefined;
  if (contentType !== undefined) headers.push('Content-Type', contentType);
  if (template.credentials.length > 0)
    addCredentials(template.credentials, credentials.tokens, { headers, query, cookies });
  if (cookies.length > 0) headers.push('Cookie', cookies.join('; '));
  const search = query.length > 0 ? `?${query.join('&')}` : '';
  return {
    method: template.method,
    origin: template.url.origin,
    path: checked(path + search),
    headers,
    body: content?.body,
  };
}

function tooLong(name: string): ToolFailure {
  const message = `the value of the header ${name} is longer than ${mostHeaderLength} characters; its configuration repeats {{NAME}} too often`;
  return plainFailure('invalid_arguments', message);
}

function styledToken(argument: SentArgument, value: unknown): WireText | undefined {
  if (argument.style === 'json') return value === null ? undefined : JSON.stringify(value);
  return isSeparated(argument.style) ? joinedText(argument, value, true) : wireText(argument.name, value);
}

/** Returns the header lines of an argument, alternating names and values. @throws ToolFailure invalid_arguments */
function argumentHeaders(argument: SentArgument, value: unknown): string[] {
  const { name, wireName, style } = argument;
  if (style === 'repeat' && Array.isArray(value)) {
    refuseLonger(name, value.length * wireName.length, mostHeaderLength, 'a header');
    const lines = value.flatMap((item) => line(argument, valueText(name, item)));
    refuseLonger(name, lines.join('').length, mostHeaderLength, 'a header');
    return lines;
  }
  if (style === 'json') return line(argument, value === null ? undefined : asciiJson(name, value));
  return line(argument, isSeparated(style) && value !== null ? styledText(argument, value) : valueText(name, value));
}

/** Returns the cookie of an argument; none for an argument without text. @throws ToolFailure invalid_arguments */
function argumentCookie(argument: SentArgument, value: unknown): string[] {
  const { name, wireName, style } = argument;
  const text = value === null ? undefined : style === undefined ? wireText(name, value) : styledToken(argument, value);
  if (text === undefined) return [];
  refuseLonger(name, lengthOf(text), mostHeaderLength, 'a cookie');
  return [`${wireName}=${encodeCookie(text)}`];
}

/** Returns a pair of name and value; none for an argument without text. */
function line({ name, wireName }: SentArgument, text: string | undefined): string[] {
  if (text === undefined) return [];
  refuseLonger(name, text.length, mostHeaderLength, 'a header');
  return [wireName, headerText(wireName, text)];
}

/** Returns ASCII-only JSON, as headers require; other characters are escaped. @throws ToolFailure invalid_arguments */
function asciiJson(name: string, value: unknown): string {
  const json = JSON.stringify(value);
  // This check comes before escaping, which never shortens a text.
  refuseLonger(name, json.length, mostHeaderLength, 'a header');
  return json.replaceAll(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** @throws ToolFailure invalid_arguments */
function headerText(name: string, value: string): string {
  if (isHeaderValue(value)) return value;
  const message = `the value of the header ${name} contains characters that are not allowed in a header`;
  throw plainFailure('invalid_arguments', message);
}

/** @throws ToolFailure invalid_arguments */
function cookieText(value: string): string {
  if (cookieValue.test(value)) return value;
  throw plainFailure(
    'invalid_arguments',
    'the value of the header Cookie contains characters that are not allowed in a cookie',
  );
}

/**
 * Adds the credentials of a call to its headers, query, and cookies. Signatures are added later, because they cover the
 * whole request.
 * @throws ToolFailure invalid_arguments if a credential cannot be sent in its location
 */
function addCredentials(
  all: readonly Authentication[],
  tokens: Tokens,
  { headers, query, cookies }: { headers: string[]; query: string[]; cookies: string[] },
): void {
  for (let index = 0; index < all.length; index++) {
    const one = all[index] as Authentication;
    const token = tokens[index];
    if (token === undefined || one.type === 'AwsSigV4') continue;
    const header = credentialHeader(one);
    if (header !== undefined) headers.push(header, headerText(header, credentialValue(one, token)));
    else if (one.type === 'Cookie') cookies.push(`${one.cookie}=${cookieText(token)}`);
    else query.push(`${encode(credentialQueryKey(one) as string)}=${encode(token)}`);
  }
}

/** Returns the headers that a signature adds to a request, with a mask as their values. */
export function maskedSignature(one: Authentication, mask: string): string[] {
  const isSent = (name: string) => name !== 'X-Amz-Security-Token' || one.session_token !== undefined;
  return signatureHeaders.filter(isSent).flatMap((name) => [name, mask]);
}
