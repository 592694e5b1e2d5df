import { z } from 'zod';
import type { Problem } from '../../errors.ts';
import { holdsWholeCredential } from '../credentials/own-credentials.ts';
import { isRawNumber, plainNumbers } from '../json/json.ts';
import { foreignDocument } from '../mistakes.ts';
import { addIssues, ProblemList } from '../problems.ts';
import { slugProblem } from '../slug.ts';
import {
  authenticationSchema,
  authenticationsSchema,
  everyCredential,
  isStored,
  maskedCredentials,
  mostNamedCredentials,
  sealedFields,
} from './authentication.ts';
import { oauthSchema } from './oauth.ts';
import { authenticationProblems, checkServerWide, namedProblems, oauthProblems, type UrlRule } from './server-rules.ts';
import { fillVariables, type ServerWide, serverWideShape, sharedHeaders, variableFields } from './server-wide.ts';
import { filledCharacters, mostFilledOfField, tooLargeProblem } from './sizes.ts';
import { maxAnswerTokens, reservedToolNames, singleLineText, type Tool, toolModes, toolSchema } from './tool.ts';
import { checkTool } from './tool-rules.ts';
import { mostViews, viewFields, viewSchema, viewToolFields } from './view.ts';
import { checkViews } from './view-rules.ts';

/** Most tools in any configuration. What a workspace may have is its quota `tools`. */
export const mostTools = 5000;

/** The configuration of a hosted server (spec 2.1). These declarations are also the source of the documentation and the published JSON Schema. */
export const serverConfigSchema = z.strictObject({
  name: singleLineText(100).describe('Display name of the server.'),
  slug: z.string().describe('URL identifier; the server is served at /mcp/{slug}. Never reusable once deleted.'),
  description: z.string().max(2000).optional().describe('Short description.'),
  authentication: authenticationsSchema
    .optional()
    .describe('How the credential reaches the upstream on every tool call; a list where the upstream wants several.'),
  credentials: z
    .record(z.string(), authenticationsSchema)
    .refine(
      (named) => Object.keys(named).length <= mostNamedCredentials,
      `has too many credentials; allowed: at most ${mostNamedCredentials}`,
    )
    .optional()
    .describe('Further stored credentials by name. A tool that names one in credential sends it instead.'),
  oauth: oauthSchema.optional().describe('OAuth 2.0 provider at which people log in.'),
  ...serverWideShape,
  tool_mode: z
    .enum(toolModes)
    .optional()
    .describe(
      'list (the default): agents get all tools. search: they get search_tools, describe_tool and call_tool, which find and run the tools of a large server at a small cost, and the pinned tools.',
    ),
  max_answer_tokens: maxAnswerTokens
    .optional()
    .describe(
      'Most tokens of an answer that the agent gets at once, estimated at four characters each. A longer answer is cut, and the agent reads on with the tool read_more. No limit when absent.',
    ),
  imported: z
    .strictObject({
      id: z.string().min(1).max(100).describe('The import that this configuration is based on.'),
      document: z.string().max(2048).optional().describe('Address of the API description.'),
    })
    .optional()
    .describe('Written by an import, so that importing again keeps the edits made since. Leave it as it is.'),
  tools: z.array(toolSchema).max(mostTools).describe('Tools the server exposes.'),
  views: z
    .record(z.string(), viewSchema)
    .refine((views) => Object.keys(views).length <= mostViews, `has too many views; allowed: at most ${mostViews}`)
    .optional()
    .describe('Parts of the tools by name, each served at /mcp/{slug}/{name} with texts of its own.'),
});

export type ServerConfig = z.infer<typeof serverConfigSchema>;

/** The deployment's settings for configurations. */
export type ConfigRules = { managementSlug: string; urlProblem: UrlRule };

const keysByPlace: [RegExp, readonly string[]][] = [
  [/^$/, Object.keys(serverConfigSchema.shape)],
  [/^(authentication|credentials\.[^.[\]]+)(\[\d+\])?$/, Object.keys(authenticationSchema.shape)],
  [/^imported$/, ['id', 'document']],
  [/^oauth$/, Object.keys(oauthSchema.shape)],
  [/^variables\.[^.]+$/, variableFields],
  [/^tools\[\d+\]$/, Object.keys(toolSchema.shape)],
  [/^views\.[^.[\]]+$/, viewFields],
  [/^views\.[^.[\]]+\.tools\[\d+\]$/, viewToolFields],
  [/^tools\[\d+\]\.annotations$/, ['title', 'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']],
];

