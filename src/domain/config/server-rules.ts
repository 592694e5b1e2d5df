import type { Problem } from '../../errors.ts';
import { headerNameProblem, isHeaderValue } from '../http/headers.ts';
import { foldedHeader, isReadAs, type OwnedNames, ownedInQuery } from '../http/parameter-names.ts';
import { hasMalformedPlaceholder, placeholderNames } from '../http/placeholders.ts';
import { shown } from '../problems.ts';
import { type Authentication, credentialHeader, credentialQueryKey } from './authentication.ts';
import { authorizationParams, oauthSchema, tokenParams } from './oauth.ts';

/** Returns why this deployment may not call a URL; undefined if it may. */
export type UrlRule = (url: URL) => string | undefined;

export function authenticationProblems(authentication: Authentication): Problem[] {
  const problems: Problem[] = [];
  const header = credentialHeader(authentication);
  const headerFault = header === undefined ? undefined : credentialHeaderProblem(header);
  if (headerFault) problems.push({ path: 'authentication.header', message: headerFault });
  if (authentication.type === 'QueryParam' && authentication.header !== undefined) {
    problems.push({ path: 'authentication.header', message: 'not together with type QueryParam; leave it out' });
  }
  if (authentication.type !== 'QueryParam' && authentication.query_key !== undefined) {
    problems.push({ path: 'authentication.query_key', message: 'only together with type QueryParam; leave it out' });
  }
  const key = credentialQueryKey(authentication);
  if (key !== undefined && !/^[A-Za-z0-9_.~-]+$/.test(key)) {
    problems.push({
      path: 'authentication.query_key',
      message: `found ${shown(key)}; allowed: letters, digits, _ . ~ -`,
    });
  }
  const token = authentication.token;
  if (token !== undefined && (hasMalformedPlaceholder(token) || !isHeaderValue(token))) {
    problems.push({
      path: 'authentication.token',
      message: 'allowed: one line of visible text, or {{NAME}} with a secret name',
    });
  }
  return problems;
}

const describing = new Set(['accept', 'content-type', 'user-agent']);

function credentialHeaderProblem(header: string): string | undefined {
  if (describing.has(foldedHeader(header))) return 'the service sets this header itself; name another one';
  return headerNameProblem(header);
}

/** Checks the rules of `oauth` that its field types do not express; `oauth` may be incomplete. */
export function oauthProblems(oauth: { [field: string]: unknown }, urlProblem: UrlRule): Problem[] {
  return [
    ...providerUrlProblems('authorization_url', oauth, authorizationParams, urlProblem),
    ...providerUrlProblems('token_url', oauth, tokenParams, urlProblem),
    ...extraParamProblems(oauth.extra_params),
    ...unfilledProblems(oauth),
  ];
}

/** `{{NAME}}` is filled only in headers and in `authentication.token`; elsewhere it would be sent literally. */
function unfilledProblems(oauth: { [field: string]: unknown }): Problem[] {
  const extra = oauthSchema.shape.extra_params.safeParse(oauth.extra_params).data ?? {};
  const scopes = oauthSchema.shape.scopes.safeParse(oauth.scopes).data ?? [];
  const texts: [path: string, text: unknown][] = [
    ...plainFields.map((field): [string, unknown] => [field, oauth[field]]),
    ...Object.entries(extra).map(([name, value]): [string, unknown] => [`extra_params.${name}`, value]),
    ...scopes.map((scope, index): [string, unknown] => [`scopes[${index}]`, scope]),
  ];
  return texts
    .filter(([, text]) => typeof text === 'string' && placeholderNames(text).length > 0)
    .map(([path]) => ({ path: `oauth.${path}`, message: unfilled(path) }));
}

const plainFields = ['authorization_url', 'token_url', 'client_id', 'client_secret'] as const;

function unfilled(field: string): string {
  const what = '{{NAME}} is not filled here; write the value itself';
  return field === 'client_secret' ? `${what}, which is stored sealed and never shown` : what;
}

function providerUrlProblems(
  field: 'authorization_url' | 'token_url',
  oauth: { [field: string]: unknown },
  owned: OwnedNames,
  urlProblem: UrlRule,
): Problem[] {
  const path = `oauth.${field}`;
  const text = oauthSchema.shape[field].safeParse(oauth[field]);
  if (!text.success) return [];
  if (!URL.canParse(text.data)) return [{ path, message: `found ${shown(text.data)}; allowed: an https URL` }];
  const url = new URL(text.data);
  const fault = urlProblem(url);
  return [
    ...(fault ? [{ path, message: fault }] : []),
    ...ownedInQuery(url.search.slice(1), owned).map((name) => ({
      path,
      message: `holds the parameter ${shown(name)}, which the service sets itself`,
    })),
  ];
}

function extraParamProblems(extra: unknown): Problem[] {
  const params = oauthSchema.shape.extra_params.safeParse(extra);
  return Object.keys(params.data ?? {})
    .filter((name) => isReadAs(name, authorizationParams))
    .map((name) => ({
      path: `oauth.extra_params.${name}`,
      message: 'the service sets this parameter itself; leave it out',
    }));
}
