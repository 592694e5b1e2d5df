import { clientsWithStrictNames, inWords, knownClients, toolNameOfModels } from '../clients/clients.ts';
import { authenticationOfTool } from '../config/authentication.ts';
import { argumentNames, argumentsOf, toJsonSchema } from '../config/input-schema.ts';
import { bodyKindOf } from '../config/sending/destinations.ts';
import { hiddenCharacters, type ServerConfig } from '../config/server-config.ts';
import { type SecretUse, secretUsesOfServer, secretUsesOfTool, toolResolver } from '../config/server-wide.ts';
import { enabledTools, type Tool } from '../config/tool.ts';
import { limitsAnswers, listedTools, toolDefinition, toolList } from '../config/tool-list.ts';
import { indexTools, isReadOnly, toolsOfView, type View, viewToolOf } from '../config/view.ts';
import { headerOf } from '../http/headers.ts';
import { foldedHeader } from '../http/parameter-names.ts';
import { placeholderNames } from '../http/placeholders.ts';
import { parseUrlTemplate } from '../http/url-template.ts';
import { tokensOfLength } from '../pieces/tokens.ts';
import { newGuesses } from '../problems/did-you-mean.ts';
import { firstNames } from '../problems/first-names.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import type { ToolDefinition } from '../search/own-tools.ts';
import { nextTurn } from '../work/next-turn.ts';
import { schemaFaults } from './client-schemas.ts';
import { answerWarnings, bracesInHeaders, hintWarnings, pathWarnings } from './effect-warnings.ts';
import { filterWarnings } from './filter-warnings.ts';
import { loginWarnings, replacedArguments } from './login-warnings.ts';
import { besideFixed, besideUrl } from './name-warnings.ts';

/** A warning about a configuration that is valid but will probably not work as intended. */
export type Warning = { path: string; message: string };

const manyTools = 40;
const manyTokens = 10_000;
const limitsOfClients = knownClients
  .filter(({ maxTools }) => maxTools !== undefined)
  .map(({ name, maxTools }) => `${name} takes ${maxTools}`)
  .join(', ');

/** Cost of the list of tools for an agent: current models take about four characters of JSON as a token. */
export function estimatedTokens(config: ServerConfig): number {
  return tokensOfLength(lengthOf(toolList(config)));
}

/** Tools whose definitions are written in one turn of the event loop. */
const toolsOfTurn = 100;

/** The same in several turns of the event loop where there are many tools. */
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

function lengthOf(list: readonly ToolDefinition[]): number {
  return JSON.stringify(list.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))).length;
}

/** Lints a configuration. `storedSecrets` are the names of the secrets that have a value. */
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

/** Warnings about the list of tools as a whole. `tokens` are those of `estimatedTokens`. */
export function warningsOfList(config: ServerConfig, tokens = estimatedTokens(config)): Warning[] {
  const warnings: Warning[] = [];
  const count = enabledTools(config).length;
  if (count === 0) warnings.push({ path: 'tools', message: noTools(config) });
  const listed = listedTools(config).length;
  if (listed > manyTools) {
    warnings.push({
      path: 'tools',
      message: `${listed} tools: some clients cut off above ${manyTools} (${limitsOfClients}, over all their servers); consider several servers, or tool_mode search`,
    });
  }
  if (tokens > manyTokens) {
    warnings.push({
      path: 'tools',
      message: `the list of tools costs about ${tokens} tokens in every conversation; shorten descriptions, split, or set tool_mode to search`,
    });
  }
  return warnings;
}

/** The warning about a server without any enabled tool. */
export function noTools(config: Pick<ServerConfig, 'tools'>): string {
  return config.tools.length === 0
    ? 'the server has no tools yet'
    : 'every tool of the server is disabled; agents see none';
}

/** `written` is the tool as it is stored; its warnings are about `tool`, which has the fields of the server too. */
function toolWarnings(written: Tool, at: string, tool: Tool): Warning[] {
  const warnings: Warning[] = [];
  const warn = (field: string, message: string) => warnings.push({ path: `${at}.${field}`, message });
  const writes = tool.method === 'POST' || tool.method === 'PATCH';
  if (
    writes &&
    tool.url.includes('/rest/v1/') &&
    !headerOf(tool.headers, 'prefer')?.includes('return=representation')
  ) {
    warn('headers', 'without "Prefer: return=representation" such an upstream answers with an empty 204');
  }
  if ((tool.method === 'GET' || tool.method === 'DELETE') && hasOwnContentType(written) && !mayHaveBody(tool)) {
    warn('headers.Content-Type', `a ${tool.method} request normally has no body`);
  }
  if (tool.description.length < 20)
    warn('description', 'is under 20 characters; models choose tools by their description');
  if (hiddenCharacters.test(tool.description.replaceAll(/[\n\t]/g, '')))
    warn('description', 'has invisible characters');
  if (hasTokenInParentheses(tool)) {
    warn(
      'url',
      'a :token inside parentheses of a query value can be escaped from by , and ) in upstreams with their own filter language; prefer eq.:id',
    );
  }
  warnings.push(...filterWarnings(tool, at), ...besideUrl(tool, at), ...clearCredentials(written, `${at}.headers`));
  return warnings;
}

