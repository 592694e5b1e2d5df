import { Redactor } from '@toolhost/credentials/redactor';
import { parseJson } from '@toolhost/json/json';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import { parseMediaType } from '@toolhost/tool-config/http/headers';
import { getResponseContentType, isJson } from './response-head.ts';

/** Maximum length of the scopes that an upstream may name, in characters. */
const maxScopesLength = 1000;
/** Maximum length of a challenge and of a body that are searched. An OAuth error is much shorter. */
const maxChallengeLength = 8000;
const maxBodyBytes = 64 * 1024;

/** An authentication parameter: `name=token` or `name="quoted value"` (RFC 9110, 11.2). */
const authParameter = /(?<![\w-])(error|scope)[ \t]*=[ \t]*(?:"([^"\\]*)"|([\w!#$%&'*+.^`|~:/-]+))/gi;
/** Scope tokens, separated by single spaces (RFC 6749, 3.3). */
const scopeList = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/;

/**
 * Returns the scopes that a 403 response names as missing: from its `WWW-Authenticate` (RFC 6750, 3.1), else from the
 * `error` and `scope` of its JSON body. Undefined unless the upstream reports `insufficient_scope` and names scopes.
 */
export function getMissingScopes(response: UpstreamResponse, sensitive: readonly string[]): string[] | undefined {
  const scope = findChallengeScope(response) ?? findBodyScope(response);
  if (scope === undefined || scope.length > maxScopesLength || !scopeList.test(scope)) return undefined;
  // Clients and the provider get the scopes, so an upstream must not repeat a credential in them.
  if (new Redactor(sensitive).text(scope) !== scope) return undefined;
  return [...new Set(scope.split(' '))];
}

function findChallengeScope({ headers }: UpstreamResponse): string | undefined {
  const challenge = [headers['www-authenticate'] ?? []].flat().join(', ');
  if (challenge.length > maxChallengeLength || !/\bBearer\b/i.test(challenge)) return undefined;
  const parameters = new Map<string, string>();
  for (const [, name = '', quoted, token] of challenge.matchAll(authParameter))
    parameters.set(name.toLowerCase(), quoted ?? token ?? '');
  return parameters.get('error') === 'insufficient_scope' ? parameters.get('scope')?.trim() : undefined;
}

function findBodyScope({ headers, body }: UpstreamResponse): string | undefined {
  if (body.length > maxBodyBytes || !isJson(parseMediaType(getResponseContentType(headers)) ?? '')) return undefined;
  let fields: unknown;
  try {
    fields = parseJson(body.toString('utf8'));
  } catch {
    // A body that is not JSON names no scope; the result reports it as any other failure.
    return undefined;
  }
  const { error, scope } = (fields ?? {}) as { error?: unknown; scope?: unknown };
  return error === 'insufficient_scope' && typeof scope === 'string' ? scope.trim() : undefined;
}
