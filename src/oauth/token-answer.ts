import { formFields, mostHeaderLength } from '../domain/http/values.ts';
import { OAuthError } from '../errors.ts';
import type { Answer } from '../outbound/exchange.ts';

/** Types of tokens that need a proof of possession, which we cannot make (RFC 9449; the drafts of mac and pop). */
const proofTypes = new Set(['mac', 'dpop', 'pop']);

/** Providers have many names for a token that is sent as bearer, so only the types above are refused (RFC 6749, 7.1). */
export function checkTokenType(tokenType: unknown): void {
  if (tokenType === undefined || tokenType === null || tokenType === '') return;
  if (typeof tokenType !== 'string') throw incomplete('token_type');
  const type = tokenType.trim();
  if (!proofTypes.has(type.toLowerCase())) return;
  throw new OAuthError(
    'server_error',
    `the token endpoint gave a token of the type ${type} and only bearer tokens can be sent on`,
  );
}

/**
 * Whether a header can carry the value: with its characters, and with as many of them. A longer token would be good for no
 * request, but searched and kept all the same.
 */
export function isToken(value: unknown): value is string {
  return typeof value === 'string' && value.length <= mostHeaderLength && /^[\x21-\x7e]+$/.test(value);
}

/**
 * A text that is kept beside a token, and is no longer than one, also as JSON, in which it is kept: a control character takes
 * six there. Undefined for no text.
 * @throws OAuthError server_error
 */
export function textBesideToken(fields: { [name: string]: unknown }, name: 'refresh_token' | 'scope') {
  const value = fields[name];
  if (typeof value !== 'string') return undefined;
  const isTooLong = value.length > mostHeaderLength || Buffer.byteLength(JSON.stringify(value)) > mostHeaderLength + 2;
  if (isTooLong) throw incomplete(name);
  return value;
}

const maxSpanS = 10 * 365 * 24 * 60 * 60;

/**
 * `expires_in` in whole ms, as times are stored, given as a number or as digits in a string. Undefined for 0 and anything
 * else.
 */
export function spanOf(seconds: unknown): number | undefined {
  const isDigits = typeof seconds === 'string' && /^\d{1,12}$/.test(seconds);
  const number = typeof seconds === 'number' || isDigits ? Number(seconds) : 0;
  return number > 0 ? Math.max(1, Math.floor(Math.min(number, maxSpanS) * 1000)) : undefined;
}

export function incomplete(field: string): OAuthError {
  return new OAuthError('server_error', `the token endpoint answered without a usable ${field}`);
}

/** The fields of an answer of a token endpoint. @throws OAuthError server_error */
export function readFields(answer: Answer): { [name: string]: unknown } {
  const text = answer.body.toString('utf8');
  if (/^application\/x-www-form-urlencoded\b|^text\/plain\b/i.test(String(answer.headers['content-type']))) {
    const form = Object.fromEntries(formFields(text) ?? []);
    if ('access_token' in form || 'error' in form) return form;
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as { [name: string]: unknown };
  } catch {
    // Not JSON: reported below.
  }
  // The status of an error page suffices.
  if (answer.status >= 400) return {};
  throw new OAuthError(
    'server_error',
    'the token endpoint answered with something that is neither JSON nor a form',
    `status ${answer.status}`,
  );
}
