import { knownClients } from '../clients/clients.ts';
import {
  type Authentication,
  type Authentications,
  authenticationOfTool,
  credentialQueryNames,
  everyCredential,
} from '../config/authentication.ts';
import { bodyKindOf } from '../config/destinations.ts';
import { argumentsOf } from '../config/input-schema.ts';
import type { ServerConfig } from '../config/server-config.ts';
import { type SecretUse, secretUsesOfServer, secretUsesOfTool, toolResolver } from '../config/server-wide.ts';
import { enabledTools, limitsAnswers, listedTools, type Tool, toolDefinition, toolList } from '../config/tool.ts';
import { indexTools, isReadOnly, toolsOfView, type View, viewToolOf } from '../config/view.ts';
import { isReadAs } from '../http/parameter-names.ts';
import { placeholderNames } from '../http/placeholders.ts';
import { readUrl } from '../http/read-url.ts';
import { tokensOfLength } from '../pieces/tokens.ts';
import { newGuesses } from '../problems.ts';
import type { ToolDefinition } from '../search/own-tools.ts';
import { hiddenCharacters } from '../unseen-characters.ts';
import { nextTurn } from '../work/next-turn.ts';
import { clientWarnings } from './client-warnings.ts';
import {
  answerWarnings,
  besideFixed,
  bracesInHeaders,
  clearCredentials,
  hintWarnings,
  pathWarnings,
  toolWarnings,
} from './tool-warnings.ts';

/** A warning about a configuration that is valid but probably does not work as intended. */
export type Warning = { path: string; message: string };

const manyTools = 40;
const manyTokens = 10_000;
const limitsOfClients = knownClients
  .filter(({ maxTools }) => maxTools !== undefined)
  .map(({ name, maxTools }) => `${name} allows ${maxTools}`)
  .join(', ');

/**
 * Estimates the tokens of the tool list for an agent. Current models use about one token per four characters of JSON.
 */
export function estimatedTokens(config: ServerConfig): number {
  return tokensOfLength(lengthOf(toolList(config)));
}

/** Number of tool definitions serialized before yielding to the event loop. */
const toolsOfTurn = 100;

/** Estimates the tokens of the tool list, and yields to the event loop if there are many tools. */
export async function estimatedTokensInTurns(config: ServerConfig): Promise<number> {
  if (config.tools.length <= toolsOfTurn) return estimatedTokens(config);
  const listed = listedTools(config);
  const isListed = new Set(listed);
  const own = { ...config, tools: config.tools.filter((tool) => !isListed.has(tool)) };
  let length = lengthOf(toolList({ ...own, ...(limitsAnswers(config) && { max_answer_tokens: 1 }) }));
  for (let first = 0; first < listed.length; first += toolsOfTurn) {
    await nextTurn();
    const part = listed.slice(first, first + toolsOfTurn);
    // A comma instead of the two brackets.
    length += lengthOf(part.map((tool) => toolDefinition(tool, config))) - 1;
  }
  return tokensOfLength(length);
}

/** Estimates the tokens of each tool definition, in tool order. */
export async function estimatedTokensOfTools(config: ServerConfig): Promise<number[]> {
  const tokens: number[] = [];
  for (const tool of config.tools) {
    if (tokens.length % toolsOfTurn === toolsOfTurn - 1) await nextTurn();
    tokens.push(tokensOfLength(lengthOf([toolDefinition(tool, config)])));
  }
  return tokens;
}

function lengthOf(list: readonly ToolDefinition[]): number {
  return JSON.stringify(list.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))).length;
}

/** Returns the warnings of a configuration. `storedSecrets` are the names of the secrets that have a value. */
export function warningsOf(config: ServerConfig, storedSecrets: ReadonlySet<string>): Warning[] {
  const listed = new Set(listedTools(config));
  const guesses = newGuesses();
  const resolve = toolResolver(config);
  const warnings: Warning[] = config.tools.flatMap((tool, index) => [
    ...toolWarnings(tool, `tools[${index}]`, resolve(tool)),
    ...secretWarnings(tool.disabled ? [] : secretUsesOfTool(tool, config), `tools[${index}].`, storedSecrets),
    ...replacedArguments(tool, `tools[${index}]`, authenticationOfTool(config, tool)),
    ...(listed.has(tool) ? clientWarnings(tool, `tools[${index}]`, config.slug) : []),
    ...hintWarnings(tool, `tools[${index}]`),
    ...pathWarnings(tool, `tools[${index}]`),
    ...answerWarnings(tool, `tools[${index}]`, guesses),
    ...bracesInHeaders(tool.headers, `tools[${index}].headers`),
  ]);
  warnings.push(...warningsOfList(config), ...loginWarnings(config));
  warnings.push(
    ...secretWarnings(secretUsesOfServer(config), '', storedSecrets),
    ...clearCredentials(config, 'headers'),
    ...bracesInHeaders(config.headers, 'headers'),
    ...variableWarnings(config, storedSecrets),
    ...viewWarnings(config),
    ...besideFixed(config),
  );
  if (config.description && hiddenCharacters.test(config.description.replaceAll(/[\n\t]/g, ''))) {
    warnings.push({ path: 'description', message: 'has invisible characters' });
  }
  return warnings;
}

