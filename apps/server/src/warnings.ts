import { createSuggestionBudget } from '@toolhost/errors/problems';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { findClientWarnings } from '@toolhost/mcp-clients/client-warnings';
import { knownClients } from '@toolhost/mcp-clients/clients';
import {
  type Authentication,
  type Authentications,
  credentialQueryNames,
  getToolAuthentication,
  listCredentials,
} from '@toolhost/tool-config/authentication';
import type { ToolDefinition } from '@toolhost/tool-config/built-in-tools';
import { getBodyKind } from '@toolhost/tool-config/destinations';
import { isReadAs } from '@toolhost/tool-config/http/parameter-names';
import { getPlaceholderNames } from '@toolhost/tool-config/http/placeholders';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { getArguments } from '@toolhost/tool-config/input-schema';
import { deceptiveCharacters } from '@toolhost/tool-config/invisible-characters';
import { findPeopleWarnings } from '@toolhost/tool-config/login-warnings';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import {
  createToolResolver,
  getServerSecretUses,
  getToolSecretUses,
  type SecretUse,
} from '@toolhost/tool-config/server-wide';
import { estimateTokenCount } from '@toolhost/tool-config/tokens';
import {
  createToolList,
  getEnabledTools,
  getListedTools,
  hasResponseLimit,
  type Tool,
  toToolDefinition,
} from '@toolhost/tool-config/tool';
import {
  findBraceWarnings,
  findFixedConflicts,
  findHintWarnings,
  findPathWarnings,
  findPlaintextCredentials,
  findResponseWarnings,
  findToolWarnings,
} from '@toolhost/tool-config/tool-warnings';
import { indexTools, isReadOnly, selectTools, toViewTool, type View } from '@toolhost/tool-config/view';
import type { Warning } from '@toolhost/tool-config/warning';

/** Numbers of listed tools, and of tokens of the tool list, above which there is a warning. */
const manyToolsThreshold = 40;
const manyTokensThreshold = 10_000;
const clientLimits = knownClients
  .filter(({ maxTools }) => maxTools !== undefined)
  .map(({ name, maxTools }) => `${name} allows ${maxTools}`)
  .join(', ');

/**
 * Estimates the tokens of the tool list for an agent. Current models use about one token per four characters of JSON.
 */
export function estimateTokens(config: ServerConfig): number {
  return estimateTokenCount(getJsonLength(createToolList(config)));
}

/** Number of tool definitions serialized before yielding to the event loop. */
const toolsPerChunk = 100;

/** Estimates the tokens of the tool list, and yields to the event loop if there are many tools. */
export async function estimateTokensInChunks(config: ServerConfig): Promise<number> {
  if (config.tools.length <= toolsPerChunk) return estimateTokens(config);
  const listedTools = getListedTools(config);
  const listed = new Set(listedTools);
  // Measures the built-in tools first. `max_response_tokens` adds `read_more` to them, whatever its value.
  const unlistedConfig = { ...config, tools: config.tools.filter((tool) => !listed.has(tool)) };
  let length = getJsonLength(
    createToolList({ ...unlistedConfig, ...(hasResponseLimit(config) && { max_response_tokens: 1 }) }),
  );
  for (let start = 0; start < listedTools.length; start += toolsPerChunk) {
    await yieldToEventLoop();
    const chunk = listedTools.slice(start, start + toolsPerChunk);
    // A chunk adds a comma to the whole list instead of its two brackets.
    length += getJsonLength(chunk.map((tool) => toToolDefinition(tool, config))) - 1;
  }
  return estimateTokenCount(length);
}

/** Estimates the tokens of each tool definition, in tool order. */
export async function estimateToolTokens(config: ServerConfig): Promise<number[]> {
  const tokens: number[] = [];
  for (const tool of config.tools) {
    if (tokens.length % toolsPerChunk === toolsPerChunk - 1) await yieldToEventLoop();
    tokens.push(estimateTokenCount(getJsonLength([toToolDefinition(tool, config)])));
  }
  return tokens;
}

function getJsonLength(list: readonly ToolDefinition[]): number {
  return JSON.stringify(list.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))).length;
}

