import { z } from 'zod';
import { type Credentials, isStored, listCredentials, placeholderFields } from './authentication.ts';
import { isFixedOrigin, parseOriginTemplate } from './http/origin-template.ts';
import { foldHeaderName } from './http/parameter-names.ts';
import {
  getPlaceholderNames,
  interpolateDeep,
  interpolatePlaceholders,
  somePlaceholder,
  someString,
} from './http/placeholders.ts';
import { parseUrl } from './http/read-url.ts';
import { getConstants, withConstants } from './input-schema.ts';
import { findPersonalOrigins, getPersonalNames, type PersonalSources } from './personal-values.ts';
import type { ServerConfig } from './server-config.ts';
import { maxUrlLength, staticHeaders, type Tool } from './tool.ts';

export const maxVariableLength = 500;

/** Variable of a configuration. Everyone who may read the configuration can see its value. */
export const variableSchema = z.strictObject({
  value: z
    .string()
    .max(maxVariableLength)
    .regex(/^[^\p{Cc}]*$/u, 'allowed: one line of text')
    .describe('Text that replaces {{NAME}}.'),
  description: z.string().max(500).optional().describe('Purpose of the variable, for people.'),
  enum: z.array(z.string().max(500)).min(1).max(100).optional().describe('The only values allowed.'),
});

export const maxVariables = 100;

/** Server fields that apply to all its tools. */
export const serverWideShape = {
  base_url: z.string().min(1).max(maxUrlLength).optional().describe('Base URL of tools whose url begins with a slash.'),
  headers: staticHeaders
    .optional()
    .describe('Static headers of every tool. A header of the tool itself takes precedence.'),
  forward_headers: z
    .array(z.string().min(1).max(100))
    .min(1)
    .max(20)
    .optional()
    .describe(
      'MCP client request headers that every tool forwards to the upstream, such as X-Request-Id, X-Tenant, or Accept-Language.',
    ),
  variables: z
    .record(z.string(), variableSchema)
    .refine((named) => Object.keys(named).length <= maxVariables, `allowed: at most ${maxVariables} variables`)
    .optional()
    .describe(
      'Values that replace {{NAME}} in base_url, tool URLs, headers, constants, and bodies. They are not secret.',
    ),
};

export const variableFields = Object.keys(variableSchema.shape);

/** Fields of a configuration that apply to all its tools. */
export type ServerWide = z.infer<z.ZodObject<typeof serverWideShape>>;

/** Interpolates the variables into a text. Other placeholders are secrets and remain. */
export function interpolateVariables(text: string, variables: ServerWide['variables']): string {
  return variables === undefined ? text : interpolatePlaceholders(text, createVariableResolver(variables));
}

/** Interpolates the variables into the strings of a JSON value. */
export function interpolateVariablesIn(value: unknown, variables: ServerWide['variables']): unknown {
  return variables === undefined ? value : interpolateDeep(value, createVariableResolver(variables));
}

function createVariableResolver(variables: NonNullable<ServerWide['variables']>): (name: string) => string {
  return (name) => (Object.hasOwn(variables, name) ? (variables[name]?.value ?? '') : `{{${name}}}`);
}

/** Returns the absolute URL of a tool, with the variables interpolated. */
export function toAbsoluteUrl(url: string, serverWide: ServerWide): string {
  return createUrlResolver(serverWide)(url);
}

/** Creates a function that returns the absolute URL of a tool. `base_url` is interpolated only once. */
export function createUrlResolver({ base_url: base, variables }: ServerWide): (url: string) => string {
  const resolvedBase = interpolateVariables(base ?? '', variables).replace(/\/$/, '');
  return (url) => {
    const resolvedUrl = interpolateVariables(url, variables);
    return base !== undefined && resolvedUrl.startsWith('/') ? resolvedBase + resolvedUrl : resolvedUrl;
  };
}

/** Headers of a server, with its variables interpolated once for all tools. */
export type SharedHeaders = readonly { name: string; folded: string; value: string }[];

export function toSharedHeaders({ headers = {}, variables }: ServerWide): SharedHeaders {
  return Object.entries(headers).map(([name, value]) => ({
    name,
    folded: foldHeaderName(name),
    value: interpolateVariables(value, variables),
  }));
}

