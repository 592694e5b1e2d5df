import type { Problem } from '@toolhost/errors/errors';
import { findBracesInUrl } from '@toolhost/errors/input-errors';
import { describeValue, type ProblemList } from '@toolhost/errors/problems';
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
  fieldsByType,
  isStored,
  maxExtraParamLength,
  maxScopeLength,
  noCredential,
  placeholderFields,
  toCredentialList,
} from './authentication.ts';
import {
  getForwardedNameProblem,
  getHeaderNameProblem,
  isDescribingHeader,
  isHeaderName,
  isHeaderValue,
} from './http/headers.ts';
import { findOwnedInQuery, foldHeaderName, isReadAs, toOwnedNames } from './http/parameter-names.ts';
import {
  getPlaceholderLimitProblem,
  getPlaceholderNames,
  hasMalformedPlaceholder,
  secretNamePattern,
} from './http/placeholders.ts';
import { parseUrl } from './http/read-url.ts';
import { parseUrlTemplate } from './http/url-template.ts';
import { findUnfilledCredentials } from './login-rules.ts';
import { clientTokenParams } from './oauth.ts';
import { findPersonalHostProblem, noPersonalValues, type PersonalValues } from './personal-host-rules.ts';
import { formatUnsupportedPlaceholder } from './provider-rules.ts';
import { interpolateVariables, type ServerWide, serverWideShape } from './server-wide.ts';
import { checkConfigLength, findHeaderLengthProblems, getInterpolatedLength, toSizeProblems } from './sizes.ts';
import { maxUrlLength } from './tool.ts';
import { checkHeaders, getHostProblem, type ToolContext } from './tool-rules.ts';

/** Returns the reason why this deployment may not call a URL, or undefined if it may. */
export type UrlRule = (url: URL) => string | undefined;

/** Checks the rules of `authentication` that its field types do not express. */
export function findAuthenticationProblems(authentication: Authentications, context: CredentialContext): Problem[] {
  const problems = findCredentialProblems(authentication, 'authentication', context);
  if (context.hasPeople) problems.push(...findUnfilledCredentials(authentication));
  else if (Array.isArray(authentication))
    problems.push(...findCallerTokenProblems(toCredentialList(authentication), context.hasLogin));
  return problems;
}

/**
 * Checks the rules of `credentials`: these credentials must be stored, and so must `authentication` next to them. A
 * stored credential is for callers with an API key, not for everyone who can log in or who sends an unverified token.
 */
export function findNamedCredentialProblems(
  { authentication, credentials = {} }: Credentials,
  context: CredentialContext,
): Problem[] {
  const named = Object.entries(credentials);
  if (named.length === 0) return [];
  const problems = named.flatMap(([name, authentications]) => {
    const at = `credentials.${name}`;
    const isName = credentialNamePattern.test(name) && name !== noCredential;
    const allowed = `allowed as a name: a letter, then up to 39 letters, digits, _ and -, except ${noCredential}`;
    return [
      ...(isName ? [] : [{ path: at, message: allowed }]),
      ...findCredentialProblems(authentications, at, context),
      ...findUnstored(authentications, at, 'only authentication can send the caller token; store a credential here'),
    ];
  });
  if (context.hasLogin)
    problems.push({
      path: 'credentials',
      message:
        'cannot be combined with oauth, because everyone who can log in could use them; create a separate server for the tools that need them',
    });
  else if (authentication && !context.hasPeople) {
    const reason = 'with credentials, callers send an API key and no token; store a credential';
    problems.push(...findUnstored(authentication, 'authentication', reason));
  }
  return problems;
}

function findUnstored(authentications: Authentications, at: string, reason: string): Problem[] {
  return toCredentialList(authentications).flatMap((credential, index) =>
    isStored(credential)
      ? []
      : [{ path: `${credentialPath(authentications, index, at)}.token`, message: `is missing; ${reason}` }],
  );
}

function findCredentialProblems(authentications: Authentications, at: string, context: CredentialContext): Problem[] {
  const all = toCredentialList(authentications);
  const problems = all.flatMap((credential, index) =>
    findFieldProblems(credential, context).map(({ path, message }) => ({
      path: `${credentialPath(authentications, index, at)}.${path}`,
      message,
    })),
  );
  for (const [index, credential] of all.entries()) {
    const other = all.slice(0, index).findIndex((earlier) => isSameLocation(earlier, credential));
    const message = `goes to the same ${getLocationName(credential)} as entry ${other}; change one of the two`;
    if (other >= 0) problems.push({ path: credentialPath(authentications, index, at), message });
  }
  return problems;
}