/** Returns warnings about the tool list as a whole. `tokens` is the result of `estimatedTokens`. */
export function warningsOfList(config: ServerConfig, tokens = estimatedTokens(config)): Warning[] {
  const warnings: Warning[] = [];
  const count = enabledTools(config).length;
  if (count === 0) warnings.push({ path: 'tools', message: noTools(config) });
  const listed = listedTools(config).length;
  if (listed > manyTools) {
    warnings.push({
      path: 'tools',
      message: `has ${listed} tools, but some clients drop tools above ${manyTools} (${limitsOfClients}, across all their servers); use several servers, or set tool_mode to search`,
    });
  }
  if (tokens > manyTokens) {
    warnings.push({
      path: 'tools',
      message: `the tool list uses about ${tokens} tokens in every conversation; shorten descriptions, split the server, or set tool_mode to search`,
    });
  }
  return warnings;
}

/** Returns the warning about a server without enabled tools. */
export function noTools(config: Pick<ServerConfig, 'tools'>): string {
  return config.tools.length === 0
    ? 'the server has no tools yet'
    : 'every tool of the server is disabled; agents see none';
}

function secretWarnings(uses: readonly SecretUse[], at: string, storedSecrets: ReadonlySet<string>): Warning[] {
  return uses.flatMap(({ path, names }) =>
    names
      .filter((name) => !storedSecrets.has(name))
      .map((name) => ({
        path: at + path,
        message: `{{${name}}} has no value yet; set the secret before calling`,
      })),
  );
}

function variableWarnings({ variables = {}, ...rest }: ServerConfig, storedSecrets: ReadonlySet<string>): Warning[] {
  const names = Object.keys(variables);
  if (names.length === 0) return [];
  const used = new Set(
    placeholderNames([rest.base_url, rest.headers, rest.tools.map(({ url, headers }) => [url, headers]), rest.views]),
  );
  return names.flatMap((name) => {
    const path = `variables.${name}`;
    if (storedSecrets.has(name))
      return [{ path, message: `is also the name of a stored secret, which {{${name}}} no longer sends` }];
    return used.has(name) ? [] : [{ path, message: `no {{${name}}} refers to it` }];
  });
}

/** Returns warnings about tools that a view names but does not include, and about a view without enabled tools. */
export function viewWarnings({ tools, views = {} }: Pick<ServerConfig, 'tools' | 'views'>): Warning[] {
  const index = indexTools(tools);
  return Object.entries(views).flatMap(([name, view]) => {
    const isEmpty = toolsOfView(view, index).every(({ tool }) => tool.disabled === true);
    const empty = { path: `views.${name}`, message: 'every tool of the view is disabled, so agents see none' };
    return [...namedInVain(view, `views.${name}`, index.byName), ...(isEmpty ? [empty] : [])];
  });
}

function namedInVain(view: View, at: string, byName: ReadonlyMap<string, Tool>): Warning[] {
  return (view.tools ?? []).flatMap((entry, position) => {
    const { name } = viewToolOf(entry);
    const tool = byName.get(name);
    const message = tool && whyLeftOut(tool, view);
    return message === undefined ? [] : [{ path: `${at}.tools[${position}]`, message }];
  });
}

function whyLeftOut(tool: Tool, { read_only }: View): string | undefined {
  if (tool.disabled) return `the tool "${tool.name}" is disabled, so the view does not include it`;
  if (!read_only || isReadOnly(tool)) return undefined;
  return `the tool "${tool.name}" may change data, so read_only omits it; remove its name, or set its annotation readOnlyHint`;
}

/** Returns warnings about `oauth` and credential settings that are valid but probably do not work. */
function loginWarnings(config: ServerConfig): Warning[] {
  const { oauth, authentication } = config;
  const warnings = everyCredential(config).flatMap(({ one, path }) =>
    credentialWarnings(one).map((warning) => ({ ...warning, path: `${path}.${warning.path}` })),
  );
  warnings.push(...unusedCredentials(config));
  if (!oauth) return warnings;
  const warn = (path: string, message: string) => warnings.push({ path, message });
  if (!authentication) {
    warn(
      'authentication',
      'is missing, so the login token is never sent to the upstream; set how it is sent, for example {"type": "Bearer"}',
    );
  }
  if (oauth.authorization_url === oauth.token_url) {
    warn(
      'oauth.token_url',
      'is the same URL as authorization_url; a provider has one for people and one for this service',
    );
  } else if (hostOf(oauth.authorization_url) !== hostOf(oauth.token_url)) {
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

function unusedCredentials({ credentials = {}, tools }: ServerConfig): Warning[] {
  const used = new Set(tools.map(({ credential }) => credential));
  const unused = Object.keys(credentials).filter((name) => !used.has(name));
  return unused.map((name) => ({ path: `credentials.${name}`, message: 'no tool refers to it in credential' }));
}

function credentialWarnings({ type, token }: Authentication): Warning[] {
  const isPrefixed =
    (type === 'Bearer' || type === 'Basic') && token?.toLowerCase().startsWith(`${type.toLowerCase()} `);
  if (!isPrefixed) return [];
  return [{ path: 'token', message: `begins with "${type} ", which the type ${type} already adds` }];
}

/** Returns warnings about arguments that the query credential replaces. */
function replacedArguments(tool: Tool, at: string, authentication: Authentications | undefined): Warning[] {
  const credential = credentialQueryNames(authentication);
  const kind = bodyKindOf(tool);
  const inBody = kind === 'json' || kind === 'template';
  return argumentsOf(tool.input_schema)
    .filter(({ name, wire }) => isReadAs(wire.wire_name ?? name, credential))
    .map(({ name }) => ({
      path: `${at}.input_schema.${name}`,
      message: `could be read as the credential in the query, so it is sent ${inBody ? 'only where it is part of a JSON body' : 'nowhere'}`,
    }));
}

function hostOf(url: string): string {
  return readUrl(url)?.host ?? url;
}
