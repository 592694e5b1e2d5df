import { recordableFailure, type ToolFailure } from '@toolhost/errors/errors';
import {
  type Authentication,
  credentialHeader,
  credentialQueryKey,
  credentialValue,
  type SentCredential,
  signatureHeaders,
} from '../authentication.ts';
import { isHeaderValue } from '../http/headers.ts';
import { interpolateDeep, interpolatePlaceholders } from '../http/placeholders.ts';
import { renderOrigin } from '../http/render-origin.ts';
import { checkUrlLength, renderUrl } from '../http/url-template.ts';
import {
  checkLength,
  encodeCookie,
  formatValue,
  getArgument,
  getTextLength,
  hasControlCharacter,
  maxHeaderLength,
  percentEncode,
  toWireText,
  type WireText,
} from '../http/values.ts';
import { buildContent } from './body.ts';
import {
  addParameters,
  createParameterList,
  encodeParameters,
  isSeparated,
  joinEntries,
  type ParameterList,
  toStyledText,
} from './parameter-list.ts';
import type { RequestTemplate } from './request-template.ts';
import type { UpstreamRequest } from './upstream-request.ts';
import type { Arguments, WireArgument } from './wire-argument.ts';

/** Credential for each entry of `authentication`; undefined if a call has none for the entry. */
export type CredentialTokens = readonly (string | undefined)[];

/** Matches a cookie value (RFC 6265, 4.1.1). */
const cookieValuePattern = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/;

/**
 * Credentials of a call. `secret` also returns the values of the person, and throws if a value is missing. In a preview,
 * the origin stays as the configuration writes it.
 */
export type CallCredentials = { tokens: CredentialTokens; secret: (name: string) => string; isPreview?: boolean };

/**
 * Builds the request of a call (specification 4.3) without sending anything.
 * @throws ToolFailure invalid_arguments if an argument cannot be sent in its location
 * @throws ToolFailure secret_missing from `credentials.secret`
 */
export function buildRequest(
  template: RequestTemplate,
  callArguments: Arguments,
  credentials: CallCredentials,
): UpstreamRequest {
  const { constants, hasSecrets } = template;
  const interpolatedConstants =
    constants && hasSecrets ? (interpolateDeep(constants, credentials.secret) as Arguments) : constants;
  const args = interpolatedConstants === undefined ? callArguments : { ...callArguments, ...interpolatedConstants };
  const { path, query } = renderUrl(template.url, {
    argument(name) {
      const value = getArgument(args, name);
      const styled = value === undefined ? undefined : template.styledArguments?.get(name);
      const text = styled ? renderStyledToken(styled, value) : toWireText(name, value);
      if (text === undefined) return undefined;
      const hasControl = typeof text === 'string' ? hasControlCharacter(text) : text.some(hasControlCharacter);
      if (hasControl) throw recordableFailure('invalid_arguments', `${name}: must not contain control characters`);
      return text;
    },
    secret: credentials.secret,
  });
  // The configuration was checked when it was stored, but the values of its secrets were not.
  const headers = template.fixedHeaders.slice();
  for (const { name, value } of template.interpolatedHeaders) {
    const text = interpolatePlaceholders(value, credentials.secret);
    if (text.length > maxHeaderLength) throw createHeaderLengthFailure(name);
    headers.push(name, checkHeaderValue(name, text));
  }
  let pairs: ParameterList | undefined;
  const cookies: string[] = [];
  for (const argument of template.arguments) {
    const value = getArgument(args, argument.name);
    if (value === undefined) continue;
    if (argument.location === 'header') headers.push(...buildArgumentHeaders(argument, value));
    else if (argument.location === 'cookie') cookies.push(...buildArgumentCookie(argument, value));
    else {
      pairs ??= createParameterList('a URL', template.arrayFormat);
      addParameters(pairs, argument, value);
    }
  }
  if (pairs) query.push(...encodeParameters(pairs));
  const content = template.body.kind === 'none' ? undefined : buildContent(template.body, args, credentials.secret);
  const contentType = template.body.contentType === undefined ? content?.contentType : undefined;
  if (contentType !== undefined) headers.push('Content-Type', contentType);
  if (template.credentials.length > 0)
    addCredentials(template.credentials, credentials.tokens, { headers, query, cookies });
  if (cookies.length > 0) headers.push('Cookie', cookies.join('; '));
  const search = query.length > 0 ? `?${query.join('&')}` : '';
  return {
    method: template.method,
    origin:
      template.url.hostName === undefined || credentials.isPreview
        ? template.url.origin
        : renderPersonalOrigin(template, template.url.hostName, credentials.secret),
    path: checkUrlLength(path + search),
    headers,
    body: content?.body,
  };
}

