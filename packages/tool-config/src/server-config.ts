import { containsCompleteCredential } from '@toolhost/credentials/own-credentials';
import type { Problem } from '@toolhost/errors/errors';
import { describeForeignDocument, isCurlCommand } from '@toolhost/errors/input-errors';
import { addZodIssues, ProblemList } from '@toolhost/errors/problems';
import { isRawNumber, toPlainNumbers } from '@toolhost/json/json';
import { z } from 'zod';
import {
  authenticationSchema,
  authenticationsSchema,
  isStored,
  listCredentials,
  maskCredentials,
  maxNamedCredentials,
  sealedFields,
} from './authentication.ts';
import { importedFields, importsSchema } from './imports.ts';
import { allowSchema, loginFieldSchema, loginSchema, viewRuleSchema } from './login.ts';
import { checkLogin, findPersonalValues } from './login-rules.ts';
import { oauthSchema } from './oauth.ts';
import { findQuirkProblems } from './oauth-rules.ts';
import { findOauthProblems } from './provider-rules.ts';
import { iconFields, publishingShape } from './publishing.ts';
import {
  checkServerWide,
  findAuthenticationProblems,
  findNamedCredentialProblems,
  type UrlRule,
} from './server-rules.ts';
import {
  interpolateVariables,
  type ServerWide,
  serverWideShape,
  toSharedHeaders,
  variableFields,
} from './server-wide.ts';
import { checkConfigSize, countInsertedCharacters, maxInterpolatedPerField } from './sizes.ts';
import { getSlugProblem } from './slug.ts';
import { getReservedToolNames, maxResponseTokens, singleLineText, type Tool, toolModes, toolSchema } from './tool.ts';
import { checkTool } from './tool-rules.ts';
import { maxViews, viewFields, viewSchema, viewToolFields } from './view.ts';
import { checkViews } from './view-rules.ts';

/** Maximum tools in any configuration. The workspace quota `tools` limits how many a workspace may have. */
export const maxTools = 5000;

/**
 * Configuration of a hosted server (spec 2.1). These declarations are also the source of the documentation and of the
 * published JSON Schema.
 */
export const serverConfigSchema = z.strictObject({
  name: singleLineText(100)
    .refine((text) => !isCurlCommand(text) || !text.includes('://'), {
      message: 'found a curl command; enter a short name, or import the command',
    })
    .describe('Display name of the server.'),
  slug: z
    .string()
    .describe('URL identifier. The server is available at /mcp/{slug}. It can never be reused after deletion.'),
  description: z.string().max(2000).optional().describe('Short description.'),
  ...publishingShape,
  authentication: authenticationsSchema
    .optional()
    .describe(
      'How the credential is sent to the upstream with every tool call. Use a list if the upstream requires several.',
    ),
  credentials: z
    .record(z.string(), authenticationsSchema)
    .refine(
      (named) => Object.keys(named).length <= maxNamedCredentials,
      `has too many credentials; allowed: at most ${maxNamedCredentials}`,
    )
    .optional()
    .describe(
      'Additional stored credentials by name. A tool that names one in credential sends it instead of authentication.',
    ),
  oauth: oauthSchema.optional().describe('OAuth 2.0 provider that people log in to.'),
  login: loginSchema.optional().describe('People who may log in, and the values that they bring.'),
  ...serverWideShape,
  tool_mode: z
    .enum(toolModes)
    .optional()
    .describe(
      'list (default): agents get all tools. search: agents get the pinned tools and search_tools, describe_tool, and call_tool, which find and run the tools of a large server with few tokens.',
    ),
  max_response_tokens: maxResponseTokens
    .optional()
    .describe(
      'Maximum tokens of one tool result, estimated at four characters each. A longer result is truncated, and the agent reads the remainder with the tool read_more. No limit if absent.',
    ),
  imported: importsSchema
    .optional()
    .describe(
      'Descriptions that the server was imported from. Written by imports so that a re-import keeps later edits. Do not change it.',
    ),
  tools: z.array(toolSchema).max(maxTools).describe('Tools the server exposes.'),
  views: z
    .record(z.string(), viewSchema)
    .refine((views) => Object.keys(views).length <= maxViews, `has too many views; allowed: at most ${maxViews}`)
    .optional()
    .describe('Views by name. Each exposes a subset of the tools at /mcp/{slug}/{name} with its own texts.'),
});