function keysAt(path: string): readonly string[] {
  return keysByPlace.find(([pattern]) => pattern.test(path))?.[1] ?? [];
}

/**
 * Checks a configuration as received. The result is the whole configuration with its defaults, or the list of all
 * problems; rules across fields are checked where the fields they need are well-formed.
 */
export function checkServerConfig(raw: unknown, rules: ConfigRules): { config?: ServerConfig; problems: Problem[] } {
  const foreign = foreignDocument(raw);
  if (foreign !== undefined) return { problems: [{ path: '', message: foreign }] };
  const input = forgivingConfig(raw);
  const problems = new ProblemList();
  for (const steps of lostNames(input)) problems.add(() => ({ path: pathOf(steps), message: lostName }));
  const result = serverConfigSchema.safeParse(input, { reportInput: false });
  if (!result.success) addIssues(problems, result.error.issues, input, keysAt);
  if (typeof input === 'object' && input !== null) checkAcrossFields(input as RawConfig, rules, problems);
  const tooMuch = result.success && tooLargeProblem(result.data);
  if (tooMuch) problems.add(() => ({ path: '', message: tooMuch }));
  else if (result.success) problems.addAll(ownCredentialProblems(result.data, result.data.variables));
  // The arguments that a view fixes are checked by the schemas of the tools, which must be valid for that.
  const isSound = problems.count === 0;
  if (result.success && result.data.views) checkViews(result.data, problems, () => isSound);
  return result.success && problems.count === 0 ? { config: result.data, problems: [] } : { problems: problems.all() };
}

type RawConfig = { [field: string]: unknown };

function checkAcrossFields(input: RawConfig, rules: ConfigRules, problems: ProblemList): void {
  const add = (path: string, message: string) => problems.add(() => ({ path, message }));
  const slug = typeof input.slug === 'string' ? slugProblem(input.slug, rules.managementSlug) : undefined;
  if (slug) add('slug', slug);
  const authentication = authenticationsSchema.safeParse(input.authentication).data;
  const { urlProblem } = rules;
  if (typeof input.oauth === 'object' && input.oauth !== null) {
    problems.addAll(oauthProblems(input.oauth as RawConfig, urlProblem));
    if (authentication && !Array.isArray(authentication) && isStored(authentication)) {
      const field = authentication.token === undefined ? 'type' : 'token';
      add(`authentication.${field}`, 'not together with oauth: the token then comes from the login');
    }
  }
  const credentials = serverConfigSchema.shape.credentials.safeParse(input.credentials).data;
  const all = everyCredential({ authentication, credentials }).map(({ one }) => one);
  const wide = checkServerWide(input, { authentication: all, urlProblem }, problems);
  const context = { hasLogin: input.oauth !== undefined, urlProblem, variables: wide.variables };
  if (authentication) problems.addAll(authenticationProblems(authentication, context));
  problems.addAll(namedProblems({ authentication, credentials }, context));
  if (!Array.isArray(input.tools)) return;
  checkToolNames(input.tools, reservedToolNames({ ...input, tools: input.tools }), problems);
  const surroundings = { authentication, credentials, urlProblem, wide, shared: sharedHeaders(wide) };
  for (const [index, tool] of input.tools.slice(0, mostTools).entries()) {
    if (typeof tool !== 'object' || tool === null) continue;
    checkTool(
      tool as RawConfig,
      surroundings,
      problems.within((path) => `tools[${index}].${path}`),
    );
  }
}

function checkToolNames(tools: readonly unknown[], reserved: ReadonlySet<string>, problems: ProblemList): void {
  const first = new Map<string, number>();
  for (const [index, tool] of tools.entries()) {
    const name = (tool as { name?: unknown } | null)?.name;
    if (typeof name !== 'string') continue;
    if (reserved.has(name)) problems.add(() => ({ path: `tools[${index}].name`, message: reservedName(name) }));
    const before = first.get(name);
    if (before === undefined) first.set(name, index);
    else {
      const message = `"${name.slice(0, 64)}" is the name of tools[${before}] already`;
      problems.add(() => ({ path: `tools[${index}].name`, message }));
    }
  }
}