/** Settings that the credential rules depend on. */
type CredentialContext = {
  /** True if the server has `oauth`. */
  hasLogin: boolean;
  /** True if the server has `login` without `oauth`. */
  hasPeople?: boolean;
  urlProblem: UrlRule;
  variables: ServerWide['variables'];
  personal?: PersonalValues | undefined;
};

function isSameLocation(credential: Authentication, other: Authentication): boolean {
  const [headers, otherHeaders] = [credentialHeaders(credential), credentialHeaders(other)];
  if (headers.intersection(otherHeaders).size > 0) return true;
  if (credential.type === 'Cookie' && other.type === 'Cookie')
    return isReadAs(other.cookie ?? '', toOwnedNames([credential.cookie ?? '']));
  const key = credentialQueryKey(other);
  return key !== undefined && isReadAs(key, credentialQueryNames(credential));
}

function getLocationName({ type }: Authentication): string {
  if (type === 'QueryParam') return 'query parameter';
  return type === 'Cookie' ? 'cookie' : 'header';
}

/** Checks that at most one credential comes from the caller, because a caller sends at most one token. */
function findCallerTokenProblems(all: readonly Authentication[], hasLogin: boolean): Problem[] {
  const callerEntries = all.flatMap((credential, index) => (isStored(credential) ? [] : [index]));
  const createProblem = (index: number | undefined, message: string) => ({
    path: `authentication[${index}].token`,
    message,
  });
  if (callerEntries.length > 1)
    return [
      createProblem(
        callerEntries[1],
        `is missing; entry ${callerEntries[0]} already sends the caller token, so store a credential`,
      ),
    ];
  if (hasLogin && callerEntries.length === 0)
    return [{ path: 'authentication', message: 'no entry sends the login token; leave token out of one entry' }];
  if (!hasLogin && callerEntries.length === 1 && all.length > 1) {
    return [
      createProblem(
        callerEntries[0],
        'is missing; with stored credentials, callers send an API key and no token; store a credential, or set oauth',
      ),
    ];
  }
  return [];
}

/** Checks one credential. Paths are relative to it. */
function findFieldProblems(credential: Authentication, context: CredentialContext): Problem[] {
  const { urlProblem, variables, personal = noPersonalValues } = context;
  const header = credentialHeader(credential);
  const headerProblem = header === undefined ? undefined : getCredentialHeaderProblem(header);
  const lengthProblems = findLengthProblems(credential, variables);
  const problems = [
    ...findUnsupportedFields(credential),
    ...(headerProblem ? [{ path: 'header', message: headerProblem }] : []),
    ...lengthProblems,
  ];
  // The other rules interpolate the variables, which a text that is too long must not reach.
  if (lengthProblems.length > 0) return problems;
  const key = credentialQueryKey(credential);
  if (key !== undefined && !/^[A-Za-z0-9_.~-]+$/.test(key)) {
    problems.push({ path: 'query_key', message: `found ${describeValue(key)}; allowed: letters, digits, _ . ~ -` });
  }
  if (credential.cookie !== undefined && !isHeaderName(credential.cookie)) {
    problems.push({
      path: 'cookie',
      message: `found ${describeValue(credential.cookie)}; allowed: letters, digits and !#$%&'*+-.^_\`|~`,
    });
  }
  for (const field of placeholderFields) {
    const value = interpolateVariables(credential[field] ?? '', variables);
    const isText = field === 'user' || field === 'password' ? !/\p{Cc}/u.test(value) : isHeaderValue(value);
    if (hasMalformedPlaceholder(value) || !isText)
      problems.push({ path: field, message: 'allowed: one line of visible text, or {{NAME}} with a secret name' });
  }
  if (interpolateVariables(credential.user ?? '', variables).includes(':'))
    problems.push({ path: 'user', message: 'contains a colon, which Basic cannot send in a user name (RFC 7617, 2)' });
  for (const field of ['region', 'service'] as const) {
    const value = interpolateVariables(credential[field] ?? 'x', variables);
    if (!/^[a-z0-9-]+$/.test(value))
      problems.push({
        path: field,
        message: `found ${describeValue(value)}; allowed: lowercase letters, digits and -`,
      });
  }
  if (credential.type === 'Basic') problems.push(...findBasicProblems(credential));
  if (credential.type === 'ClientCredentials')
    problems.push(
      ...findTokenRequestProblems(credential, urlProblem, variables),
      ...findSharedTokenProblems(credential, personal),
    );
  return problems;
}