/** @throws ToolFailure invalid_arguments for a value that cannot be in the origin, and any error of `getValue` */
function renderPersonalOrigin(template: RequestTemplate, name: string, getValue: (name: string) => string): string {
  return renderOrigin(template.url.origin, { name, value: getValue(name), hosts: template.originHosts });
}

function createHeaderLengthFailure(name: string): ToolFailure {
  const message = `the value of the header ${name} is longer than ${maxHeaderLength} characters; its configuration repeats {{NAME}} too often`;
  return recordableFailure('invalid_arguments', message);
}

function renderStyledToken(argument: WireArgument, value: unknown): WireText | undefined {
  if (argument.style === 'json') return value === null ? undefined : JSON.stringify(value);
  return isSeparated(argument.style) ? joinEntries(argument, value, true) : toWireText(argument.name, value);
}

/** Returns the header lines of an argument, alternating names and values. @throws ToolFailure invalid_arguments */
function buildArgumentHeaders(argument: WireArgument, value: unknown): string[] {
  const { name, wireName, style } = argument;
  if (style === 'repeat' && Array.isArray(value)) {
    checkLength(name, value.length * wireName.length, maxHeaderLength, 'a header');
    const lines = value.flatMap((item) => buildHeaderLine(argument, formatValue(name, item)));
    checkLength(name, lines.join('').length, maxHeaderLength, 'a header');
    return lines;
  }
  if (style === 'json') return buildHeaderLine(argument, value === null ? undefined : toAsciiJson(name, value));
  return buildHeaderLine(
    argument,
    isSeparated(style) && value !== null ? toStyledText(argument, value) : formatValue(name, value),
  );
}

/** Returns the cookie of an argument, or nothing for an argument without text. @throws ToolFailure invalid_arguments */
function buildArgumentCookie(argument: WireArgument, value: unknown): string[] {
  const { name, wireName, style } = argument;
  const text =
    value === null ? undefined : style === undefined ? toWireText(name, value) : renderStyledToken(argument, value);
  if (text === undefined) return [];
  checkLength(name, getTextLength(text), maxHeaderLength, 'a cookie');
  return [`${wireName}=${encodeCookie(text)}`];
}

/** Returns a header name and its value, or nothing for an argument without text. */
function buildHeaderLine({ name, wireName }: WireArgument, text: string | undefined): string[] {
  if (text === undefined) return [];
  checkLength(name, text.length, maxHeaderLength, 'a header');
  return [wireName, checkHeaderValue(wireName, text)];
}

/** Returns ASCII-only JSON, as headers require; other characters are escaped. @throws ToolFailure invalid_arguments */
function toAsciiJson(name: string, value: unknown): string {
  const json = JSON.stringify(value);
  // This check comes before escaping, which never shortens a text.
  checkLength(name, json.length, maxHeaderLength, 'a header');
  return json.replaceAll(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** @throws ToolFailure invalid_arguments */
function checkHeaderValue(name: string, value: string): string {
  if (isHeaderValue(value)) return value;
  const message = `the value of the header ${name} contains characters that are not allowed in a header`;
  throw recordableFailure('invalid_arguments', message);
}

/** @throws ToolFailure invalid_arguments */
function checkCookieValue(value: string): string {
  if (cookieValuePattern.test(value)) return value;
  throw recordableFailure(
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
  credentials: readonly SentCredential[],
  tokens: CredentialTokens,
  { headers, query, cookies }: { headers: string[]; query: string[]; cookies: string[] },
): void {
  for (let index = 0; index < credentials.length; index++) {
    const credential = credentials[index] as SentCredential;
    const token = tokens[index];
    if (token === undefined || credential.type === 'AwsSigV4') continue;
    const header = credentialHeader(credential);
    if (header !== undefined) headers.push(header, checkHeaderValue(header, credentialValue(credential, token)));
    else if (credential.type === 'Cookie') cookies.push(`${credential.cookie}=${checkCookieValue(token)}`);
    else query.push(`${percentEncode(credentialQueryKey(credential) as string)}=${percentEncode(token)}`);
  }
}

/** Returns the headers that a signature adds to a request, with a mask as their values. */
export function buildMaskedSignatureHeaders(credential: Authentication, mask: string): string[] {
  const isSent = (name: string) => name !== 'X-Amz-Security-Token' || credential.session_token !== undefined;
  return signatureHeaders.filter(isSent).flatMap((name) => [name, mask]);
}
