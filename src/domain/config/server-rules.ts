import type { Problem } from '../../errors.ts';
import {
  forwardedNameProblem,
  headerNameProblem,
  isDescribingHeader,
  isHeaderName,
  isHeaderValue,
} from '../http/headers.ts';
import { foldedHeader, isReadAs, type OwnedNames, ownedInQuery, ownedNames } from '../http/parameter-names.ts';
import { crowdedProblem, hasMalformedPlaceholder, placeholderNames, secretNamePattern } from '../http/placeholders.ts';
import { readUrl } from '../http/read-url.ts';
import { parseUrlTemplate } from '../http/url-template.ts';
import { bracesInUrl } from '../mistakes.ts';
import { type ProblemList, shown } from '../problems.ts';
import {
  type Authentication,
  type Authentications,
  authenticationSchema,
  authenticationTypes,
  type Credentials,
  credentialHeader,
  credentialHeaders,
  credentialNamePattern,
  credentialPath,
  credentialQueryKey,
  credentialQueryNames,
  credentialsOf,
  fieldsOfType,
  filledFields,
  isStored,
  mostExtra,
  mostScope,
  noCredential,
} from './authentication.ts';
import { authorizationParams, clientTokenParams, oauthSchema, tokenParams } from './oauth.ts';
import { fillVariables, type ServerWide, serverWideShape } from './server-wide.ts';
import { filledHeaderProblems, filledLength, lengthProblem, problemAt } from './sizes.ts';
import { maxUrlLength } from './tool.ts';
import { checkHeaders, hostProblem, type ToolSurroundings } from './tool-rules.ts';

/** Returns why this deployment may not call a URL; undefined if it may. */
export type UrlRule = (url: URL) => string | undefined;

/** Checks the rules of `authentication` that its field types do not express. */
export function authenticationProblems(authentication: Authentications, context: CredentialContext): Problem[] {
  const problems = problemsOfEach(authentication, 'authentication', context);
  if (Array.isArray(authentication))
    problems.push(...callersTokenProblems(credentialsOf(authentication), context.hasLogin));
  return problems;
}

/**
 * Checks the rules of `credentials`. All of them are stored, and so is `authentication` next to them. A stored
 * credential is for callers with an API key, not for everyone who can log in or who sends a token that nothing has
 * verified.
 */
export function namedProblems(
  { authentication, credentials = {} }: Credentials,
  context: CredentialContext,
): Problem[] {
  const named = Object.entries(credentials);
  if (named.length === 0) return [];
  const problems = named.flatMap(([name, given]) => {
    const at = `credentials.${name}`;
    const isName = credentialNamePattern.test(name) && name !== noCredential;
    const allowed = `allowed as a name: a letter, then up to 39 letters, digits, _ and -, except ${noCredential}`;
    return [
      ...(isName ? [] : [{ path: at, message: allowed }]),
      ...problemsOfEach(given, at, context),
      ...unstored(given, at, 'only authentication can send the caller token; store a credential here'),
    ];
  });
  if (context.hasLogin)
    problems.push({
      path: 'credentials',
      message:
        'cannot be combined with oauth, because everyone who can log in could use them; create a separate server for the tools that need them',
    });
  else if (authentication) {
    const reason = 'with credentials, callers send an API key and no token; store a credential';
    problems.push(...unstored(authentication, 'authentication', reason));
  }
  return problems;
}

function unstored(given: Authentications, at: string, reason: string): Problem[] {
  return credentialsOf(given).flatMap((one, index) =>
    isStored(one) ? [] : [{ path: `${credentialPath(given, index, at)}.token`, message: `is missing; ${reason}` }],
  );
}