/** Returns the warnings of a configuration. `storedSecrets` are the names of the secrets that have a value. */
export function findWarnings(config: ServerConfig, storedSecrets: ReadonlySet<string>): Warning[] {
  const listedTools = new Set(getListedTools(config));
  const suggestionBudget = createSuggestionBudget();
  const resolve = createToolResolver(config);
  const warnings: Warning[] = config.tools.flatMap((tool, index) => [
    ...findToolWarnings(tool, `tools[${index}]`, resolve(tool)),
    ...findSecretWarnings(tool.disabled ? [] : getToolSecretUses(tool, config), `tools[${index}].`, storedSecrets),
    ...findReplacedArguments(tool, `tools[${index}]`, getToolAuthentication(config, tool)),
    ...(listedTools.has(tool) ? findClientWarnings(tool, `tools[${index}]`, config.slug) : []),
    ...findHintWarnings(tool, `tools[${index}]`),
    ...findPathWarnings(tool, `tools[${index}]`),
    ...findResponseWarnings(tool, `tools[${index}]`, suggestionBudget),
    ...findBraceWarnings(tool.headers, `tools[${index}].headers`),
  ]);
  warnings.push(...findListWarnings(config), ...findLoginWarnings(config), ...findPeopleWarnings(config));
  warnings.push(
    ...findSecretWarnings(getServerSecretUses(config), '', storedSecrets),
    ...findPlaintextCredentials(config, 'headers'),
    ...findBraceWarnings(config.headers, 'headers'),
    ...findVariableWarnings(config, storedSecrets),
    ...findViewWarnings(config),
    ...findFixedConflicts(config),
  );
  if (config.description && deceptiveCharacters.test(config.description.replaceAll(/[\n\t]/g, '')))
    warnings.push({ path: 'description', message: 'has invisible characters' });
  return warnings;
}

/** Returns warnings about the tool list as a whole. `tokens` is the result of `estimateTokens`. */
export function findListWarnings(config: ServerConfig, tokens = estimateTokens(config)): Warning[] {
  const warnings: Warning[] = [];
  const count = getEnabledTools(config).length;
  if (count === 0) warnings.push({ path: 'tools', message: getNoToolsMessage(config) });
  const listedCount = getListedTools(config).length;
  if (listedCount > manyToolsThreshold)
    warnings.push({
      path: 'tools',
      message: `has ${listedCount} tools, but some clients drop tools above ${manyToolsThreshold} (${clientLimits}, across all their servers); use several servers, or set tool_mode to search`,
    });
  if (tokens > manyTokensThreshold)
    warnings.push({
      path: 'tools',
      message: `the tool list uses about ${tokens} tokens in every conversation; shorten descriptions, split the server, or set tool_mode to search`,
    });
  return warnings;
}

/** Returns the warning about a server without enabled tools. */
export function getNoToolsMessage(config: Pick<ServerConfig, 'tools'>): string {
  return config.tools.length === 0
    ? 'the server has no tools yet'
    : 'every tool of the server is disabled; agents see none';
}

function findSecretWarnings(
  uses: readonly SecretUse[],
  pathPrefix: string,
  storedSecrets: ReadonlySet<string>,
): Warning[] {
  return uses.flatMap(({ path, names }) =>
    names
      .filter((name) => !storedSecrets.has(name))
      .map((name) => ({
        path: pathPrefix + path,
        message: `{{${name}}} has no value yet; set the secret before calling`,
      })),
  );
}

function findVariableWarnings(
  { variables = {}, ...config }: ServerConfig,
  storedSecrets: ReadonlySet<string>,
): Warning[] {
  const names = Object.keys(variables);
  if (names.length === 0) return [];
  const usedNames = new Set(
    getPlaceholderNames([
      config.base_url,
      config.headers,
      config.tools.map(({ url, headers }) => [url, headers]),
      config.views,
    ]),
  );
  return names.flatMap((name) => {
    const path = `variables.${name}`;
    if (storedSecrets.has(name))
      return [{ path, message: `is also the name of a stored secret, which {{${name}}} no longer sends` }];
    return usedNames.has(name) ? [] : [{ path, message: `no {{${name}}} refers to it` }];
  });
}

