import { parseUrlTemplate } from '../http/url-template.ts';
import { argumentNames, toJsonSchema } from './input-schema.ts';
import { loginWarnings, replacedArguments } from './login-warnings.ts';
import { placeholderNames } from './placeholders.ts';
import { hiddenCharacters, type ServerConfig } from './server-config.ts';
import { enabledTools, type Tool } from './tool.ts';

/** A warning about a configuration that is valid but will probably not work as intended. */
export type Warning = { path: string; message: string };

const manyTools = 40;
const manyTokens = 10_000;

/** Cost of the list of tools for an agent: current models take about four characters of JSON as a token. */
export function estimatedTokens(config: ServerConfig): number {
  const list = enabledTools(config).map((t) => ({
    name: t.name,
    description: t.description,
    inputSchema: toJsonSchema(t.input_schema),
  }));
  return Math.ceil(JSON.stringify(list).length / 4);
}

/** Lints a configuration. `storedSecrets` are the names of the secrets that have a value. */
export function warningsOf(config: ServerConfig, storedSecrets: ReadonlySet<string>): Warning[] {
  const warnings: Warning[] = config.tools.flatMap((tool, index) => [
    ...toolWarnings(tool, `tools[${index}]`, storedSecrets),
    ...replacedArguments(tool, `tools[${index}]`, config.authentication),
  ]);
  warnings.push(...warningsOfList(config), ...loginWarnings(config));
  for (const name of placeholderNames(config.authentication?.token ?? '')) {
    if (!storedSecrets.has(name)) warnings.push(missingSecret('authentication.token', name));
  }
  if (config.description && hiddenCharacters.test(config.description.replaceAll(/[\n\t]/g, ''))) {
    warnings.push({ path: 'description', message: 'has invisible characters' });
  }
  return warnings;
}

/** Warnings about the list of tools as a whole. */
export function warningsOfList(config: ServerConfig): Warning[] {
  const warnings: Warning[] = [];
  const count = enabledTools(config).length;
  if (count === 0) warnings.push({ path: 'tools', message: noTools(config) });
  if (count > manyTools) {
    warnings.push({
      path: 'tools',
      message: `${count} tools: some clients cut off above ${manyTools}; consider several servers`,
    });
  }
  const tokens = estimatedTokens(config);
  if (tokens > manyTokens) {
    warnings.push({
      path: 'tools',
      message: `the list of tools costs about ${tokens} tokens in every conversation; shorten descriptions or split`,
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

function toolWarnings(tool: Tool, at: string, storedSecrets: ReadonlySet<string>): Warning[] {
  const warnings: Warning[] = [];
  const warn = (field: string, message: string) => warnings.push({ path: `${at}.${field}`, message });
  const header = (name: string) => Object.entries(tool.headers).find(([key]) => key.toLowerCase() === name)?.[1];
  const writes = tool.method === 'POST' || tool.method === 'PATCH';
  if (writes && tool.url.includes('/rest/v1/') && !header('prefer')?.includes('return=representation')) {
    warn('headers', 'without "Prefer: return=representation" such an upstream answers with an empty 204');
  }
  if ((tool.method === 'GET' || tool.method === 'DELETE') && header('content-type') !== undefined) {
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
  for (const [name, value] of Object.entries(tool.headers)) {
    for (const secret of placeholderNames(value)) {
      if (!storedSecrets.has(secret) && tool.disabled !== true)
        warnings.push(missingSecret(`${at}.headers.${name}`, secret));
    }
    if (/^(authorization|apikey|x-api-key)$/i.test(name) && placeholderNames(value).length === 0) {
      warn(`headers.${name}`, 'looks like a credential in clear text; store it as a secret and write {{NAME}}');
    }
  }
  return warnings;
}

function missingSecret(path: string, name: string): Warning {
  return { path, message: `{{${name}}} has no value yet; set the secret before calling` };
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
