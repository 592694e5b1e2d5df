import { z } from 'zod';
import { foldedHeader } from '../http/parameter-names.ts';
import {
  fillPlaceholders,
  fillPlaceholdersIn,
  placeholderNames,
  somePlaceholder,
  someText,
} from '../http/placeholders.ts';
import { readUrl } from '../http/read-url.ts';
import { type Credentials, everyCredential, filledFields, isStored } from './authentication.ts';
import { constantsOf, withConstants } from './input-schema.ts';
import type { ServerConfig } from './server-config.ts';
import { maxUrlLength, staticHeaders, type Tool } from './tool.ts';

export const mostVariableLength = 500;

/** A value that a configuration names once. Everyone who may read the configuration can see it. */
export const variableSchema = z.strictObject({
  value: z
    .string()
    .max(mostVariableLength)
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
    .refine((all) => Object.keys(all).length <= maxVariables, `allowed: at most ${maxVariables} variables`)
    .optional()
    .describe(
      'Values that replace {{NAME}} in base_url, tool URLs, headers, constants, and bodies. They are not secret.',
    ),
};

export const variableFields = Object.keys(variableSchema.shape);

/** Fields of a configuration that apply to all its tools. */
export type ServerWide = z.infer<z.ZodObject<typeof serverWideShape>>;

/** Interpolates the variables into a text. Other placeholders are secrets and remain. */
export function fillVariables(text: string, variables: ServerWide['variables']): string {
  return variables === undefined ? text : fillPlaceholders(text, valueIn(variables));
}

/** Interpolates the variables into the strings of a JSON value. */
export function fillVariablesIn(value: unknown, variables: ServerWide['variables']): unknown {
  return variables === undefined ? value : fillPlaceholdersIn(value, valueIn(variables));
}

function valueIn(variables: NonNullable<ServerWide['variables']>): (name: string) => string {
  return (name) => (Object.hasOwn(variables, name) ? (variables[name]?.value ?? '') : `{{${name}}}`);
}

/** Returns the absolute URL of a tool, with the variables interpolated. */
export function absoluteUrl(url: string, wide: ServerWide): string {
  return urlsBelow(wide)(url);
}

/** Creates a function that returns the absolute URL of a tool. `base_url` is interpolated only once. */
export function urlsBelow({ base_url: base, variables }: ServerWide): (url: string) => string {
  const filledBase = fillVariables(base ?? '', variables).replace(/\/$/, '');
  return (url) => {
    const filled = fillVariables(url, variables);
    return base !== undefined && filled.startsWith('/') ? filledBase + filled : filled;
  };
}

/** Headers of a server, with its variables interpolated once for all tools. */
export type SharedHeaders = readonly { name: string; folded: string; value: string }[];

export function sharedHeaders({ headers = {}, variables }: ServerWide): SharedHeaders {
  return Object.entries(headers).map(([name, value]) => ({
    name,
    folded: foldedHeader(name),
    value: fillVariables(value, variables),
  }));
}

/** Returns the headers of a tool: first the server headers that the tool does not set, then its own. */
export function headersOfTool(
  tool: Pick<Tool, 'method' | 'headers'>,
  shared: SharedHeaders,
  variables: ServerWide['variables'],
): Record<string, string> {
  const own = new Set(Object.keys(tool.headers).map(foldedHeader));
  // A request without a body has no media type.
  if (/^(GET|HEAD)$/.test(tool.method)) own.add('content-type');
  const inherited = shared.filter(({ folded }) => !own.has(folded));
  return Object.fromEntries([
    ...inherited.map(({ name, value }) => [name, value]),
    ...Object.entries(tool.headers).map(([name, value]) => [name, fillVariables(value, variables)]),
  ]);
}

/**
 * Creates a function that merges the server-wide fields into a tool. Values shared by several tools are interpolated
 * once.
 */
export function toolResolver(wide: ServerWide): (tool: Tool) => Tool {
  if (wide.base_url === undefined && wide.headers === undefined && wide.variables === undefined) return (tool) => tool;
  const { variables } = wide;
  const shared = sharedHeaders(wide);
  const urlOf = urlsBelow(wide);
  return (tool) => ({
    ...tool,
    url: urlOf(tool.url),
    headers: headersOfTool(tool, shared, variables),
    ...(variables && {
      input_schema: withConstants(tool.input_schema, (value) => fillVariablesIn(value, variables)),
      ...(tool.body_template !== undefined && {
        body_template: fillVariablesIn(tool.body_template, variables) as Tool['body_template'],
      }),
    }),
  });
}

/** Returns the origins that the requests of a configuration are sent to. */
export function originsOf(config: ServerWide & { tools: readonly Pick<Tool, 'url'>[] }): string[] {
  const urlOf = urlsBelow(config);
  const urls = config.tools.map((tool) => urlOf(tool.url));
  if (config.base_url !== undefined) urls.unshift(fillVariables(config.base_url, config.variables));
  const bases = new Set(urls.map((url) => /^[^:]+:\/\/[^/?#]+/.exec(url)?.[0] ?? url));
  return [...new Set([...bases].flatMap((base) => readUrl(base)?.origin ?? []))];
}

/**
 * Returns the origins that each secret of a configuration may be sent to. These are the origins of the tools, followed
 * by the token endpoint's origin for secrets that authenticate a token request.
 */
export function originsOfSecrets(config: OfSecrets): (name: string) => string[] {
  const all = originsOf(config);
  const { variables } = config;
  const asking = new Map<string, string[]>();
  for (const { one, storedAs } of everyCredential(config)) {
    if (one.type !== 'ClientCredentials' || one.token_url === undefined) continue;
    const { origin } = new URL(fillVariables(one.token_url, variables));
    const texts = [one.client_id ?? '', one.client_secret ?? ''];
    const names = [...texts.flatMap(placeholderNames), `${storedAs}.client_secret`];
    for (const name of names) asking.set(name, [...(asking.get(name) ?? all), origin]);
  }
  for (const [name, origins] of asking) asking.set(name, [...new Set(origins)]);
  return (name) => asking.get(name) ?? all;
}

/** Fields of a configuration that determine the origins of its secrets. */
export type OfSecrets = Parameters<typeof originsOf>[0] & Credentials;

/** A field that refers to secrets, and the names of these secrets. */
export type SecretUse = { path: string; names: string[] };

/** Returns the server-wide fields that refer to secrets. */
export function secretUsesOfServer(config: ServerWide & Credentials): SecretUse[] {
  const { base_url, headers, variables } = config;
  const texts: [path: string, text: string][] = [
    ...everyCredential(config).flatMap(({ one, path }) =>
      filledFields.map((field): [string, string] => [`${path}.${field}`, one[field] ?? '']),
    ),
    ['base_url', base_url ?? ''],
    ...entriesAt('headers', headers),
  ];
  return usesIn(texts, variables);
}

/** Returns true if any interpolated field of a configuration refers to a secret. Stops at the first one. */
function refersToSecrets(config: ServerWide & Credentials & { tools: readonly Tool[] }): boolean {
  const { base_url, headers, variables = {}, tools } = config;
  const refers = (value: unknown) =>
    someText(value, (text) => somePlaceholder(text, (name) => !Object.hasOwn(variables, name)));
  return (
    everyCredential(config).some(({ one }) => filledFields.some((field) => refers(one[field]))) ||
    refers(base_url) ||
    refers(headers) ||
    tools.some((tool) => filledValuesOf(tool).some(refers))
  );
}

/** Returns the interpolated values of a tool. */
export function filledValuesOf({ url, headers, body_template, input_schema }: Tool): unknown[] {
  return [url, headers, body_template, ...constantsOf(input_schema).map(({ value }) => value)];
}

/** Returns the fields of a tool that refer to secrets. Paths are relative to the tool. */
export function secretUsesOfTool(tool: Tool, { variables }: ServerWide): SecretUse[] {
  const values: [path: string, value: unknown][] = [
    ['url', tool.url],
    ...entriesAt('headers', tool.headers),
    ['body_template', tool.body_template],
    ...constantsOf(tool.input_schema).map(({ name, value }): [string, unknown] => [
      `input_schema.${name}.value`,
      value,
    ]),
  ];
  return usesIn(values, variables);
}

function entriesAt(path: string, values: Record<string, string> = {}): [string, string][] {
  return Object.entries(values).map(([name, value]) => [`${path}.${name}`, value]);
}

function usesIn(
  values: readonly [path: string, value: unknown][],
  variables: ServerWide['variables'] = {},
): SecretUse[] {
  return values.flatMap(([path, value]) => {
    const names = placeholderNames(value).filter((name) => !Object.hasOwn(variables, name));
    return names.length > 0 ? [{ path, names }] : [];
  });
}

/**
 * Callers that a hosted server accepts, and the credential that its upstream receives. Derived from the configuration
 * only.
 */
export const accessKinds = ['oauth', 'passthrough', 'api_key', 'caller_token'] as const;
export type Access = (typeof accessKinds)[number];

/**
 * Kind of credential of a call, for the call record: `try_out` for a call by the try-out operation, `playground` for a
 * call by the playground's model.
 */
export const callerKinds = ['api_key', 'caller_token', 'oauth', 'try_out', 'playground'] as const;
export type CallerKind = (typeof callerKinds)[number];

export function accessOf(config: Omit<ServerConfig, 'name' | 'slug'>): Access {
  if (config.oauth) return config.oauth.token_mode === 'passthrough' ? 'passthrough' : 'oauth';
  return everyCredential(config).some(({ one }) => isStored(one)) || refersToSecrets(config)
    ? 'api_key'
    : 'caller_token';
}

/** Returns true if the upstream needs no credential. No token is then forwarded, and any token is accepted. */
export function isOpen({ authentication }: Pick<ServerConfig, 'authentication'>, access: Access): boolean {
  return access === 'caller_token' && authentication === undefined;
}