/** Checks that a Basic credential is either a token or a user with a password. */
function findBasicProblems({ token, user, password }: Authentication): Problem[] {
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

function findUnsupportedFields(credential: Authentication): Problem[] {
  const { required, optional } = fieldsByType[credential.type];
  const missing = required.filter((field) => credential[field] === undefined);
  const unsupported = (Object.keys(credential) as (keyof Authentication)[]).filter(
    (field) => field !== 'type' && !required.includes(field) && !optional.includes(field),
  );
  return [
    ...missing.map((field) => ({ path: field, message: `is missing; type ${credential.type} needs it` })),
    ...unsupported.map((field) => ({ path: field, message: formatUnsupportedField(field, credential.type) })),
  ];
}

function formatUnsupportedField(field: keyof Authentication, type: Authentication['type']): string {
  const types = authenticationTypes.filter((candidate) => {
    const { required, optional } = fieldsByType[candidate];
    return required.includes(field) || optional.includes(field);
  });
  return types.length > 2
    ? `cannot be combined with type ${type}; leave it out`
    : `requires type ${types.join(' or ')}; leave it out`;
}

function findTokenRequestProblems(
  { token_url, extra_params }: Authentication,
  urlProblem: UrlRule,
  variables: ServerWide['variables'],
): Problem[] {
  const url = interpolateVariables(token_url ?? '', variables);
  const problems = Object.keys(extra_params ?? {})
    .filter((name) => isReadAs(name, clientTokenParams))
    .map((name) => ({ path: `extra_params.${name}`, message: 'the service sets this parameter itself; leave it out' }));
  if (url === '') return problems;
  if (getPlaceholderNames(url).length > 0)
    return [...problems, { path: 'token_url', message: formatUnsupportedPlaceholder('token_url') }];
  const target = parseUrl(url);
  if (!target)
    return [...problems, { path: 'token_url', message: `found ${describeValue(url)}; allowed: an https URL` }];
  const problem = urlProblem(target);
  const owned = findOwnedInQuery(target.search.slice(1), clientTokenParams).map(
    (name) => `contains the parameter ${describeValue(name)}, which the service sets itself`,
  );
  return [...problems, ...[...(problem ? [problem] : []), ...owned].map((message) => ({ path: 'token_url', message }))];
}

/** Rejects values of people in a token request, because all callers share its token. */
function findSharedTokenProblems(credential: Authentication, { names }: PersonalValues): Problem[] {
  return placeholderFields.flatMap((field) => {
    const name = getPlaceholderNames(credential[field]).find((placeholder) => names.has(placeholder));
    if (name === undefined) return [];
    const message = `{{${name}}} belongs to one person, but all callers share the token of ClientCredentials; use a stored secret`;
    return [{ path: field, message }];
  });
}

function getCredentialHeaderProblem(header: string): string | undefined {
  if (isDescribingHeader(header)) return 'the service sets this header itself; name another one';
  return getHeaderNameProblem(header);
}

type Raw = { [field: string]: unknown };

/**
 * Adds problems of the fields that apply to all tools. Returns those fields for the tool rules. Invalid fields are
 * omitted or replaced, so that each is reported only once.
 */
export function checkServerWide(
  raw: Raw,
  toolContext: Omit<ToolContext, 'serverWide' | 'sharedHeaders'>,
  problems: ProblemList,
): ServerWide {
  const variables = serverWideShape.variables.safeParse(raw.variables).data;
  checkVariables(variables, problems);
  const rawHeaders = serverWideShape.headers.safeParse(raw.headers).data;
  const limitProblem = getPlaceholderLimitProblem(rawHeaders);
  const headerProblems =
    limitProblem === undefined
      ? findHeaderLengthProblems(rawHeaders, variables)
      : [{ path: 'headers', message: limitProblem }];
  problems.addAll(headerProblems);
  const headers = headerProblems.length === 0 ? rawHeaders : undefined;
  const forward_headers = serverWideShape.forward_headers.safeParse(raw.forward_headers).data;
  const serverWide: ServerWide = {
    ...(variables && { variables }),
    ...(headers && { headers }),
    ...(forward_headers && { forward_headers }),
  };
  const inHeaders = problems.nested((path) => `headers.${path}`);
  if (headers) checkHeaders(headers, { ...toolContext, serverWide }, inHeaders);
  if (forward_headers) problems.addAll(findForwardProblems(forward_headers, toolContext.authentication, headers));
  const base = serverWideShape.base_url.safeParse(raw.base_url).data;
  if (base === undefined) return raw.base_url === undefined ? serverWide : { ...serverWide, base_url: placeholderBase };
  const lengthMessage = checkConfigLength(getInterpolatedLength(base, variables), maxUrlLength);
  const messages = lengthMessage === undefined ? findBaseUrlProblems(base, variables, toolContext) : [lengthMessage];
  for (const message of messages) problems.add(() => ({ path: 'base_url', message }));
  return { ...serverWide, base_url: messages.length > 0 ? placeholderBase : base };
}

/** Rejects forwarded headers that are credentials or that the configuration sets itself. */
function findForwardProblems(
  names: readonly string[],
  authentication: ToolContext['authentication'],
  shared: ServerWide['headers'] = {},
): Problem[] {
  const usedHeaders = credentialHeaders(authentication).union(new Set(Object.keys(shared).map(foldHeaderName)));
  return names.flatMap((name, index) => {
    const folded = foldHeaderName(name);
    const message =
      getForwardedNameProblem(name) ??
      (usedHeaders.has(folded)
        ? 'this header is already in authentication, headers, or an earlier entry; leave it out'
        : undefined);
    usedHeaders.add(folded);
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
      add(
        '.value',
        `found ${describeValue(value)}; allowed by enum: ${allowed.slice(0, 20).map(describeValue).join(', ')}`,
      );
  }
}

function findBaseUrlProblems(
  base: string,
  variables: ServerWide['variables'],
  context: Pick<ToolContext, 'urlProblem' | 'personal'>,
): string[] {
  return [...findBracesInUrl(base, new Set()), ...findBaseProblems(interpolateVariables(base, variables), context)];
}

function findBaseProblems(url: string, context: Pick<ToolContext, 'urlProblem' | 'personal'>): string[] {
  const personalProblem = findPersonalHostProblem(url, context.personal ?? noPersonalValues);
  if (personalProblem !== undefined) return [personalProblem];
  if (url.includes('?')) return ['has a query; allowed: https://host/path; put the query into the url of each tool'];
  // Tokens such as `:id` are checked with each tool.
  const path = url.replace(/^[^:]*:\/\/[^/]*/, '');
  const tokens = [...path.matchAll(/:([A-Za-z_]\w*)/g)].map((match) => match[1] as string);
  const { template, problems } = parseUrlTemplate(url, tokens);
  if (!template) return problems;
  const problem = getHostProblem(url, context);
  return problem === undefined ? [] : [problem];
}

/** Returns the texts of a credential that may contain placeholders, with the maximum length of each. */
function getPlaceholderTexts(credential: Authentication): { path: string; text: string; maxLength: number }[] {
  const texts = [...placeholderFields, ...variableOnlyFields].map((field) => ({
    path: field,
    text: credential[field] ?? '',
    maxLength: authenticationSchema.shape[field].unwrap().maxLength ?? 0,
  }));
  const scopes = (credential.scopes ?? []).map((text, index) => ({
    path: `scopes[${index}]`,
    text,
    maxLength: maxScopeLength,
  }));
  const extra = Object.entries(credential.extra_params ?? {}).map(([name, text]) => ({
    path: `extra_params.${name}`,
    text,
    maxLength: maxExtraParamLength,
  }));
  return [...texts, ...scopes, ...extra];
}

/** Returns the fields of a credential that are too long after interpolation. Paths are relative to the credential. */
export function findLengthProblems(credential: Authentication, variables: ServerWide['variables']): Problem[] {
  return getPlaceholderTexts(credential).flatMap(({ path, text, maxLength }) =>
    toSizeProblems(path, checkConfigLength(getInterpolatedLength(text, variables), maxLength)),
  );
}

/** Credential fields that only variables can fill, besides scopes and extra parameters. */
const variableOnlyFields = ['token_url', 'audience', 'resource', 'region', 'service'] as const;