/** Returns the headers of a tool: first the server headers that the tool does not set, then its own. */
export function getToolHeaders(
  tool: Pick<Tool, 'method' | 'headers'>,
  shared: SharedHeaders,
  variables: ServerWide['variables'],
): Record<string, string> {
  const ownNames = new Set(Object.keys(tool.headers).map(foldHeaderName));
  // A request without a body has no media type.
  if (/^(GET|HEAD)$/.test(tool.method)) ownNames.add('content-type');
  const inherited = shared.filter(({ folded }) => !ownNames.has(folded));
  return Object.fromEntries([
    ...inherited.map(({ name, value }) => [name, value]),
    ...Object.entries(tool.headers).map(([name, value]) => [name, interpolateVariables(value, variables)]),
  ]);
}

/**
 * Creates a function that merges the server-wide fields into a tool. Values shared by several tools are interpolated
 * once.
 */
export function createToolResolver(serverWide: ServerWide): (tool: Tool) => Tool {
  if (serverWide.base_url === undefined && serverWide.headers === undefined && serverWide.variables === undefined)
    return (tool) => tool;
  const { variables } = serverWide;
  const shared = toSharedHeaders(serverWide);
  const resolveUrl = createUrlResolver(serverWide);
  return (tool) => ({
    ...tool,
    url: resolveUrl(tool.url),
    headers: getToolHeaders(tool, shared, variables),
    ...(variables && {
      input_schema: withConstants(tool.input_schema, (value) => interpolateVariablesIn(value, variables)),
      ...(tool.body_template !== undefined && {
        body_template: interpolateVariablesIn(tool.body_template, variables) as Tool['body_template'],
      }),
    }),
  });
}

/**
 * Returns the origins that the requests of a configuration are sent to. An origin that depends on a person is returned as
 * the configuration writes it: `https://{{site}}.atlassian.net`, or `https://*.my.salesforce.com` for declared hosts.
 */