/** Whether a tool whose method has no usual body says that it has one. */
function mayHaveBody(tool: Tool): boolean {
  return (
    bodyKindOf(tool) === 'argument' ||
    bodyKindOf(tool) === 'template' ||
    argumentsOf(tool.input_schema).some(({ location }) => location === 'body')
  );
}

function hasOwnContentType(tool: Tool): boolean {
  return headerOf(tool.headers, 'content-type') !== undefined;
}

function clearCredentials({ headers = {} }: { headers?: Record<string, string> | undefined }, at: string): Warning[] {
  return Object.entries(headers)
    .filter(
      ([name, value]) =>
        /^(authorization|apikey|x-api-key)$/.test(foldedHeader(name)) && placeholderNames(value).length === 0,
    )
    .map(([name]) => ({
      path: `${at}.${name}`,
      message: 'looks like a credential in clear text; store it as a secret and write {{NAME}}',
    }));
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
      return [{ path, message: `is also the name of a stored secret, which {{${name}}} then no longer sends` }];
    return used.has(name) ? [] : [{ path, message: `no {{${name}}} refers to it` }];
  });
}

function hasTokenInParentheses(tool: Tool): boolean {
  const { template } = parseUrlTemplate(tool.url, argumentNames(tool.input_schema));
  return (template?.query ?? []).some(({ parts }) => {
    let depth = 0;
    for (const part of parts ?? []) {
      if ('argument' in part && depth > 0) return true;
      if ('text' in part) depth += part.text.split('(').length - part.text.split(')').length;
    }
    return false;
  });
}

type Remark = { path: string; message: string };

/** Warnings about a listed tool that known clients refuse or cut off; each names the clients. */
function clientWarnings(tool: Tool, at: string, slug: string): Remark[] {
  return [...nameWarnings(tool.name, `${at}.name`, slug), ...schemaWarnings(toJsonSchema(tool.input_schema), at)];
}

function nameWarnings(name: string, path: string, slug: string): Remark[] {
  const remarks: Remark[] = [];
  if (!toolNameOfModels.test(name)) {
    const clients = inWords(clientsWithStrictNames);
    remarks.push({ path, message: `has a dot, which the models of ${clients} refuse; write _ instead` });
  }
  for (const { name: client, toolName } of knownClients) {
    const shown = toolName.shown(slug, name);
    const excess = shown.length - toolName.max;
    if (excess <= 0) continue;
    const message = `is ${shown} in ${client}, which takes ${toolName.max} characters; make the name of the tool shorter by ${excess}`;
    remarks.push({ path, message });
  }
  return remarks;
}

function schemaWarnings(schema: JsonSchema, at: string): Remark[] {
  return schemaFaults.flatMap(({ what, refusedBy, spoiltBy, advice, find }) => {
    const found = find(schema);
    if (found.length === 0) return [];
    const where = found.filter((place) => place !== '');
    const named = where.length > 0 ? ` (${firstNames(where)})` : '';
    const refused = refusedBy.length > 0 && `${inWords(refusedBy)} refuse the tool`;
    const spoilt = spoiltBy && `${inWords(spoiltBy.clients)} ${spoiltBy.how}`;
    const effect = [refused, spoilt].filter(Boolean).join(', ');
    return [{ path: `${at}.input_schema`, message: `${what}${named}: ${effect}; ${advice}` }];
  });
}

type ViewWarning = { path: string; message: string };

/** Warnings about tools that a view names and does not have, and about a view that has none. */
export function viewWarnings({ tools, views = {} }: Pick<ServerConfig, 'tools' | 'views'>): ViewWarning[] {
  const index = indexTools(tools);
  return Object.entries(views).flatMap(([name, view]) => {
    const isEmpty = toolsOfView(view, index).every(({ tool }) => tool.disabled === true);
    const empty = { path: `views.${name}`, message: 'every tool of the view is disabled; agents see none there' };
    return [...namedInVain(view, `views.${name}`, index.byName), ...(isEmpty ? [empty] : [])];
  });
}

function namedInVain(view: View, at: string, byName: ReadonlyMap<string, Tool>): ViewWarning[] {
  return (view.tools ?? []).flatMap((entry, position) => {
    const { name } = viewToolOf(entry);
    const tool = byName.get(name);
    const message = tool && whyLeftOut(tool, view);
    return message === undefined ? [] : [{ path: `${at}.tools[${position}]`, message }];
  });
}

function whyLeftOut(tool: Tool, { read_only }: View): string | undefined {
  if (tool.disabled) return `the tool "${tool.name}" is disabled, so the view does not have it`;
  if (!read_only || isReadOnly(tool)) return undefined;
  return `the tool "${tool.name}" may change data, so read_only leaves it out; leave its name out too, or set its annotation readOnlyHint`;
}
