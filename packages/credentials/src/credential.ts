import { Unauthenticated } from '@toolhost/errors/errors';
import type { RequestHeaders } from './client-request.ts';

/** Permissions of a credential. `manage` includes `manage:read` and `manage:write`. */
export const keyScopes = ['manage', 'manage:read', 'manage:write', 'call'] as const;
export type KeyScope = (typeof keyScopes)[number];

export const roles = ['owner', 'editor', 'viewer'] as const;
export type Role = (typeof roles)[number];

/** Scopes that an operation may require. */
export type Scope = 'manage:read' | 'manage:write' | 'call';

export function hasScope(granted: readonly KeyScope[], needed: Scope): boolean {
  return granted.includes(needed) || (needed !== 'call' && granted.includes('manage'));
}

/** Returns the scopes of a signed-in member. */
export function getRoleScopes(role: Role): KeyScope[] {
  return role === 'viewer' ? ['manage:read'] : ['manage', 'call'];
}

/**
 * Matches a bearer credential (RFC 6750, 2.1), extended to all visible characters, because many issuers use others in
 * their tokens. A space separates two credentials in one field, and the scheme from the credential.
 */
const bearerPattern = /^Bearer +([\x21-\x7e]+)$/i;

const outerSpacePattern = /^[ \t]|[ \t]$/;

/**
 * Returns the value of a header without outer white space (RFC 9110, 5.5). Undefined if several lines have the same
 * name.
 */
export function getHeaderValue(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name];
  if (typeof value !== 'string') return undefined;
  return outerSpacePattern.test(value) ? value.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, '') : value;
}

/** Returns true if a text can be a single credential in a header: visible ASCII without spaces. */
function isCredential(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** Matches words that programs write if a variable has no value. */
const emptyValuePattern = /^(?:undefined|null|None|nil|NaN|\[object Object\])$/;
/**
 * Matches variables of shells, editors, agents, and templates: ${NAME}, $NAME, $env:NAME, %NAME%, {{NAME}}, {env:NAME}.
 */
const variablePattern =
  /^(?:\$\{[^{}]{2,}\}|\{\{[^{}]{2,}\}\}|\{env:[^{}]+\}|\$(?:env:)?[A-Z][A-Z0-9_]{2,}|%[A-Z][A-Z0-9_]{2,}%)$/;
/** Matches examples from documentation: <your-key>, YOUR_API_KEY, your-token-here, API_KEY. */
const examplePattern =
  /^(?:<[A-Za-z][\w .-]{2,}>|your[-_. ]?[a-z_. -]*(?:key|token|secret|here)|[A-Z_]*(?:KEY|TOKEN|SECRET))$/;

/** Maximum length of a placeholder; a longer text is a credential. */
const maxPlaceholderLength = 100;

/**
 * Returns the problem with a credential that is a placeholder which a client did not replace, and what to do; undefined
 * for any other credential.
 */
function getPlaceholderProblem(credential: string): string | undefined {
  if (credential.length > maxPlaceholderLength) return undefined;
  if (variablePattern.test(credential))
    return 'the credential is a variable that the client did not expand; set the variable where the client runs, or write the credential itself into its configuration';
  if (examplePattern.test(credential) || examplePattern.test(credential.toLowerCase()))
    return 'the credential is an example placeholder; replace it with your own credential';
  if (emptyValuePattern.test(credential))
    return `the client sent the word "${credential}" instead of a credential, because its setting has no value; set it and restart the client`;
  return undefined;
}

/** Checks that a credential is not a placeholder. @throws Unauthenticated */
function checkNotPlaceholder(credential: string): void {
  const problem = getPlaceholderProblem(credential);
  if (problem !== undefined) throw new Unauthenticated('invalid', problem);
}

/**
 * Returns the bearer token of a request, or undefined if there is none.
 * @throws Unauthenticated if the header has another form or contains a placeholder
 */
export function getBearerToken(headers: RequestHeaders): string | undefined {
  const authorization = getHeaderValue(headers, 'authorization');
  if (authorization === undefined) return undefined;
  const token = bearerPattern.exec(authorization)?.[1];
  checkNotPlaceholder(token ?? authorization.replace(/^Bearer +/i, ''));
  if (token === undefined && /^Bearer$/i.test(authorization))
    throw new Unauthenticated(
      'invalid',
      'the Authorization header has no token after "Bearer"; check whether the client setting is empty',
    );
  if (token === undefined)
    throw new Unauthenticated(
      'invalid',
      'the Authorization header must be "Bearer" and one token of visible ASCII characters without spaces',
    );
  return token;
}

/** Header in which some clients send an API key, in lower case. */
export const apiKeyHeader = 'x-api-key';

/**
 * Returns the single credential of a request: the bearer token, or the value of one of these headers, named in lower
 * case.
 * @throws Unauthenticated if a header is malformed or contains a placeholder, or if two different credentials were sent
 */
export function getRequestCredential(headers: RequestHeaders, names: readonly string[]): string | undefined {
  let credential = getBearerToken(headers);
  for (const name of names) {
    const value = getHeaderValue(headers, name);
    if (value === undefined || value === '') continue;
    const bareCredential = value.replace(/^(Bearer|Basic) +/i, '');
    checkNotPlaceholder(bareCredential);
    if (credential !== undefined && credential !== bareCredential)
      throw new Unauthenticated('invalid', 'two different credentials were sent; send one');
    if (!isCredential(bareCredential))
      throw new Unauthenticated(
        'invalid',
        `the header ${name} must contain one credential of visible ASCII characters without spaces`,
      );
    credential = bareCredential;
  }
  return credential;
}