function problemsOfEach(given: Authentications, at: string, context: CredentialContext): Problem[] {
  const all = credentialsOf(given);
  const problems = all.flatMap((one, index) =>
    credentialProblems(one, context).map(({ path, message }) => ({
      path: `${credentialPath(given, index, at)}.${path}`,
      message,
    })),
  );
  for (const [index, one] of all.entries()) {
    const other = all.slice(0, index).findIndex((earlier) => collide(earlier, one));
    const message = `goes to the same ${locationName(one)} as entry ${other}; change one of the two`;
    if (other >= 0) problems.push({ path: credentialPath(given, index, at), message });
  }
  return problems;
}

/** Settings that the credential rules depend on. */
type CredentialContext = { hasLogin: boolean; urlProblem: UrlRule; variables: ServerWide['variables'] };

function collide(one: Authentication, other: Authentication): boolean {
  const [headers, others] = [credentialHeaders(one), credentialHeaders(other)];
  if (headers.intersection(others).size > 0) return true;
  if (one.type === 'Cookie' && other.type === 'Cookie')
    return isReadAs(other.cookie ?? '', ownedNames([one.cookie ?? '']));
  const key = credentialQueryKey(other);
  return key !== undefined && isReadAs(key, credentialQueryNames(one));
}

function locationName({ type }: Authentication): string {
  if (type === 'QueryParam') return 'query parameter';
  return type === 'Cookie' ? 'cookie' : 'header';
}

/** Checks that at most one credential comes from the caller, because a caller sends at most one token. */
function callersTokenProblems(all: readonly Authentication[], hasLogin: boolean): Problem[] {
  const bring = all.flatMap((one, index) => (isStored(one) ? [] : [index]));
  const at = (index: number | undefined, message: string) => ({ path: `authentication[${index}].token`, message });
  if (bring.length > 1)
    return [at(bring[1], `is missing; entry ${bring[0]} already sends the caller token, so store a credential`)];
  if (hasLogin && bring.length === 0)
    return [{ path: 'authentication', message: 'no entry sends the login token; leave token out of one entry' }];
  if (!hasLogin && bring.length === 1 && all.length > 1) {
    return [
      at(
        bring[0],
        'is missing; with stored credentials, callers send an API key and no token; store a credential, or set oauth',
      ),
    ];
  }
  return [];
}

/** Checks one credential. Paths are relative to it. */
function credentialProblems(one: Authentication, { urlProblem, variables }: CredentialContext): Problem[] {
  const header = credentialHeader(one);
  const headerFault = header === undefined ? undefined : credentialHeaderProblem(header);
  const tooLong = filledCredentialProblems(one, variables);
  const problems = [
    ...fieldProblems(one),
    ...(headerFault ? [{ path: 'header', message: headerFault }] : []),
    ...tooLong,
  ];
  // The other rules interpolate the variables.
  if (tooLong.length > 0) return problems;
  const key = credentialQueryKey(one);
  if (key !== undefined && !/^[A-Za-z0-9_.~-]+$/.test(key)) {
    problems.push({ path: 'query_key', message: `found ${shown(key)}; allowed: letters, digits, _ . ~ -` });
  }
  if (one.cookie !== undefined && !isHeaderName(one.cookie)) {
    problems.push({
      path: 'cookie',
      message: `found ${shown(one.cookie)}; allowed: letters, digits and !#$%&'*+-.^_\`|~`,
    });
  }
  for (const field of filledFields) {
    const value = fillVariables(one[field] ?? '', variables);
    const isText = field === 'user' || field === 'password' ? !/\p{Cc}/u.test(value) : isHeaderValue(value);
    if (hasMalformedPlaceholder(value) || !isText)
      problems.push({ path: field, message: 'allowed: one line of visible text, or {{NAME}} with a secret name' });
  }
  if (fillVariables(one.user ?? '', variables).includes(':'))
    problems.push({ path: 'user', message: 'contains a colon, which Basic cannot send in a user name (RFC 7617, 2)' });
  for (const field of ['region', 'service'] as const) {
    const value = fillVariables(one[field] ?? 'x', variables);
    if (!/^[a-z0-9-]+$/.test(value))
      problems.push({ path: field, message: `found ${shown(value)}; allowed: lowercase letters, digits and -` });
  }
  if (one.type === 'Basic') problems.push(...pairProblems(one));
  if (one.type === 'ClientCredentials') problems.push(...tokenRequestProblems(one, urlProblem, variables));
  return problems;
}

