import { z } from 'zod';
import type { Problem } from '../errors.ts';
import { authenticationSchema, isLiteralToken } from './authentication.ts';
import { oauthSchema } from './oauth.ts';
import { ownCredentialProblems } from './own-credential-rules.ts';
import { problemsOf } from './problems.ts';
import { authenticationProblems, oauthProblems, type UrlRule } from './server-rules.ts';
import { slugProblem } from './slug.ts';
import { toolSchema } from './tool.ts';
import { toolProblems } from './tool-rules.ts';

export const maxTools = 200;

/** Control, bidirectional and zero-width characters: they make a name look like another one. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
export const hiddenCharacters = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/;

/** The configuration of a hosted server (spec 2.1). What is declared here is also the documentation and the published JSON Schema. */
export const serverConfigSchema = z.strictObject({
  name: z
    .string()
    .trim()
    .min(1)
    .max(100)
    .refine((name) => !hiddenCharacters.test(name), 'has a control or invisible character; allowed: visible text')
    .describe('Display name of the server.'),
  slug: z.string().describe('URL identifier; the server is served at /mcp/{slug}. Never reusable once deleted.'),
  description: z.string().max(2000).optional().describe('Short description.'),
  authentication: authenticationSchema.optional().describe('How the token reaches the upstream on every tool call.'),
  oauth: oauthSchema.optional().describe('OAuth 2.0 provider at which people log in.'),
  tools: z.array(toolSchema).max(maxTools).describe('Tools the server exposes.'),
});

export type ServerConfig = z.infer<typeof serverConfigSchema>;

/** What the deployment decides about configurations. */
export type ConfigRules = { managementSlug: string; urlProblem: UrlRule };

const keysByPlace: [RegExp, readonly string[]][] = [
  [/^$/, Object.keys(serverConfigSchema.shape)],
  [/^authentication$/, Object.keys(authenticationSchema.shape)],
  [/^oauth$/, Object.keys(oauthSchema.shape)],
  [/^tools\[\d+\]$/, Object.keys(toolSchema.shape)],
  [/^tools\[\d+\]\.annotations$/, ['title', 'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']],
];

function keysAt(path: string): readonly string[] {
  return keysByPlace.find(([pattern]) => pattern.test(path))?.[1] ?? [];
}

/**
 * Judges a configuration as it came. Either it is valid as a whole, with its defaults filled in, or every problem is
 * listed at once; rules that cross fields are judged wherever the fields they need are well-formed.
 */
export function checkServerConfig(raw: unknown, rules: ConfigRules): { config?: ServerConfig; problems: Problem[] } {
  const input = forgiving(raw);
  const result = serverConfigSchema.safeParse(input, { reportInput: false });
  const problems = result.success ? [] : problemsOf(result.error.issues, input, keysAt);
  if (typeof input === 'object' && input !== null) problems.push(...crossFieldProblems(input as RawConfig, rules));
  if (result.success) problems.push(...ownCredentialProblems(result.data));
  const unique = [...new Map(problems.map((p) => [`${p.path}\0${p.message}`, p])).values()];
  return result.success && unique.length === 0 ? { config: result.data, problems: [] } : { problems: unique };
}

type RawConfig = { [field: string]: unknown };

function crossFieldProblems(input: RawConfig, rules: ConfigRules): Problem[] {
  const problems: Problem[] = [];
  const slug = typeof input.slug === 'string' ? slugProblem(input.slug, rules.managementSlug) : undefined;
  if (slug) problems.push({ path: 'slug', message: slug });
  const authentication = authenticationSchema.safeParse(input.authentication);
  if (authentication.success) problems.push(...authenticationProblems(authentication.data));
  if (typeof input.oauth === 'object' && input.oauth !== null) {
    problems.push(...oauthProblems(input.oauth as RawConfig, rules.urlProblem));
    if (authentication.data?.token !== undefined) {
      problems.push({
        path: 'authentication.token',
        message: 'not together with oauth: the token then comes from the login',
      });
    }
  }
  if (Array.isArray(input.tools)) {
    problems.push(...duplicateNames(input.tools));
    for (const [index, tool] of input.tools.slice(0, maxTools).entries()) {
      if (typeof tool !== 'object' || tool === null) continue;
      problems.push(...toolProblems(`tools[${index}]`, tool as RawConfig, authentication.data, rules.urlProblem));
    }
  }
  return problems;
}

function duplicateNames(tools: readonly unknown[]): Problem[] {
  const first = new Map<string, number>();
  return tools.flatMap((tool, index): Problem[] => {
    const name = (tool as { name?: unknown } | null)?.name;
    if (typeof name !== 'string') return [];
    const before = first.get(name);
    if (before === undefined) {
      first.set(name, index);
      return [];
    }
    return [
      { path: `tools[${index}].name`, message: `"${name.slice(0, 64)}" is the name of tools[${before}] already` },
    ];
  });
}

/** Methods are accepted in any case. Nothing else is repaired. */
function forgiving(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null || !Array.isArray((raw as RawConfig).tools)) return raw;
  const tools = ((raw as RawConfig).tools as unknown[]).map((tool) => {
    const method = (tool as { method?: unknown } | null)?.method;
    return typeof method === 'string' ? { ...(tool as RawConfig), method: method.toUpperCase() } : tool;
  });
  return { ...raw, tools };
}

/** Stands wherever a stored secret would be; sent back in an update it keeps what is stored. */
export const mask = '********';

/** Names of the sealed values that are fields of the configuration; no `{{NAME}}` can be called so. */
export const configSecrets = { clientSecret: 'oauth.client_secret', token: 'authentication.token' } as const;

/** Takes the secrets out of a configuration: the document to store and show, and the values to seal. */
export function splitSecrets(config: ServerConfig): { masked: ServerConfig; secrets: Map<string, string> } {
  const secrets = new Map<string, string>();
  const masked = { ...config };
  if (config.oauth) {
    if (config.oauth.client_secret !== mask) secrets.set(configSecrets.clientSecret, config.oauth.client_secret);
    masked.oauth = { ...config.oauth, client_secret: mask };
  }
  if (config.authentication && isLiteralToken(config.authentication)) {
    if (config.authentication.token !== mask) secrets.set(configSecrets.token, config.authentication.token as string);
    masked.authentication = { ...config.authentication, token: mask };
  }
  return { masked, secrets };
}
