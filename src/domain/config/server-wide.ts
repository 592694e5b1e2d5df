import { z } from 'zod';
import { foldedHeader } from '../http/parameter-names.ts';
import { fillPlaceholders, fillPlaceholdersIn, placeholderNames, placeholderNamesIn } from '../http/placeholders.ts';
import { readUrl } from '../http/read-url.ts';
import { type Authentications, credentialPath, credentialsOf, filledFields, sealedName } from './authentication.ts';
import { constantsOf, withConstants } from './input-schema.ts';
import { maxUrlLength, staticHeaders, type Tool } from './tool.ts';

export const mostVariableLength = 500;

/** A value that a configuration names once. It is shown to everybody who may read the configuration. */
const variableSchema = z.strictObject({
  value: z
    .string()
    .max(mostVariableLength)
    .regex(/^[^\p{Cc}]*$/u, 'allowed: one line of text')
    .describe('Text that {{NAME}} stands for.'),
  description: z.string().max(500).optional().describe('What the variable is for, for people.'),
  enum: z.array(z.string().max(500)).min(1).max(100).optional().describe('The only values allowed.'),
});

export const maxVariables = 100;

/** Fields of a server that hold for all its tools. */
export const serverWideShape = {
  base_url: z
    .string()
    .min(1)
    .max(maxUrlLength)
    .optional()
    .describe('Address below which tools are called whose url begins with a slash.'),
  headers: staticHeaders.optional().describe('Static headers for every tool; a header of the tool itself wins.'),
  variables: z
    .record(z.string(), variableSchema)
    .refine((all) => Object.keys(all).length <= maxVariables, `allowed: at most ${maxVariables} variables`)
    .optional()
    .describe(
      'Values that fill {{NAME}} in base_url, in the url of tools, in headers, constants and bodies. They are not secret.',
    ),
};

export const variableFields = Object.keys(variableSchema.shape);

/** The part of a configuration that holds for all its tools. */
export type ServerWide = z.infer<z.ZodObject<typeof serverWideShape>>;

/** A text with the variables filled in; other placeholders, which are secrets, stay. */
export function fillVariables(text: string, variables: ServerWide['variables']): string {
  if (variables === undefined) return text;
  return fillPlaceholders(text, (name) =>
    Object.hasOwn(variables, name) ? (variables[name]?.value ?? '') : `{{${name}}}`,
  );
}

/** The whole URL of a tool, with the variables filled in. */
export function absoluteUrl(url: string, { base_url: base, variables }: ServerWide): string {
  const filled = fillVariables(url, variables);
  if (base === undefined || !filled.startsWith('/')) return filled;
  const filledBase = fillVariables(base, variables);
  return (filledBase.endsWith('/') ? filledBase.slice(0, -1) : filledBase) + filled;
}

/** The headers of a tool: those of the server that the tool does not set itself, then its own. */
export function headersOfTool(tool: Pick<Tool, 'method' | 'headers'>, wide: ServerWide): Record<string, string> {
  const own = new Set(Object.keys(tool.headers).map(foldedHeader));
  // A request without a body has no media type.
  if (/^(GET|HEAD)$/.test(tool.method)) own.add('content-type');
  const inherited = Object.entries(wide.headers ?? {}).filter(([name]) => !own.has(foldedHeader(name)));
  const all = [...inherited, ...Object.entries(tool.headers)];
  return Object.fromEntries(all.map(([name, value]) => [name, fillVariables(value, wide.variables)]));
}

/** A tool with everything written into it that its server says for all tools. */
export function resolvedTool(tool: Tool, wide: ServerWide): Tool {
  if (wide.base_url === undefined && wide.headers === undefined && wide.variables === undefined) return tool;
  const { variables } = wide;
  const { body_template } = tool;
  const filled = (value: unknown) => fillPlaceholdersIn(value, (name) => fillVariables(`{{${name}}}`, variables));
  return {
    ...tool,
    url: absoluteUrl(tool.url, wide),
    headers: headersOfTool(tool, wide),
    ...(variables && {
      input_schema: withConstants(tool.input_schema, filled),
      ...(body_template !== undefined && { body_template: filled(body_template) as Tool['body_template'] }),
    }),
  };
}

/** The origins that the requests of a configuration go to. */
export function originsOf(config: ServerWide & { tools: readonly Pick<Tool, 'url'>[] }): string[] {
  const urls = config.tools.map((tool) => absoluteUrl(tool.url, config));
  if (config.base_url !== undefined) urls.unshift(fillVariables(config.base_url, config.variables));
  const bases = new Set(urls.map((url) => /^[^:]+:\/\/[^/?#]+/.exec(url)?.[0] ?? url));
  return [...new Set([...bases].flatMap((base) => readUrl(base)?.origin ?? []))];
}

/**
 * The origins that each secret of a configuration may be sent to: those of the tools, and for a secret that a token is
 * asked for with also that of the token endpoint.
 */
export function originsOfSecrets(config: OfSecrets): (name: string) => string[] {
  const all = originsOf(config);
  const { authentication, variables } = config;
  const asking = new Map<string, string[]>();
  for (const one of credentialsOf(authentication)) {
    if (one.type !== 'ClientCredentials' || one.token_url === undefined) continue;
    const { origin } = new URL(fillVariables(one.token_url, variables));
    const texts = [one.client_id ?? '', one.client_secret ?? ''];
    const names = [...texts.flatMap(placeholderNames), sealedName(authentication, one, 'client_secret')];
    for (const name of names) asking.set(name, [...(asking.get(name) ?? all), origin]);
  }
  for (const [name, origins] of asking) asking.set(name, [...new Set(origins)]);
  return (name) => asking.get(name) ?? all;
}

type OfSecrets = Parameters<typeof originsOf>[0] & { authentication?: Authentications | undefined };

/** A field that refers to secrets, and their names. */
export type SecretUse = { path: string; names: string[] };

/** The fields of a configuration for all tools that refer to secrets. */
export function secretUsesOfServer(config: ServerWide & { authentication?: Authentications | undefined }): SecretUse[] {
  const { base_url, headers, authentication, variables } = config;
  const texts: [path: string, text: string][] = [
    ...credentialsOf(authentication).flatMap((one, index) =>
      filledFields.map((field): [string, string] => [
        `${credentialPath(authentication, index)}.${field}`,
        one[field] ?? '',
      ]),
    ),
    ['base_url', base_url ?? ''],
    ...entriesAt('headers', headers),
  ];
  return usesIn(texts, variables);
}

/** The fields of a tool that refer to secrets; paths are relative to the tool. */
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
    const names = placeholderNamesIn(value).filter((name) => !Object.hasOwn(variables, name));
    return names.length > 0 ? [{ path, names }] : [];
  });
}