export function getOrigins(config: ServerWide & PersonalSources & { tools: readonly Pick<Tool, 'url'>[] }): string[] {
  const resolveUrl = createUrlResolver(config);
  const urls = config.tools.map((tool) => resolveUrl(tool.url));
  if (config.base_url !== undefined) urls.unshift(interpolateVariables(config.base_url, config.variables));
  const bases = new Set(urls.map((url) => /^[^:/]+:\/\/[^/?#]+/.exec(url)?.[0] ?? url));
  return [...new Set([...bases].flatMap((base) => findPersonalOrigins(base, config) ?? parseUrl(base)?.origin ?? []))];
}

/** Returns the names of the values of people that are part of a host, and so must be host labels or origins. */
export function getHostNames(config: Pick<ServerConfig, 'oauth' | 'tools' | keyof ServerWide>): ReadonlySet<string> {
  const { base_url: base = '', oauth, tools } = config;
  const resolveUrl = createUrlResolver(config);
  const urls = [base, oauth?.authorization_url, oauth?.token_url, oauth?.refresh_url, ...tools.map(({ url }) => url)];
  return new Set(urls.flatMap((url) => parseOriginTemplate(resolveUrl(url ?? ''))?.name ?? []));
}

/**
 * Returns the origins that each secret of a configuration may be sent to. These are the fixed origins of the tools,
 * followed by the token endpoint's origin for secrets that authenticate a token request.
 */
export function createSecretOriginResolver(config: SecretDestinations): (name: string) => string[] {
  const toolOrigins = getOrigins(config).filter(isFixedOrigin);
  const { variables } = config;
  const originsBySecret = new Map<string, string[]>();
  for (const { credential, storedNamePrefix } of listCredentials(config)) {
    if (credential.type !== 'ClientCredentials' || credential.token_url === undefined) continue;
    const { origin } = new URL(interpolateVariables(credential.token_url, variables));
    const clientTexts = [credential.client_id ?? '', credential.client_secret ?? ''];
    const names = [...clientTexts.flatMap(getPlaceholderNames), `${storedNamePrefix}.client_secret`];
    for (const name of names) originsBySecret.set(name, [...(originsBySecret.get(name) ?? toolOrigins), origin]);
  }
  for (const [name, origins] of originsBySecret) originsBySecret.set(name, [...new Set(origins)]);
  return (name) => originsBySecret.get(name) ?? toolOrigins;
}

/** Fields of a configuration that determine the origins of its secrets. */
export type SecretDestinations = Parameters<typeof getOrigins>[0] & Credentials;

/** A field that refers to secrets, and the names of these secrets. */
export type SecretUse = { path: string; names: string[] };

/** Returns the server-wide fields that refer to secrets. */
export function getServerSecretUses(config: ServerWide & Credentials & PersonalSources): SecretUse[] {
  const { base_url, headers } = config;
  const fieldTexts: [path: string, text: string][] = [
    ...listCredentials(config).flatMap(({ credential, path }) =>
      placeholderFields.map((field): [string, string] => [`${path}.${field}`, credential[field] ?? '']),
    ),
    ['base_url', base_url ?? ''],
    ...listEntries('headers', headers),
  ];
  return findSecretUses(fieldTexts, config);
}

/** Returns true if any interpolated field of a configuration refers to a secret. Stops at the first one. */
function refersToSecrets(config: ServerWide & Credentials & { tools: readonly Tool[] }): boolean {
  const { base_url, headers, variables = {}, tools } = config;
  const refersToSecret = (value: unknown) =>
    someString(value, (text) => somePlaceholder(text, (name) => !Object.hasOwn(variables, name)));
  return (
    listCredentials(config).some(({ credential }) =>
      placeholderFields.some((field) => refersToSecret(credential[field])),
    ) ||
    refersToSecret(base_url) ||
    refersToSecret(headers) ||
    tools.some((tool) => getInterpolatedValues(tool).some(refersToSecret))
  );
}

/** Returns the interpolated values of a tool. */
export function getInterpolatedValues({ url, headers, body_template, input_schema }: Tool): unknown[] {
  return [url, headers, body_template, ...getConstants(input_schema).map(({ value }) => value)];
}

/** Returns the fields of a tool that refer to secrets. Paths are relative to the tool. */
export function getToolSecretUses(tool: Tool, config: ServerWide & PersonalSources): SecretUse[] {
  const values: [path: string, value: unknown][] = [
    ['url', tool.url],
    ...listEntries('headers', tool.headers),
    ['body_template', tool.body_template],
    ...getConstants(tool.input_schema).map(({ name, value }): [string, unknown] => [
      `input_schema.${name}.value`,
      value,
    ]),
  ];
  return findSecretUses(values, config);
}

function listEntries(path: string, values: Record<string, string> = {}): [string, string][] {
  return Object.entries(values).map(([name, value]) => [`${path}.${name}`, value]);
}

function findSecretUses(
  values: readonly [path: string, value: unknown][],
  config: ServerWide & PersonalSources,
): SecretUse[] {
  const { variables = {} } = config;
  const personalNames = getPersonalNames(config);
  return values.flatMap(([path, value]) => {
    const names = getPlaceholderNames(value).filter(
      (name) => !Object.hasOwn(variables, name) && !personalNames.has(name),
    );
    return names.length > 0 ? [{ path, names }] : [];
  });
}

/**
 * Kinds of callers that a hosted server accepts, with the credential that its upstream receives. Only the configuration
 * decides.
 */
export const accessKinds = ['oauth', 'passthrough', 'login', 'api_key', 'caller_token'] as const;
export type Access = (typeof accessKinds)[number];

/**
 * Kind of credential of a call, for the call record: `try_out` for a call by the try-out operation, `playground` for a
 * call by the playground's model.
 */
export const callerKinds = ['api_key', 'caller_token', 'oauth', 'login', 'try_out', 'playground'] as const;
export type CallerKind = (typeof callerKinds)[number];

export function getAccess(config: Omit<ServerConfig, 'name' | 'slug'>): Access {
  if (config.oauth) return config.oauth.token_mode === 'passthrough' ? 'passthrough' : 'oauth';
  if (config.login) return 'login';
  return listCredentials(config).some(({ credential }) => isStored(credential)) || refersToSecrets(config)
    ? 'api_key'
    : 'caller_token';
}

/** Returns true if the upstream needs no credential. No token is then forwarded, and any token is accepted. */
export function isOpen({ authentication }: Pick<ServerConfig, 'authentication'>, access: Access): boolean {
  return access === 'caller_token' && authentication === undefined;
}