/** Checks that a Basic credential is either a token or a user with a password. */
function pairProblems({ token, user, password }: Authentication): Problem[] {
  if (token !== undefined && (user !== undefined || password !== undefined))
    return [{ path: 'token', message: 'cannot be combined with user and password; leave one of the two out' }];
  if (user === undefined && password !== undefined)
    return [{ path: 'user', message: 'is missing, but password is set; set the user, or "" if the API expects none' }];
  if (user !== undefined && password === undefined)
    return [
      {
        path: 'password',
        message: 'is missing, but user is set; store it, normally as "{{NAME}}", or set "" for none',
      },
    ];
  return user === '' && password === ''
    ? [{ path: 'password', message: 'is empty, and so is user; store a credential in one of the two' }]
    : [];
}

function fieldProblems(one: Authentication): Problem[] {
  const { required, optional } = fieldsOfType[one.type];
  const missing = required.filter((field) => one[field] === undefined);
  const foreign = (Object.keys(one) as (keyof Authentication)[]).filter(
    (field) => field !== 'type' && !required.includes(field) && !optional.includes(field),
  );
  return [
    ...missing.map((field) => ({ path: field, message: `is missing; type ${one.type} needs it` })),
    ...foreign.map((field) => ({ path: field, message: foreignMessage(field, one.type) })),
  ];
}

function foreignMessage(field: keyof Authentication, type: Authentication['type']): string {
  const types = authenticationTypes.filter((each) => {
    const { required, optional } = fieldsOfType[each];
    return required.includes(field) || optional.includes(field);
  });
  return types.length > 2
    ? `cannot be combined with type ${type}; leave it out`
    : `requires type ${types.join(' or ')}; leave it out`;
}

function tokenRequestProblems(
  { token_url, extra_params }: Authentication,
  urlProblem: UrlRule,
  variables: ServerWide['variables'],
): Problem[] {
  const url = fillVariables(token_url ?? '', variables);
  const problems = Object.keys(extra_params ?? {})
    .filter((name) => isReadAs(name, clientTokenParams))
    .map((name) => ({ path: `extra_params.${name}`, message: 'the service sets this parameter itself; leave it out' }));
  if (url === '') return problems;
  if (placeholderNames(url).length > 0) return [...problems, { path: 'token_url', message: unfilled('token_url') }];
  const target = readUrl(url);
  if (!target) return [...problems, { path: 'token_url', message: `found ${shown(url)}; allowed: an https URL` }];
  const fault = urlProblem(target);
  const owned = ownedInQuery(target.search.slice(1), clientTokenParams).map(
    (name) => `contains the parameter ${shown(name)}, which the service sets itself`,
  );
  return [...problems, ...[...(fault ? [fault] : []), ...owned].map((message) => ({ path: 'token_url', message }))];
}

function credentialHeaderProblem(header: string): string | undefined {
  if (isDescribingHeader(header)) return 'the service sets this header itself; name another one';
  return headerNameProblem(header);
}

/** Checks the rules of `oauth` that its field types do not express; `oauth` may be incomplete. */
export function oauthProblems(oauth: { [field: string]: unknown }, urlProblem: UrlRule): Problem[] {
  return [
    ...providerUrlProblems('authorization_url', oauth, authorizationParams, urlProblem),
    ...providerUrlProblems('token_url', oauth, tokenParams, urlProblem),
    ...paramProblems('extra_params', oauth, authorizationParams),
    ...paramProblems('token_params', oauth, tokenParams),
    ...unfilledProblems(oauth),
  ];
}

/**
 * Rejects `{{NAME}}` in `oauth`. It is interpolated only in headers and in `authentication.token`; elsewhere it would
 * be sent literally.
 */
