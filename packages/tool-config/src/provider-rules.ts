import type { Problem } from '@toolhost/errors/errors';
import { describeValue } from '@toolhost/errors/problems';
import { parseOriginTemplate } from './http/origin-template.ts';
import { findOwnedInQuery, isReadAs, type OwnedNames, toOwnedNames } from './http/parameter-names.ts';
import { getPlaceholderNames, interpolatePlaceholders } from './http/placeholders.ts';
import { parseUrl } from './http/read-url.ts';
import { authorizationParams, oauthSchema, tokenParams, tokenRequestFields } from './oauth.ts';
import { findPersonalHostProblem, noPersonalValues, type PersonalValues, toProbeUrls } from './personal-host-rules.ts';
import type { UrlRule } from './server-rules.ts';

/** Checks the rules of `oauth` that its field types do not express; `oauth` may be incomplete. */
export function findOauthProblems(
  oauth: { [field: string]: unknown },
  urlProblem: UrlRule,
  personal = noPersonalValues,
): Problem[] {
  const context = { urlProblem, personal: { ...personal, names: personal.fieldNames } };
  return [
    ...findProviderUrlProblems('authorization_url', oauth, authorizationParams, context),
    ...findProviderUrlProblems('token_url', oauth, tokenParams, context),
    ...findProviderUrlProblems('refresh_url', oauth, tokenParams, context),
    ...findRefreshUrlProblems(oauth),
    ...findTokenFieldProblems(oauth),
    ...findParamProblems('extra_params', oauth, authorizationParams),
    ...findParamProblems('token_params', oauth, tokenParams),
    ...findUnsupportedPlaceholders(oauth, personal),
  ];
}

/** Rejects a refresh URL on another host, because the client secret is sent only to the origin of `token_url`. */
function findRefreshUrlProblems({ token_url, refresh_url }: { [field: string]: unknown }): Problem[] {
  const [tokenOrigin, refreshOrigin] = [token_url, refresh_url].map((url) =>
    typeof url === 'string' ? (parseOriginTemplate(url)?.origin ?? parseUrl(url)?.origin) : undefined,
  );
  if (tokenOrigin === undefined || refreshOrigin === undefined || tokenOrigin === refreshOrigin) return [];
  const message = `found the origin ${describeValue(refreshOrigin)}; allowed: that of token_url, which the client secret is sent to`;
  return [{ path: 'oauth.refresh_url', message }];
}

/** Rejects names in `token_fields` under which the request would contain two fields. */
function findTokenFieldProblems(oauth: { [field: string]: unknown }): Problem[] {
  const names = oauthSchema.shape.token_fields.safeParse(oauth.token_fields).data ?? {};
  const params = Object.keys(getParams('token_params', oauth));
  return tokenRequestFields.flatMap((field) => {
    const name = field === 'code_verifier' ? undefined : names[field];
    if (name === undefined) return [];
    const others = tokenRequestFields
      .filter((other) => other !== field)
      .map((other) => (other === 'code_verifier' ? other : (names[other] ?? other)));
    const owned = toOwnedNames([name]);
    const isTaken = [...others, ...params].some((other) => isReadAs(other, owned));
    const message = `found ${describeValue(name)}, which the request contains already; allowed: another name`;
    return isTaken ? [{ path: `oauth.token_fields.${field}`, message }] : [];
  });
}

/**
 * Rejects `{{NAME}}` in `oauth`, where it would be sent literally. Only fields of `login` are interpolated, and only in
 * the URLs of the provider.
 */
function findUnsupportedPlaceholders(oauth: { [field: string]: unknown }, personal: PersonalValues): Problem[] {
  const scopes = oauthSchema.shape.scopes.safeParse(oauth.scopes).data ?? [];
  const texts: [path: string, text: unknown][] = [
    ...plainFields.map((field): [string, unknown] => [field, oauth[field]]),
    ...paramFields.flatMap((field) =>
      Object.entries(getParams(field, oauth)).map(([name, value]): [string, unknown] => [`${field}.${name}`, value]),
    ),
    ...scopes.map((scope, index): [string, unknown] => [`scopes[${index}]`, scope]),
  ];
  return texts
    .filter(([path, text]) => {
      const names = typeof text === 'string' ? getPlaceholderNames(text) : [];
      return names.some((name) => !(path.endsWith('_url') && personal.fieldNames.has(name)));
    })
    .map(([path]) => ({ path: `oauth.${path}`, message: formatUnsupportedPlaceholder(path) }));
}

const unsupported = '{{NAME}} is not replaced here; enter the value itself';
const unsupportedInUrl = `${unsupported}, or use a field of login.fields`;

const plainFields = [
  'authorization_url',
  'token_url',
  'refresh_url',
  'client_id',
  'client_secret',
  'token_path',
] as const;
const paramFields = ['extra_params', 'token_params'] as const;
type ParamField = (typeof paramFields)[number];

export function formatUnsupportedPlaceholder(field: string): string {
  const message = field.endsWith('_url') ? unsupportedInUrl : unsupported;
  return field === 'client_secret' ? `${message}, which is stored encrypted and never shown` : message;
}

function findProviderUrlProblems(
  field: 'authorization_url' | 'token_url' | 'refresh_url',
  oauth: { [field: string]: unknown },
  owned: OwnedNames,
  { urlProblem, personal }: { urlProblem: UrlRule; personal: PersonalValues },
): Problem[] {
  const path = `oauth.${field}`;
  const { data: text } = oauthSchema.shape[field].safeParse(oauth[field]);
  if (text === undefined) return [];
  const names = getPlaceholderNames(text);
  if (names.some((name) => !personal.names.has(name))) return [];
  const placeProblem = findPersonalHostProblem(text, personal) ?? findQueryNameProblem(text);
  if (placeProblem !== undefined) return [{ path, message: placeProblem }];
  const [probe = text] = toProbeUrls(text, personal);
  const url = parseUrl(interpolatePlaceholders(probe, () => 'x'));
  if (!url) return [{ path, message: `found ${describeValue(text)}; allowed: an https URL` }];
  const problem = urlProblem(url);
  return [
    ...(problem ? [{ path, message: problem }] : []),
    ...findOwnedInQuery(url.search.slice(1), owned).map((name) => ({
      path,
      message: `contains the parameter ${describeValue(name)}, which the service sets itself`,
    })),
  ];
}

/** Rejects a value of a person that could add a parameter to a query, or that would not be sent. */
function findQueryNameProblem(url: string): string | undefined {
  return /[?&][^=&#]*\{\{|#.*\{\{/.test(url) ? 'a field is not allowed in a query name or a fragment' : undefined;
}

function getParams(field: ParamField, oauth: { [field: string]: unknown }): Record<string, string> {
  return oauthSchema.shape[field].safeParse(oauth[field]).data ?? {};
}

function findParamProblems(field: ParamField, oauth: { [field: string]: unknown }, owned: OwnedNames): Problem[] {
  return Object.keys(getParams(field, oauth))
    .filter((name) => isReadAs(name, owned))
    .map((name) => ({
      path: `oauth.${field}.${name}`,
      message: 'the service sets this parameter itself; leave it out',
    }));
}