export type ServerConfig = z.infer<typeof serverConfigSchema>;

/** Deployment settings for configurations. */
export type ConfigRules = {
  managementSlug: string;
  urlProblem: UrlRule;
  /** True if a login may return with a form (`oauth.response_mode`). */
  acceptsFormPost: boolean;
};

const keysByPath: [RegExp, readonly string[]][] = [
  [/^$/, Object.keys(serverConfigSchema.shape)],
  [/^(authentication|credentials\.[^.[\]]+)(\[\d+\])?$/, Object.keys(authenticationSchema.shape)],
  [/^imported\[\d+\]$/, importedFields],
  [/^oauth$/, Object.keys(oauthSchema.shape)],
  [/^oauth\.token_fields$/, Object.keys(oauthSchema.shape.token_fields.unwrap().shape)],
  [/^oauth\.token_url_from$/, Object.keys(oauthSchema.shape.token_url_from.unwrap().shape)],
  [/^oauth\.values\.[^.[\]]+$/, ['from', 'hosts', 'pattern']],
  [/^login$/, Object.keys(loginSchema.shape)],
  [/^login\.allow$/, Object.keys(allowSchema.shape)],
  [/^login\.views\[\d+\]$/, Object.keys(viewRuleSchema.shape)],
  [/^login\.fields\[\d+\]$/, Object.keys(loginFieldSchema.shape)],
  [/^icons\[\d+\]$/, iconFields],
  [/^variables\.[^.]+$/, variableFields],
  [/^tools\[\d+\]$/, Object.keys(toolSchema.shape)],
  [/^views\.[^.[\]]+$/, viewFields],
  [/^views\.[^.[\]]+\.tools\[\d+\]$/, viewToolFields],
  [/^tools\[\d+\]\.annotations$/, ['title', 'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']],
];

function findKeysAt(path: string): readonly string[] {
  return keysByPath.find(([pattern]) => pattern.test(path))?.[1] ?? [];
}

/**
 * Checks a configuration as received. Returns the whole configuration with its defaults, or all problems. Rules that
 * span several fields are checked where those fields are well-formed.
 */
export function checkServerConfig(raw: unknown, rules: ConfigRules): { config?: ServerConfig; problems: Problem[] } {
  const foreignFormat = describeForeignDocument(raw);
  if (foreignFormat !== undefined) return { problems: [{ path: '', message: foreignFormat }] };
  const input = normalizeConfig(raw);
  const problems = new ProblemList();
  for (const steps of findProtoNames(input)) problems.add(() => ({ path: toPath(steps), message: protoNameProblem }));
  const result = serverConfigSchema.safeParse(input, { reportInput: false });
  if (!result.success) addZodIssues(problems, result.error.issues, input, findKeysAt);
  if (typeof input === 'object' && input !== null) checkAcrossFields(input as RawConfig, rules, problems);
  const sizeProblem = result.success && checkConfigSize(result.data);
  if (sizeProblem) problems.add(() => ({ path: '', message: sizeProblem }));
  else if (result.success) problems.addAll(findOwnCredentials(result.data, result.data.variables));
  // Arguments that a view fixes are checked against the tool schemas, so those must be valid first.
  const hasNoProblems = problems.count === 0;
  if (result.success && result.data.views) checkViews(result.data, problems, () => hasNoProblems);
  return result.success && problems.count === 0 ? { config: result.data, problems: [] } : { problems: problems.all() };
}

type RawConfig = { [field: string]: unknown };