function reservedName(name: string): string {
  return `"${name}" is the name of a tool that the server itself offers with these settings; choose another name`;
}

/** Fields of a tool that go to upstreams or to agents as JSON, whose numbers therefore keep their digits. */
const exactFields = new Set(['input_schema', 'output_schema', 'body_template']);

/**
 * Accepts methods in any case, and `1e4` for a limit: outside of JSON that is passed on, numbers are ordinary ones. Nothing
 * else is normalised.
 */
export function forgivingConfig(raw: unknown): unknown {
  return withFields(raw, (name, value) => {
    if (name === 'tools' && Array.isArray(value)) return value.map((tool) => withFields(tool, forgivingField));
    // Numbers of views are those of fixed arguments.
    return name === 'views' ? value : plainNumbers(value);
  });
}

function forgivingField(name: string, value: unknown): unknown {
  if (name === 'method' && typeof value === 'string') return value.toUpperCase();
  return exactFields.has(name) ? value : plainNumbers(value);
}

/** An object with the result of `change` in place of each of its fields; any other value with ordinary numbers. */
function withFields(value: unknown, change: (name: string, value: unknown) => unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isRawNumber(value))
    return plainNumbers(value);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, change(name, inner)]));
}

/** The mask shown for a stored secret; an update that sends it back keeps the stored value. */
export const mask = '********';

/** Names of the sealed values that are no secrets of a server's own: no `{{NAME}}` can have them. */
export const configSecrets = { clientSecret: 'oauth.client_secret', description: 'imported.headers' } as const;

/** Takes the secrets out of a configuration: the document to store and show, and the values to seal. */
export function splitSecrets(config: ServerConfig): { masked: ServerConfig; secrets: Map<string, string> } {
  const secrets = new Map<string, string>();
  const masked = { ...config };
  if (config.oauth) {
    const { client_secret: secret } = config.oauth;
    if (secret !== undefined && secret !== mask) secrets.set(configSecrets.clientSecret, secret);
    masked.oauth = { ...config.oauth, ...(secret !== undefined && { client_secret: mask }) };
  }
  const sealed = sealedFields(config);
  for (const { name, value } of sealed) if (value !== mask) secrets.set(name, value);
  return { masked: sealed.length === 0 ? masked : { ...masked, ...maskedCredentials(config, mask) }, secrets };
}

const lostName =
  'is a name that programs in JavaScript lose; choose another one, with wire_name where the API wants this';

/** The paths to the name `__proto__` in a configuration. */
function lostNames(value: unknown): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (name === '__proto__') return [[name]];
    return lostNames(inner).map((steps) => [Array.isArray(value) ? Number(name) : name, ...steps]);
  });
}

const never = 'holds an API key or a token of this service, which is never sent to an upstream; take it out';
const ofName = `has a name that ${never}`;

/**
 * The places of a valid configuration, or of one tool, at which one of our credentials stands. Every text and every name
 * is searched, whatever field it is in: nearly all of them go to an upstream, to a provider or into the context of an
 * agent, and a field that is added later is searched too.
 */
export function ownCredentialProblems(root: ServerWide | Tool, variables: ServerWide['variables']): Problem[] {
  const problems: Problem[] = [];
  const steps: (string | number)[] = [];
  const search = (value: unknown): void => {
    if (typeof value === 'string') {
      if (holdsWholeCredential(filledText(value, variables))) problems.push({ path: pathOf(steps), message: never });
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    for (const [name, inner] of Object.entries(value)) {
      const isName = !Array.isArray(value);
      // Nothing below such a name is reported, because the path would show it.
      if (isName && holdsWholeCredential(name)) {
        problems.push({ path: pathOf(steps), message: ofName });
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

/** What is not filled, such as a description, may have any number of placeholders. */
function filledText(text: string, variables: ServerWide['variables']): string {
  return filledCharacters(text, variables) > mostFilledOfField ? text : fillVariables(text, variables);
}

function pathOf(steps: readonly (string | number)[]): string {
  return steps.map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index ? '.' : ''}${step}`)).join('');
}