/** Returns warnings about tools that a view names but does not include, and about a view without enabled tools. */
export function findViewWarnings({ tools, views = {} }: Pick<ServerConfig, 'tools' | 'views'>): Warning[] {
  const index = indexTools(tools);
  return Object.entries(views).flatMap(([name, view]) => {
    const isEmpty = selectTools(view, index).every(({ tool }) => tool.disabled === true);
    const empty = { path: `views.${name}`, message: 'every tool of the view is disabled, so agents see none' };
    return [...findOmittedTools(view, `views.${name}`, index.byName), ...(isEmpty ? [empty] : [])];
  });
}

function findOmittedTools(view: View, viewPath: string, byName: ReadonlyMap<string, Tool>): Warning[] {
  return (view.tools ?? []).flatMap((entry, position) => {
    const { name } = toViewTool(entry);
    const tool = byName.get(name);
    const message = tool && getOmissionReason(tool, view);
    return message === undefined ? [] : [{ path: `${viewPath}.tools[${position}]`, message }];
  });
}

function getOmissionReason(tool: Tool, { read_only }: View): string | undefined {
  if (tool.disabled) return `the tool "${tool.name}" is disabled, so the view does not include it`;
  if (!read_only || isReadOnly(tool)) return undefined;
  return `the tool "${tool.name}" may change data, so read_only omits it; remove its name, or set its annotation readOnlyHint`;
}

/** Returns warnings about `oauth` and credential settings that are valid but probably do not work. */
function findLoginWarnings(config: ServerConfig): Warning[] {
  const { oauth, authentication } = config;
  const warnings = listCredentials(config).flatMap(({ credential, path }) =>
    findCredentialWarnings(credential).map((warning) => ({ ...warning, path: `${path}.${warning.path}` })),
  );
  warnings.push(...findUnusedCredentials(config));
  if (!oauth) return warnings;
  const warn = (path: string, message: string) => warnings.push({ path, message });
  if (!authentication)
    warn(
      'authentication',
      'is missing, so the login token is never sent to the upstream; set how it is sent, for example {"type": "Bearer"}',
    );
  if (oauth.authorization_url === oauth.token_url) {
    warn(
      'oauth.token_url',
      'is the same URL as authorization_url; a provider has one for people and one for this service',
    );
  } else if (getHost(oauth.authorization_url) !== getHost(oauth.token_url)) {
    warn(
      'oauth.token_url',
      'is on a different host than authorization_url; make sure that both belong to you or to the same provider',
    );
  }
  for (const field of ['client_id', 'client_secret'] as const) {
    if (oauth[field] !== oauth[field]?.trim())
      warn(`oauth.${field}`, 'begins or ends with white space; remove it if it is not part of the value');
  }
  return warnings;
}

function findUnusedCredentials({ credentials = {}, tools }: ServerConfig): Warning[] {
  const usedNames = new Set(tools.map(({ credential }) => credential));
  const unused = Object.keys(credentials).filter((name) => !usedNames.has(name));
  return unused.map((name) => ({ path: `credentials.${name}`, message: 'no tool refers to it in credential' }));
}

function findCredentialWarnings({ type, token }: Authentication): Warning[] {
  const isPrefixed =
    (type === 'Bearer' || type === 'Basic') && token?.toLowerCase().startsWith(`${type.toLowerCase()} `);
  if (!isPrefixed) return [];
  return [{ path: 'token', message: `begins with "${type} ", which the type ${type} already adds` }];
}

/** Returns warnings about arguments that the query credential replaces. */
function findReplacedArguments(tool: Tool, toolPath: string, authentication: Authentications | undefined): Warning[] {
  const credential = credentialQueryNames(authentication);
  const kind = getBodyKind(tool);
  const isJsonBody = kind === 'json' || kind === 'template';
  return getArguments(tool.input_schema)
    .filter(({ name, wire }) => isReadAs(wire.wire_name ?? name, credential))
    .map(({ name }) => ({
      path: `${toolPath}.input_schema.${name}`,
      message: `could be read as the credential in the query, so it is sent ${isJsonBody ? 'only where it is part of a JSON body' : 'nowhere'}`,
    }));
}

function getHost(url: string): string {
  return parseUrl(url)?.host ?? url;
}