function checkAcrossFields(input: RawConfig, rules: ConfigRules, problems: ProblemList): void {
  const add = (path: string, message: string) => problems.add(() => ({ path, message }));
  const slug = typeof input.slug === 'string' ? getSlugProblem(input.slug, rules.managementSlug) : undefined;
  if (slug) add('slug', slug);
  const authentication = authenticationsSchema.safeParse(input.authentication).data;
  const { urlProblem } = rules;
  const personal = findPersonalValues(input);
  checkLogin(input, problems);
  if (typeof input.oauth === 'object' && input.oauth !== null) {
    problems.addAll(findOauthProblems(input.oauth as RawConfig, urlProblem, personal));
    problems.addAll(findQuirkProblems(input.oauth as RawConfig, { ...rules, authentication }));
    if (authentication && !Array.isArray(authentication) && isStored(authentication)) {
      const field = authentication.token === undefined ? 'type' : 'token';
      add(`authentication.${field}`, 'cannot be combined with oauth, because the token comes from the login');
    }
  }
  const credentials = serverConfigSchema.shape.credentials.safeParse(input.credentials).data;
  const allCredentials = listCredentials({ authentication, credentials }).map(({ credential }) => credential);
  const serverWide = checkServerWide(input, { authentication: allCredentials, urlProblem, personal }, problems);
  const hasLogin = input.oauth !== undefined;
  const hasPeople = input.login !== undefined && !hasLogin;
  const context = { hasLogin, hasPeople, urlProblem, variables: serverWide.variables, personal };
  if (authentication) problems.addAll(findAuthenticationProblems(authentication, context));
  problems.addAll(findNamedCredentialProblems({ authentication, credentials }, context));
  if (!Array.isArray(input.tools)) return;
  checkToolNames(input.tools, getReservedToolNames({ ...input, tools: input.tools }), problems);
  const toolContext = {
    authentication,
    credentials,
    urlProblem,
    personal,
    serverWide,
    sharedHeaders: toSharedHeaders(serverWide),
  };
  for (const [index, tool] of input.tools.slice(0, maxTools).entries()) {
    if (typeof tool !== 'object' || tool === null) continue;
    checkTool(
      tool as RawConfig,
      toolContext,
      problems.nested((path) => `tools[${index}].${path}`),
    );
  }
}

function checkToolNames(tools: readonly unknown[], reserved: ReadonlySet<string>, problems: ProblemList): void {
  const indexesByName = new Map<string, number>();
  for (const [index, tool] of tools.entries()) {
    const name = (tool as { name?: unknown } | null)?.name;
    if (typeof name !== 'string') continue;
    if (reserved.has(name)) problems.add(() => ({ path: `tools[${index}].name`, message: formatReservedName(name) }));
    const previousIndex = indexesByName.get(name);
    if (previousIndex === undefined) indexesByName.set(name, index);
    else {
      const message = `"${name.slice(0, 64)}" is already the name of tools[${previousIndex}]`;
      problems.add(() => ({ path: `tools[${index}].name`, message }));
    }
  }
}

function formatReservedName(name: string): string {
  return `"${name}" is the name of a built-in tool with these settings; choose another name`;
}

/** Tool fields that are sent to upstreams or agents as JSON, so their numbers keep their exact digits. */
const exactFields = new Set(['input_schema', 'output_schema', 'body_template']);

/**
 * Converts methods to upper case, and numbers such as `1e4` to plain numbers, except in JSON that is sent unchanged.
 * Nothing else is normalized.
 */
export function normalizeConfig(raw: unknown): unknown {
  return withFields(raw, (name, value) => {
    if (name === 'tools' && Array.isArray(value)) return value.map((tool) => withFields(tool, normalizeField));
    // Numbers in views belong to fixed arguments.
    return name === 'views' ? value : toPlainNumbers(value);
  });
}

function normalizeField(name: string, value: unknown): unknown {
  if (name === 'method' && typeof value === 'string') return value.toUpperCase();
  return exactFields.has(name) ? value : toPlainNumbers(value);
}

/**
 * Returns an object with each field replaced by the result of `change`. Any other value is returned with plain numbers.
 */
