import type { Problem } from '../errors.ts';
import { type Authentication, credentialHeader, credentialQueryKey } from './authentication.ts';
import { headerNameProblem, isHeaderValue } from './headers.ts';
import { ownedParams } from './oauth.ts';
import { hasMalformedPlaceholder } from './placeholders.ts';
import { shown } from './problems.ts';

/** Why a URL may not be called from this deployment, or undefined. */
export type UrlRule = (url: URL) => string | undefined;

export function authenticationProblems(authentication: Authentication): Problem[] {
  const problems: Problem[] = [];
  const header = credentialHeader(authentication);
  const headerFault = header === undefined ? undefined : headerNameProblem(header);
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

/** The rules of `oauth` that its field types do not say; `oauth` may be half-formed. */
export function oauthProblems(oauth: { [field: string]: unknown }, urlProblem: UrlRule): Problem[] {
  const problems: Problem[] = [];
  for (const field of ['authorization_url', 'token_url'] as const) {
    const text = oauth[field];
    if (typeof text !== 'string') continue;
    const fault = providerUrlProblem(text, urlProblem);
    if (fault) problems.push({ path: `oauth.${field}`, message: fault });
  }
  if (typeof oauth.authorization_url === 'string' && URL.canParse(oauth.authorization_url)) {
    for (const name of new URL(oauth.authorization_url).searchParams.keys()) {
      if (ownedParams.includes(name)) {
        problems.push({
          path: 'oauth.authorization_url',
          message: `holds the parameter "${name}", which the service sets itself`,
        });
      }
    }
  }
  const extra = oauth.extra_params;
  for (const name of typeof extra === 'object' && extra !== null ? Object.keys(extra) : []) {
    if (ownedParams.includes(name)) {
      problems.push({
        path: `oauth.extra_params.${name}`,
        message: 'the service sets this parameter itself; leave it out',
      });
    }
  }
  return problems;
}

function providerUrlProblem(text: string, urlProblem: UrlRule): string | undefined {
  if (!URL.canParse(text)) return `found ${shown(text)}; allowed: an https URL`;
  return urlProblem(new URL(text));
}
