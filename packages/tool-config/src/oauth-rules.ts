import { toItemIndex } from '@toolhost/errors/dot-path';
import type { Problem } from '@toolhost/errors/errors';
import { describeValue } from '@toolhost/errors/problems';
import { parsePattern } from '@toolhost/json-schema/pattern-syntax';
import { type Authentications, isStored, toCredentialList } from './authentication.ts';
import { isReadAs, toOwnedNames } from './http/parameter-names.ts';
import { getPlaceholderNames, secretNamePattern } from './http/placeholders.ts';
import { parseUrl } from './http/read-url.ts';
import { getOAuthValues, type OAuth, type OAuthValueSource, oauthSchema, tokenParams } from './oauth.ts';
import { getListPath, parseValuePath, splitAtGroup, type ValuePath } from './oauth-values.ts';
import type { UrlRule } from './server-rules.ts';

type QuirkContext = {
  authentication: Authentications | undefined;
  urlProblem: UrlRule;
  /** True if browsers send this service cookies with a form from another site, which requires https. */
  acceptsFormPost: boolean;
};

const quirkFields = [
  'response_mode',
  'code_parameter',
  'callback_values',
  'redirect_name',
  'token_url',
  'refresh_url',
  'token_url_from',
  'token_params',
  'token_fields',
  'token_prefix',
  'userinfo_url',
  'values',
  'token_mode',
] as const;
type Quirks = Partial<Pick<OAuth, (typeof quirkFields)[number]>>;

/** Checks the rules of the fields of `oauth` for providers that deviate from OAuth; `oauth` may be incomplete. */
export function findQuirkProblems(oauth: { [field: string]: unknown }, context: QuirkContext): Problem[] {
  const quirks: Quirks = Object.fromEntries(
    quirkFields.map((field) => [field, oauthSchema.shape[field].safeParse(oauth[field]).data]),
  );
  return [
    ...findResponseProblems(quirks, context),
    ...findTokenUrlProblems(quirks, context),
    ...findPrefixProblems(quirks, context),
    ...findUserinfoProblems(quirks, context),
    ...findValueProblems(quirks, context),
    ...findPassthroughProblems(quirks),
  ].map(({ path, message }) => ({ path: `oauth.${path}`, message }));
}

/** Callback parameters that are never a value: they end the login or belong to this service. */
const callbackParams = toOwnedNames(['state', 'error', 'error_description', 'error_uri', 'iss']);
const fixedCallbackParams = toOwnedNames(['error', 'error_description', 'error_uri', 'iss']);

function findResponseProblems(
  { response_mode, code_parameter, callback_values = [], redirect_name = '', token_params = {} }: Quirks,
  { acceptsFormPost }: QuirkContext,
): Problem[] {
  const problems: Problem[] = [];
  const add = (path: string, message: string) => problems.push({ path, message });
  if (response_mode === 'form_post' && !acceptsFormPost)
    add('response_mode', 'form_post requires a service with an https BASE_URL; it is not available in local mode');
  if (code_parameter !== undefined && isReadAs(code_parameter, callbackParams))
    add('code_parameter', `found ${describeValue(code_parameter)}; allowed: the parameter with the code`);
  if (getPlaceholderNames(redirect_name).length > 0)
    add('redirect_name', '{{NAME}} is not replaced here; enter the value itself');
  const code = toOwnedNames([code_parameter ?? 'code']);
  const params = toOwnedNames(Object.keys(token_params));
  for (const [index, name] of callback_values.entries()) {
    const isUsed = isReadAs(name, tokenParams) || isReadAs(name, code) || isReadAs(name, fixedCallbackParams);
    if (isUsed) add(`callback_values[${index}]`, 'the service reads or sends this parameter itself; leave it out');
    else if (isReadAs(name, params)) add(`callback_values[${index}]`, 'is also in token_params; leave one of them out');
    else if (callback_values.indexOf(name) < index) add(`callback_values[${index}]`, 'is listed twice; leave one out');
  }
  return problems;
}

