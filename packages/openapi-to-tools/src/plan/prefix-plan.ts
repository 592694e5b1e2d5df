import { createHash } from 'node:crypto';
import { invalidInputError } from '@toolhost/errors/errors';
import { noCredential } from '@toolhost/tool-config/authentication';
import { interpolateDeep } from '@toolhost/tool-config/http/placeholders';
import type { ImportedTool, ToolCandidate } from '../tools/tool-candidate.ts';
import type { ImportedConfig, ImportPlan } from './plan-import.ts';

/** Maximum lengths of the name of a credential, and of a variable or secret. */
const maxCredentialLength = 40;
const maxSecretLength = 64;

/**
 * Moves a plan into the namespace of a prefix, so that it can be added to a server with other tools. Tools have the
 * prefix and absolute URLs, name the credential of their own API instead of the server's, and share no variable or
 * secret with other tools. The configuration contains only these parts.
 * @throws AppError invalid for a login, because a server has only one
 */
export function prefixPlan(plan: ImportPlan, prefix: string): ImportPlan {
  const { config } = plan;
  if (config?.oauth !== undefined) {
    const message = 'a server has one login; omit client_id and client_secret, or create a server of its own';
    throw invalidInputError([{ path: 'answers.client_id', message }]);
  }
  const names = createNames(plan, prefix);
  const prefixTool = (tool: ImportedTool): ImportedTool => ({
    ...(interpolateDeep(tool, names.toPlaceholder) as ImportedTool),
    description: tool.description,
    name: `${prefix}_${tool.name}`,
    url: interpolateUrl(tool.url, config?.base_url, names.toPlaceholder),
    credential: getCredential(tool.credential, config, names.toCredential, prefix),
  });
  const candidates = new Map(plan.all.map((candidate) => [candidate, prefixCandidate(candidate, prefix, prefixTool)]));
  const chosen = plan.chosen.map((candidate) => candidates.get(candidate) ?? candidate);
  const credentials = prefixCredentials(plan, config, names, prefix);
  return {
    ...plan,
    secrets: plan.secrets.map((secret) => ({ ...secret, name: names.toName(secret.name) })),
    credentials,
    all: [...candidates.values()],
    chosen,
    config: config && {
      name: config.name,
      slug: config.slug,
      ...(config.variables !== undefined && { variables: prefixVariables(config.variables, names) }),
      ...(credentials !== undefined && { credentials }),
      max_response_tokens: config.max_response_tokens,
      tools: chosen.flatMap(({ tool }) => (tool ? [tool] : [])),
    },
  };
}

type Names = ReturnType<typeof createNames>;

function createNames({ secrets, config }: ImportPlan, prefix: string) {
  const secretNames = new Set(secrets.map(({ name }) => name));
  const variableNames = new Set(Object.keys(config?.variables ?? {}));
  const toName = (name: string) => {
    if (variableNames.has(name)) return shorten(`${prefix}_${name}`, maxSecretLength);
    return secretNames.has(name) ? shorten(`${prefix.toUpperCase()}_${name}`, maxSecretLength) : name;
  };
  return {
    toName,
    toPlaceholder: (name: string) => `{{${toName(name)}}}`,
    toCredential: (name: string) => shorten(`${prefix}_${name}`, maxCredentialLength),
  };
}

/** Shortens a name. Its digest keeps it different from names with the same beginning. */
function shorten(name: string, maxLength: number): string {
  if (name.length <= maxLength) return name;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return `${name.slice(0, maxLength - digest.length - 1)}_${digest}`;
}

function interpolateUrl(url: string, baseUrl: string | undefined, toPlaceholder: (name: string) => string): string {
  const absolute = url.startsWith('/') && baseUrl !== undefined ? baseUrl.replace(/\/$/, '') + url : url;
  return interpolateDeep(absolute, toPlaceholder) as string;
}

/** Returns the credential of a tool. Without one, the credential of the server's other API would be sent. */
function getCredential(
  credential: string | undefined,
  config: ImportedConfig | undefined,
  toCredential: Names['toCredential'],
  prefix: string,
): string {
  if (credential === undefined) return config?.authentication === undefined ? noCredential : prefix;
  return credential === noCredential ? credential : toCredential(credential);
}

function prefixCandidate(
  candidate: ToolCandidate,
  prefix: string,
  prefixTool: (tool: ImportedTool) => ImportedTool,
): ToolCandidate {
  const { name, tool } = candidate;
  return { ...candidate, name: `${prefix}_${name}`, tool: tool && prefixTool(tool) };
}

function prefixCredentials(
  plan: ImportPlan,
  config: ImportedConfig | undefined,
  { toCredential, toPlaceholder }: Names,
  prefix: string,
): ImportedConfig['credentials'] {
  const named = Object.entries(plan.credentials ?? {}).map(([name, credential]) => [toCredential(name), credential]);
  const all = [...(config?.authentication === undefined ? [] : [[prefix, config.authentication]]), ...named];
  if (all.length === 0) return undefined;
  return interpolateDeep(Object.fromEntries(all), toPlaceholder) as ImportedConfig['credentials'];
}

function prefixVariables(variables: object, { toName }: Names): object {
  return Object.fromEntries(Object.entries(variables).map(([name, variable]) => [toName(name), variable]));
}