function withFields(value: unknown, change: (name: string, value: unknown) => unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isRawNumber(value))
    return toPlainNumbers(value);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, change(name, inner)]));
}

/** Mask shown instead of a stored secret. An update with the mask leaves the stored value unchanged. */
export const mask = '********';

/** Names of encrypted values that are not secrets of a server. No `{{NAME}}` can refer to them. */
export const configSecrets = { clientSecret: 'oauth.client_secret', description: 'imported.headers' } as const;

/** Returns the name under which the headers for fetching a description are sealed. */
export function getDescriptionSecret(prefix: string | undefined): string {
  return prefix === undefined ? configSecrets.description : `${configSecrets.description}.${prefix}`;
}

/** Returns true for sealed headers of a description. */
export function isDescriptionSecret(name: string): boolean {
  return name === configSecrets.description || name.startsWith(`${configSecrets.description}.`);
}

/** Returns true for secrets that a change of tool URLs does not affect. */
export function isConfigSecret(name: string): boolean {
  return name === configSecrets.clientSecret || isDescriptionSecret(name);
}

/** Separates the secrets from a configuration: returns the document to store and show, and the values to encrypt. */
export function splitSecrets(config: ServerConfig): { masked: ServerConfig; secrets: Map<string, string> } {
  const secrets = new Map<string, string>();
  const maskedConfig = { ...config };
  if (config.oauth) {
    const { client_secret: secret } = config.oauth;
    if (secret !== undefined && secret !== mask) secrets.set(configSecrets.clientSecret, secret);
    maskedConfig.oauth = { ...config.oauth, ...(secret !== undefined && { client_secret: mask }) };
  }
  const sealed = sealedFields(config);
  for (const { name, value } of sealed) if (value !== mask) secrets.set(name, value);
  return {
    masked: sealed.length === 0 ? maskedConfig : { ...maskedConfig, ...maskCredentials(config, mask) },
    secrets,
  };
}

const protoNameProblem =
  'is a name that JavaScript programs drop; choose another one, and set wire_name if the API requires this name';

/** Returns the paths to the name `__proto__` in a configuration. */
function findProtoNames(value: unknown): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (name === '__proto__') return [[name]];
    return findProtoNames(inner).map((steps) => [Array.isArray(value) ? Number(name) : name, ...steps]);
  });
}

const credentialProblem = 'holds an API key or a token of this service, which is never sent to an upstream; remove it';
const credentialNameProblem = `has a name that ${credentialProblem}`;

/**
 * Returns the paths in a valid configuration, or in one tool, that contain a credential of this service. Searches every
 * text and every name, because nearly all of them are sent to an upstream, a provider, or an agent. Covers fields that
 * are added later, too.
 */
export function findOwnCredentials(root: ServerWide | Tool, variables: ServerWide['variables']): Problem[] {
  const problems: Problem[] = [];
  const steps: (string | number)[] = [];
  const search = (value: unknown): void => {
    if (typeof value === 'string') {
      if (containsCompleteCredential(interpolateText(value, variables)))
        problems.push({ path: toPath(steps), message: credentialProblem });
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    for (const [name, inner] of Object.entries(value)) {
      const isName = !Array.isArray(value);
      // Reports nothing below such a name, because the path would reveal it.
      if (isName && containsCompleteCredential(name)) {
        problems.push({ path: toPath(steps), message: credentialNameProblem });
        continue;
      }
      steps.push(isName ? name : Number(name));
      search(inner);
      steps.pop();
    }
  };
  search(root);
  return problems;
}

/**
 * Interpolates variables. Text that is never interpolated, such as a description, may have any number of placeholders.
 */
function interpolateText(text: string, variables: ServerWide['variables']): string {
  return countInsertedCharacters(text, variables) > maxInterpolatedPerField
    ? text
    : interpolateVariables(text, variables);
}

function toPath(steps: readonly (string | number)[]): string {
  return steps.map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index ? '.' : ''}${step}`)).join('');
}