function unfilledProblems(oauth: { [field: string]: unknown }): Problem[] {
  const scopes = oauthSchema.shape.scopes.safeParse(oauth.scopes).data ?? [];
  const texts: [path: string, text: unknown][] = [
    ...plainFields.map((field): [string, unknown] => [field, oauth[field]]),
    ...paramFields.flatMap((field) =>
      Object.entries(paramsOf(field, oauth)).map(([name, value]): [string, unknown] => [`${field}.${name}`, value]),
    ),
    ...scopes.map((scope, index): [string, unknown] => [`scopes[${index}]`, scope]),
  ];
  return texts
    .filter(([, text]) => typeof text === 'string' && placeholderNames(text).length > 0)
    .map(([path]) => ({ path: `oauth.${path}`, message: unfilled(path) }));
}

const plainFields = ['authorization_url', 'token_url', 'client_id', 'client_secret', 'token_path'] as const;
const paramFields = ['extra_params', 'token_params'] as const;
type ParamField = (typeof paramFields)[number];

function unfilled(field: string): string {
  const what = '{{NAME}} is not replaced here; enter the value itself';
  return field === 'client_secret' ? `${what}, which is stored encrypted and never shown` : what;
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
  const url = readUrl(text.data);
  if (!url) return [{ path, message: `found ${shown(text.data)}; allowed: an https URL` }];
  const fault = urlProblem(url);
  return [
    ...(fault ? [{ path, message: fault }] : []),
    ...ownedInQuery(url.search.slice(1), owned).map((name) => ({
      path,
      message: `contains the parameter ${shown(name)}, which the service sets itself`,
    })),
  ];
}

function paramsOf(field: ParamField, oauth: { [field: string]: unknown }): Record<string, string> {
  return oauthSchema.shape[field].safeParse(oauth[field]).data ?? {};
}

function paramProblems(field: ParamField, oauth: { [field: string]: unknown }, owned: OwnedNames): Problem[] {
  return Object.keys(paramsOf(field, oauth))
    .filter((name) => isReadAs(name, owned))
    .map((name) => ({
      path: `oauth.${field}.${name}`,
      message: 'the service sets this parameter itself; leave it out',
    }));
}

type Raw = { [field: string]: unknown };

/**
 * Adds problems of the fields that apply to all tools. Returns those fields for the tool rules. Invalid fields are
 * omitted or replaced, so that each is reported only once.
 */
export function checkServerWide(
  raw: Raw,
  surroundings: Omit<ToolSurroundings, 'wide' | 'shared'>,
  problems: ProblemList,
): ServerWide {
  const variables = serverWideShape.variables.safeParse(raw.variables).data;
  checkVariables(variables, problems);
  const given = serverWideShape.headers.safeParse(raw.headers).data;
  const crowded = crowdedProblem(given);
  const tooMuch =
    crowded === undefined ? filledHeaderProblems(given, variables) : [{ path: 'headers', message: crowded }];
  problems.addAll(tooMuch);
  const headers = tooMuch.length === 0 ? given : undefined;
  const forward_headers = serverWideShape.forward_headers.safeParse(raw.forward_headers).data;
  const wide: ServerWide = {
    ...(variables && { variables }),
    ...(headers && { headers }),
    ...(forward_headers && { forward_headers }),
  };
  const inHeaders = problems.within((path) => `headers.${path}`);
  if (headers) checkHeaders(headers, { ...surroundings, wide }, inHeaders);
  if (forward_headers) problems.addAll(forwardProblems(forward_headers, surroundings.authentication, headers));
  const base = serverWideShape.base_url.safeParse(raw.base_url).data;
  if (base === undefined) return raw.base_url === undefined ? wide : { ...wide, base_url: placeholderBase };
  const tooLong = lengthProblem(filledLength(base, variables), maxUrlLength);
  const faults = tooLong === undefined ? baseUrlProblems(base, variables, surroundings) : [tooLong];
  for (const message of faults) problems.add(() => ({ path: 'base_url', message }));
  return { ...wide, base_url: faults.length > 0 ? placeholderBase : base };
}

