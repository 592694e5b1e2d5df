import { Unauthenticated } from '../../errors.ts';
import type { RequestHeaders } from '../visit.ts';

/** Permissions of a credential. `manage` includes both halves of managing. */
export const keyScopes = ['manage', 'manage:read', 'manage:write', 'call'] as const;
export type KeyScope = (typeof keyScopes)[number];

export const roles = ['owner', 'editor', 'viewer'] as const;
export type Role = (typeof roles)[number];

/** Scopes that an operation requires. */
export type Scope = 'manage:read' | 'manage:write' | 'call';

export function covers(granted: readonly KeyScope[], needed: Scope): boolean {
  return granted.includes(needed) || (needed !== 'call' && granted.includes('manage'));
}

/** Scopes of a signed-in member. */
export function scopesOf(role: Role): KeyScope[] {
  return role === 'viewer' ? ['manage:read'] : ['manage', 'call'];
}

/**
 * RFC 6750, 2.1, but with all visible characters, because many issuers use others in their tokens. A space separates two
 * credentials in one field, and the scheme from the credential.
 */
const bearerPattern = /^Bearer +([\x21-\x7e]+)$/i;

const outerSpace = /^[ \t]|[ \t]$/;

/** One header's value without outer white space (RFC 9110, 5.5); undefined for several lines of one name. */
export function headerValue(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name];
  if (typeof value !== 'string') return undefined;
  return outerSpace.test(value) ? value.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, '') : value;
}

/** Whether a text can be one credential in a header: visible ASCII without spaces. */
function isCredential(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** Words that programs write where a variable has no value. */
const noValue = /^(?:undefined|null|None|nil|NaN|\[object Object\])$/;
/** Variables of shells, editors, agents and templates: ${NAME}, $NAME, $env:NAME, %NAME%, {{NAME}}, {env:NAME}. */
const variable =
  /^(?:\$\{[^{}]{2,}\}|\{\{[^{}]{2,}\}\}|\{env:[^{}]+\}|\$(?:env:)?[A-Z][A-Z0-9_]{2,}|%[A-Z][A-Z0-9_]{2,}%)$/;
/** Examples of documentation: <your-key>, YOUR_API_KEY, your-token-here, API_KEY. */
const example =
  /^(?:<[A-Za-z][\w .-]{2,}>|your[-_. ]?[a-z_. -]*(?:key|token|secret|here)|[A-Z_]*(?:KEY|TOKEN|SECRET))$/;

/** A longer credential is no placeholder. */
const longestPlaceholder = 100;

/** The reason why a credential is a placeholder that a client did not replace, with what to do; undefined for any other. */
function placeholderProblem(credential: string): string | undefined {
  if (credential.length > longestPlaceholder) return undefined;
  if (variable.test(credential))
    return 'the credential is a variable that the client did not fill in; set the variable where the client runs, or write the credential itself into its configuration';
  if (example.test(credential) || example.test(credential.toLowerCase()))
    return 'the credential is the placeholder of an example; replace it with your own credential';
  if (noValue.test(credential))
    return `the client sent the word "${credential}" in place of a credential; its setting has no value, so set it and restart the client`;
  return undefined;
}

/** @throws Unauthenticated where the client did not replace a placeholder */
function checkFilled(credential: string): void {
  const problem = placeholderProblem(credential);
  if (problem !== undefined) throw new Unauthenticated('invalid', problem);
}

/**
 * The bearer token of a request, or undefined without one.
 * @throws Unauthenticated when the header has another form, or a placeholder
 */
export function bearerToken(headers: RequestHeaders): string | undefined {
  const authorization = headerValue(headers, 'authorization');
  if (authorization === undefined) return undefined;
  const token = bearerPattern.exec(authorization)?.[1];
  checkFilled(token ?? authorization.replace(/^Bearer +/i, ''));
  if (token === undefined && /^Bearer$/i.test(authorization))
    throw new Unauthenticated(
      'invalid',
      'the Authorization header has no token after "Bearer"; the setting of the client may be empty',
    );
  if (token === undefined)
    throw new Unauthenticated(
      'invalid',
      'the Authorization header must be "Bearer" and one token of visible ASCII characters without spaces',
    );
  return token;
}

/** The header in which some clients send an API key, in lower case. */
export const keyHeader = 'x-api-key';

/**
 * The one credential of a request: the bearer, or what one of these headers holds, whose names are in lower case.
 * @throws Unauthenticated when a header is malformed or has a placeholder, or two different credentials were sent
 */
export function presentedCredential(headers: RequestHeaders, names: readonly string[]): string | undefined {
  let found = bearerToken(headers);
  for (const name of names) {
    const value = headerValue(headers, name);
    if (value === undefined || value === '') continue;
    const bare = value.replace(/^(Bearer|Basic) +/i, '');
    checkFilled(bare);
    if (found !== undefined && found !== bare)
      throw new Unauthenticated('invalid', 'two different credentials were sent; send one');
    if (!isCredential(bare))
      throw new Unauthenticated(
        'invalid',
        `the header ${name} must hold one credential of visible ASCII characters without spaces`,
      );
    found = bare;
  }
  return found;
}
