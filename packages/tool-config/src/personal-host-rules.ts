import type { Problem } from '@toolhost/errors/errors';
import { type Authentications, isStored, placeholderFields, sealedFields, toCredentialList } from './authentication.ts';
import { type OriginTemplate, parseOriginTemplate } from './http/origin-template.ts';
import { getPlaceholderNames } from './http/placeholders.ts';
import { findSuffixSection } from './http/public-suffix.ts';
import type { ServerWide } from './server-wide.ts';

/** Values of people that a configuration declares. */
export type PersonalValues = {
  /** Names of `login.fields`, which exist before the login at the provider. */
  fieldNames: ReadonlySet<string>;
  /** Names of `login.fields` and `oauth.values`. */
  names: ReadonlySet<string>;
  /** Names of fields that people may leave empty. */
  optionalNames: ReadonlySet<string>;
  /** Hosts of each value of `oauth.values` that may be a whole origin. */
  originHosts: ReadonlyMap<string, readonly string[]>;
};

export const noPersonalValues: PersonalValues = {
  fieldNames: new Set(),
  names: new Set(),
  optionalNames: new Set(),
  originHosts: new Map(),
};

/** Maximum length of a host that a value of 63 characters may become part of. */
const maxSuffixLength = 253 - 64;

/** Returns the problem of an absolute URL whose host contains `{{NAME}}`; undefined without one. */
export function findPersonalHostProblem(url: string, personal: PersonalValues): string | undefined {
  const template = parseOriginTemplate(url);
  if (template) return findOriginProblem(template, personal);
  const authority = /^[^:/]*:\/\/[^/?#]*/.exec(url)?.[0] ?? '';
  const name = getPlaceholderNames(authority).find((placeholder) => personal.names.has(placeholder));
  return name === undefined ? undefined : formatLabelProblem(name);
}

function findOriginProblem(template: OriginTemplate, personal: PersonalValues): string | undefined {
  const { name, suffix } = template;
  const { names, optionalNames, originHosts } = personal;
  if (!names.has(name) && suffix !== undefined)
    return `{{${name}}} is in the host, where only variables are allowed; declare it in variables`;
  if (!names.has(name))
    return `begins with {{${name}}}, which is not a variable; allowed: https://host/path?query, or a value of oauth.values with hosts`;
  if (optionalNames.has(name))
    return `{{${name}}} is in the host, but the field is optional; make it required, or give it a default`;
  if (suffix !== undefined) return findSuffixProblem(name, suffix);
  if (originHosts.has(name)) return undefined;
  return `{{${name}}} is a whole origin, which only a value of oauth.values with hosts may be; declare its hosts, or write a fixed suffix such as https://{{${name}}}.example.com`;
}

function formatLabelProblem(name: string): string {
  return `{{${name}}} may only be the whole first label of a host, in front of a fixed suffix such as https://{{${name}}}.example.com`;
}

function findSuffixProblem(name: string, text: string): string | undefined {
  const suffix = text.replace(/\.$/, '');
  if (suffix.length > maxSuffixLength)
    return `has a host that is too long; allowed after {{${name}}}: ${maxSuffixLength} characters`;
  if (!suffix.includes('.'))
    return `the host needs at least two fixed labels after {{${name}}}, such as https://{{${name}}}.example.com`;
  if (findSuffixSection(suffix) !== 'icann') return undefined;
  return `anyone can register a name below ${suffix}, so {{${name}}} could lead to any host; write the domain of the API, such as https://{{${name}}}.example.${suffix}`;
}

/** Returns the warning about a URL whose host people complete below a suffix that several owners share. */
export function findSharedSuffix(url: string): string | undefined {
  const { suffix, name } = parseOriginTemplate(url) ?? {};
  return suffix !== undefined && findSuffixSection(suffix) === 'private'
    ? `customers of one company get names below ${suffix}; make sure that every host below it belongs to the API, because a person who enters another name in {{${name}}} sends their values there`
    : undefined;
}

/** Returns URLs without placeholders in the host that stand for all hosts of a URL, for rules about hosts. */
export function toProbeUrls(url: string, { originHosts }: PersonalValues): string[] {
  const template = parseOriginTemplate(url);
  if (!template) return [url];
  const path = url.slice(template.length);
  if (template.suffix !== undefined) return [template.probe + path];
  return (originHosts.get(template.name) ?? []).map((host) => `https://${host.replaceAll('*', 'x')}${path}`);
}

/** Fields of a tool that are sent to its host. Headers include those of the server. */
type SentFields = {
  url: string;
  headers: Readonly<Record<string, string>>;
  body_template?: unknown;
  constants: readonly { name: string; value: unknown }[];
  authentication: Authentications | undefined;
};

/**
 * Returns the problems of secrets that a tool would send to a host that depends on a person, because the owner of that
 * host could read them. Paths are relative to the tool.
 */
export function findSecretsForPersonalHost(
  { url, headers, body_template, constants, authentication }: SentFields,
  personal: PersonalValues = noPersonalValues,
  variables: ServerWide['variables'] = {},
): Problem[] {
  const template = parseOriginTemplate(url);
  if (!template) return [];
  const host = template.suffix === undefined ? template.origin : template.host;
  const values: [path: string, value: unknown][] = [
    ['url', url],
    ...Object.entries(headers).map(([name, value]): [string, unknown] => [`headers.${name}`, value]),
    ['body_template', body_template],
    ...constants.map(({ name, value }): [string, unknown] => [`input_schema.${name}.value`, value]),
  ];
  const isSecret = (name: string) => !Object.hasOwn(variables, name) && !personal.names.has(name);
  const problems = values.flatMap(([path, value]) =>
    getPlaceholderNames(value)
      .filter(isSecret)
      .map((name) => ({ path, message: `would send the secret ${name} to ${host}, ${advice}` })),
  );
  const hasStoredCredential = toCredentialList(authentication).some((credential) => {
    if (!isStored(credential)) return false;
    const isLiteral = sealedFields({ authentication: credential }).length > 0;
    const names = placeholderFields.flatMap((field) => getPlaceholderNames(credential[field]));
    return isLiteral || credential.type === 'ClientCredentials' || names.some(isSecret);
  });
  if (hasStoredCredential)
    problems.push({
      path: 'url',
      message: `would send the stored credential to ${host}, ${advice}, or set "credential": "none"`,
    });
  return problems;
}

const advice =
  'which each person chooses; such a host gets only values of login.fields and the token of the login. Use a fixed host';