/** Rejects forwarded headers that are credentials or that the configuration sets itself. */
function forwardProblems(
  names: readonly string[],
  authentication: ToolSurroundings['authentication'],
  shared: ServerWide['headers'] = {},
): Problem[] {
  const taken = credentialHeaders(authentication).union(new Set(Object.keys(shared).map(foldedHeader)));
  return names.flatMap((name, index) => {
    const folded = foldedHeader(name);
    const message =
      forwardedNameProblem(name) ??
      (taken.has(folded)
        ? 'this header is already in authentication, headers, or an earlier entry; leave it out'
        : undefined);
    taken.add(folded);
    return message === undefined ? [] : [{ path: `forward_headers[${index}]`, message }];
  });
}

/** Replaces an invalid base_url while the tools are checked. */
const placeholderBase = 'https://base.invalid';

function checkVariables(variables: ServerWide['variables'] = {}, problems: ProblemList): void {
  for (const [name, { value, enum: allowed }] of Object.entries(variables)) {
    const add = (field: string, message: string) =>
      problems.add(() => ({ path: `variables.${name}${field}`, message }));
    if (!secretNamePattern.test(name)) add('', 'allowed as a name: a letter or _, then up to 63 letters, digits and _');
    if (/\{\{|\}\}/.test(value)) add('.value', 'contains {{ or }}; variables cannot be nested');
    if (allowed && !allowed.includes(value))
      add('.value', `found ${shown(value)}; allowed by enum: ${allowed.slice(0, 20).map(shown).join(', ')}`);
  }
}

function baseUrlProblems(
  base: string,
  variables: ServerWide['variables'],
  { urlProblem }: Pick<ToolSurroundings, 'urlProblem'>,
): string[] {
  return [...bracesInUrl(base, new Set()), ...filledBaseProblems(fillVariables(base, variables), urlProblem)];
}

function filledBaseProblems(url: string, urlProblem: UrlRule): string[] {
  if (url.includes('?')) return ['has a query; allowed: https://host/path; put the query into the url of each tool'];
  // The tokens that are arguments are checked with each tool.
  const path = url.replace(/^[^:]*:\/\/[^/]*/, '');
  const tokens = [...path.matchAll(/:([A-Za-z_]\w*)/g)].map((match) => match[1] as string);
  const { template, problems } = parseUrlTemplate(url, tokens);
  if (!template) return problems;
  const fault = hostProblem(url, urlProblem);
  return fault === undefined ? [] : [fault];
}

/** Returns the texts of a credential that may contain placeholders, with the maximum length of each. */
function filledTextsOf(one: Authentication): { path: string; text: string; most: number }[] {
  const texts = [...filledFields, ...plainlyFilled].map((field) => ({
    path: field,
    text: one[field] ?? '',
    most: authenticationSchema.shape[field].unwrap().maxLength ?? 0,
  }));
  const scopes = (one.scopes ?? []).map((text, index) => ({ path: `scopes[${index}]`, text, most: mostScope }));
  const extra = Object.entries(one.extra_params ?? {}).map(([name, text]) => ({
    path: `extra_params.${name}`,
    text,
    most: mostExtra,
  }));
  return [...texts, ...scopes, ...extra];
}

/** Returns the fields of a credential that are too long after interpolation. Paths are relative to the credential. */
export function filledCredentialProblems(one: Authentication, variables: ServerWide['variables']): Problem[] {
  return filledTextsOf(one).flatMap(({ path, text, most }) =>
    problemAt(path, lengthProblem(filledLength(text, variables), most)),
  );
}

/** Credential fields that only variables can fill, besides scopes and extra parameters. */
const plainlyFilled = ['token_url', 'audience', 'resource', 'region', 'service'] as const;