function findTokenUrlProblems(
  { token_url_from: source, token_url = '', refresh_url, code_parameter }: Quirks,
  { urlProblem }: QuirkContext,
): Problem[] {
  if (!source) return [];
  const problems: Problem[] = [];
  const add = (path: string, message: string) => problems.push({ path, message });
  const path = parseValuePath(source.from);
  if (path?.origin !== 'callback')
    add('token_url_from.from', `found ${describeValue(source.from)}; allowed: callback.NAME`);
  else if (isSecretParameter(path, code_parameter)) add('token_url_from.from', secretParameterMessage);
  for (const [index, host] of source.hosts.entries()) {
    const problem = getHostProblem(host, urlProblem, false);
    if (problem !== undefined) add(`token_url_from.hosts[${index}]`, problem);
  }
  if (!/^\/[\w.~!$&'()*+,;=:@%/-]*$/.test(source.path))
    add('token_url_from.path', `found ${describeValue(source.path)}; allowed: a path such as /oauth/v2/token`);
  const url = parseUrl(token_url);
  if (url && !source.hosts.includes(url.host))
    add('token_url_from.hosts', `does not contain ${describeValue(url.host)}, the host of token_url; add it`);
  if (refresh_url !== undefined)
    add('refresh_url', 'cannot be combined with token_url_from, which also applies to refreshes; leave it out');
  return problems;
}

function findPrefixProblems({ token_prefix }: Quirks, { authentication }: QuirkContext): Problem[] {
  if (token_prefix === undefined) return [];
  const login = toCredentialList(authentication).find((credential) => !isStored(credential));
  if (!login || login.type === 'Bearer' || login.type === 'ApiKey') return [];
  const message = `is for a header with the token; authentication sends it as ${login.type}. Leave it out, or use the type Bearer`;
  return [{ path: 'token_prefix', message }];
}

function findUserinfoProblems({ userinfo_url, values }: Quirks, { urlProblem }: QuirkContext): Problem[] {
  if (userinfo_url === undefined) return [];
  const add = (message: string) => [{ path: 'userinfo_url', message }];
  if (getPlaceholderNames(userinfo_url).length > 0) return add('{{NAME}} is not replaced here; enter the URL itself');
  const url = parseUrl(userinfo_url);
  if (!url) return add(`found ${describeValue(userinfo_url)}; allowed: an https URL`);
  const problem = urlProblem(url);
  if (problem !== undefined) return add(problem);
  const isRead = getOAuthValues({ values }).some(([, { from }]) => parseValuePath(from)?.origin === 'userinfo');
  return isRead ? [] : add('is read for no value; leave it out, or begin the path of a value with userinfo.');
}

function findValueProblems(quirks: Quirks, { urlProblem }: QuirkContext): Problem[] {
  const problems: Problem[] = [];
  let listPath: string | undefined;
  for (const [name, source] of getOAuthValues(quirks)) {
    const isText = typeof quirks.values?.[name] === 'string';
    const add = (field: string, message: string) =>
      problems.push({ path: `values.${name}${isText || field === '' ? '' : `.${field}`}`, message });
    if (!secretNamePattern.test(name)) add('', 'allowed as a name: a letter or _, then up to 63 letters, digits and _');
    const path = parseValuePath(source.from);
    const problem = path ? getPathProblem(path, quirks) : `found ${describeValue(source.from)}; ${allowedPaths}`;
    if (problem !== undefined) add('from', problem);
    const list = path && getListPath(path)?.join('.');
    if (list !== undefined && listPath !== undefined && list !== listPath)
      add(
        'from',
        'is in another list than the values before it; allowed: one list, of which the person chooses an entry',
      );
    listPath ??= list;
    for (const [index, host] of (source.hosts ?? []).entries()) {
      const hostProblem = getHostProblem(host, urlProblem, true);
      if (hostProblem !== undefined) add(`hosts[${index}]`, hostProblem);
    }
    const patternProblem = getPatternProblem(source);
    if (patternProblem !== undefined) add('pattern', patternProblem);
  }
  return problems;
}

const allowedPaths = 'allowed: callback.NAME, token.PATH, or userinfo.PATH';
const secretParameterMessage = 'the service reads this parameter itself; allowed: another parameter of the callback';
/** Fields of a token response that are credentials. They are sent only as the token. */
const secretFields = ['access_token', 'refresh_token', 'id_token'] as const;

function isSecretParameter({ names }: ValuePath, codeParameter = 'code'): boolean {
  const [name = ''] = names;
  return isReadAs(name, callbackParams) || isReadAs(name, toOwnedNames([codeParameter]));
}

function getPathProblem(path: ValuePath, { code_parameter, token_fields = {}, userinfo_url }: Quirks) {
  const { origin, names } = path;
  if (origin === 'callback') return isSecretParameter(path, code_parameter) ? secretParameterMessage : undefined;
  const last = names.at(-1) ?? '';
  if (origin === 'token') {
    const { access_token, refresh_token } = token_fields;
    return [...secretFields, access_token, refresh_token].includes(last)
      ? 'is a token; authentication sends it. Allowed: another field of the token response'
      : undefined;
  }
  if (userinfo_url === undefined) return 'needs userinfo_url, which is missing';
  const indexes = names.filter((name) => toItemIndex(name) !== undefined);
  return indexes.length > 1 || (indexes.length === 1 && indexes[0] !== '0')
    ? 'allowed: the index 0 of one list, for the entry that the person chooses'
    : undefined;
}

/** Matches a host of at least two labels, as URLs contain it, with `*` allowed as the first of three. */
const hostPattern = /^(?:\*\.)?(?!\*)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$/;

function getHostProblem(host: string, urlProblem: UrlRule, allowsLabel: boolean): string | undefined {
  const url = parseUrl(`https://${host.replace('*', 'x')}`);
  const isHost = hostPattern.test(host) && url?.host === host.replace('*', 'x');
  if (!isHost || (host.startsWith('*') && !allowsLabel)) {
    const star = allowsLabel ? ', with * for one label at the beginning' : '';
    return `found ${describeValue(host)}; allowed: a host name in lower case${star}, without a scheme or a port`;
  }
  return urlProblem(url);
}

function getPatternProblem({ pattern }: OAuthValueSource): string | undefined {
  if (pattern === undefined) return undefined;
  const parsed = parsePattern(pattern);
  if ('fault' in parsed) return parsed.fault;
  return splitAtGroup(pattern)
    ? undefined
    : 'has no first group that always matches; allowed: a pattern such as stores/([a-z0-9]+), without | outside of the group';
}

/** With passthrough the agent holds the tokens, so this service stores nothing of a login. */
function findPassthroughProblems(quirks: Quirks): Problem[] {
  if (quirks.token_mode !== 'passthrough') return [];
  return (['values', 'callback_values', 'token_url_from'] as const)
    .filter((field) => quirks[field] !== undefined)
    .map((path) => ({
      path,
      message: 'cannot be combined with token_mode passthrough, which stores nothing of a login; leave one of them out',
    }));
}
