import { AppError, invalidInputError, JobError, type Problem } from '@toolhost/errors/errors';
import { describeForeignDocument } from '@toolhost/errors/input-errors';
import { yieldAfterLongText, yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { maxParsedOnLoop } from '@toolhost/json/body-limits';
import { isLargerThan, parseJson, parseStoredJson } from '@toolhost/json/json';
import { containsLargeValue, toJsonWithLargeValues } from '@toolhost/json/large-value';
import { hasMorePlaceholders } from '@toolhost/tool-config/http/placeholders';
import { findStoredNameProblems } from '@toolhost/tool-config/personal-values';
import { type ConfigRules, checkServerConfig, type ServerConfig } from '@toolhost/tool-config/server-config';
import {
  type Access,
  getAccess,
  getOrigins,
  maxVariableLength,
  type SecretDestinations,
} from '@toolhost/tool-config/server-wide';
import type { Warning } from '@toolhost/tool-config/warning';
import { findSecrets } from '../store/servers/secrets.ts';
import type { StoredServer } from '../store/servers/servers.ts';
import { findWarnings } from '../warnings.ts';
import { type Context, createConfigRules, type Prepared, type RuleSource } from './operation.ts';

/** Problems and warnings of a configuration. `config` is set if the configuration is valid, with defaults applied. */
export type CheckedConfig = {
  config?: ServerConfig;
  problems: readonly Problem[];
  warnings: readonly Warning[];
  /** Describes the document of another program that was sent instead of a tool; undefined for a tool. */
  foreignKind?: string | undefined;
};

/** Facts about a valid configuration. `secretScope` decides where its secrets are sent, with one tool for each host. */
type ConfigFacts = { tools: number; access: Access; secretScope: SecretDestinations };

/** Checks a configuration on a thread. @throws JobError */
export type CheckConfigOnThread = (
  input: Omit<ConfigurationJob['input'], 'rules'>,
  workspaceId: string,
) => Promise<ConfigurationJob['output']>;

/** Thrown in a transaction if the server changed after the operation was prepared; it is then prepared again, once. */
export class StalePreparation extends AppError {
  constructor() {
    super('conflict', 'the server was changed several times while this change was checked; repeat your change');
  }
}

/**
 * Job that checks a configuration on a thread. Configurations are transferred as JSON text; a valid one is also
 * returned if `purpose` is to store it or one of its tools. For a stored configuration, which is valid, only the
 * warnings are computed. `secrets` contains the names of the secrets that have a value.
 */
export type ConfigurationJob = {
  input: {
    config: string;
    secrets: readonly string[];
    purpose: 'store' | 'store-tool' | 'report' | 'warnings';
    rules: RuleSource;
  };
  output: Omit<CheckedConfig, 'config'> & { config?: string | undefined; facts?: ConfigFacts | undefined };
};

function isLarge(raw: unknown): boolean {
  if (containsLargeValue(raw) || isLargerThan(raw, maxParsedOnLoop)) return true;
  const hasVariables = typeof raw === 'object' && raw !== null && 'variables' in raw;
  return hasVariables && hasMorePlaceholders(raw, maxParsedOnLoop.characters / maxVariableLength);
}

/** Checks a configuration on this thread. `secrets` contains the names of the secrets that have a value. */
function checkDirectly(raw: unknown, rules: ConfigRules, secrets: readonly string[]): CheckedConfig {
  const { config, problems } = checkServerConfig(raw, rules);
  const nameProblems = config ? findStoredNameProblems(config, new Set(secrets)) : [];
  if (nameProblems.length > 0) return { problems: nameProblems, warnings: [] };
  return config ? { config, problems, warnings: findWarnings(config, new Set(secrets)) } : { problems, warnings: [] };
}

/** Server to change, undefined for a new one, and true if only one tool is checked. */
type CheckTarget = { current?: StoredServer | undefined; isTool?: boolean };

/**
 * Checks a configuration. A thread checks a large one before its transaction, which then uses the result. `secrets`
 * contains the names of the secrets that have a value.
 * @throws AppError tooLarge, tooMany, and in a transaction StalePreparation
 */
export async function checkConfig(
  context: Context,
  raw: unknown,
  { current, secrets = [], isTool = false }: CheckTarget & { secrets?: readonly string[] },
): Promise<CheckedConfig> {
  const { checkConfigOnThread, prepared, db, rules } = context;
  if (prepared?.check && prepared.version === current?.version) return prepared.check;
  if (!checkConfigOnThread || !isLarge(raw)) return checkDirectly(raw, rules, secrets);
  if (db.isTransaction) throw new StalePreparation();
  const purpose = isTool ? 'store-tool' : 'store';
  const { config, ...findings } = await runOnThread(context, { config: await serializeLarge(raw), secrets, purpose });
  return config === undefined ? findings : { ...findings, config: (await parseStoredJson(config)) as ServerConfig };
}

/**
 * Checks a large configuration before the transaction that stores it, which must not wait for a thread. `newSecrets`
 * contains the secrets to store with it, by name.
 */
export async function prepareConfig(
  context: Context,
  raw: unknown,
  target: CheckTarget & { newSecrets?: object | undefined },
): Promise<Prepared> {
  const { current, newSecrets } = target;
  if (!context.checkConfigOnThread || !isLarge(raw)) return { version: current?.version };
  const secrets = await findSecretNames(context, current, newSecrets);
  return { version: current?.version, check: await checkConfig(context, raw, { ...target, secrets }) };
}

/** Returns the names of the secrets that have a value, or will have one. */
export async function findSecretNames(
  { db }: Context,
  server: StoredServer | undefined,
  newSecrets: object = {},
): Promise<string[]> {
  const stored = server ? await findSecrets(db, server) : [];
  return [...stored.map(({ name }) => name), ...Object.keys(newSecrets)];
}

/**
 * Checks a configuration only to report on it, so a large configuration stays on the thread.
 * @throws AppError tooLarge, tooMany
 */
export async function checkForReport(
  context: Context,
  raw: unknown,
  secrets: readonly string[],
): Promise<Omit<CheckedConfig, 'config'> & { facts?: ConfigFacts | undefined }> {
  if (context.checkConfigOnThread && isLarge(raw))
    return runOnThread(context, { config: await serializeLarge(raw), secrets, purpose: 'report' });
  const { config, problems, warnings } = checkDirectly(raw, context.rules, secrets);
  return { facts: config && getConfigFacts(config), problems, warnings };
}

export function getConfigFacts(config: ServerConfig): ConfigFacts {
  const { authentication, credentials, variables, tools } = config;
  const secretScope = { authentication, credentials, variables, tools: getOrigins(config).map((url) => ({ url })) };
  return { tools: tools.length, access: getAccess(config), secretScope };
}

/** Serializes a large value to JSON, without blocking the event loop for other work. */
async function serializeLarge(value: unknown): Promise<string> {
  await yieldToEventLoop();
  const json = toJsonWithLargeValues(value);
  await yieldAfterLongText(json);
  return json;
}

/** Returns the warnings of a valid configuration. @throws AppError tooLarge, tooMany */
export async function getStoredWarnings(
  context: Context,
  config: ServerConfig,
  secrets: readonly string[],
): Promise<readonly Warning[]> {
  const check = context.prepared?.check;
  // Masking the secrets of a configuration does not change its tools.
  if (check?.config?.tools === config.tools) return check.warnings;
  if (!isLarge(config) || !context.checkConfigOnThread) return findWarnings(config, new Set(secrets));
  const { warnings } = await runOnThread(context, {
    config: await serializeLarge(config),
    secrets,
    purpose: 'warnings',
  });
  return warnings;
}

/** Returns the valid configuration with its defaults. @throws AppError invalid with all problems */
export async function requireValidConfig(
  context: Context,
  raw: unknown,
  current?: StoredServer,
): Promise<ServerConfig> {
  const { config, problems } = await checkConfig(context, raw, { current });
  if (!config) throw invalidInputError(problems, 'The server was not stored; its configuration is not valid');
  return config;
}

async function runOnThread(
  { actor, checkConfigOnThread }: Context,
  input: Parameters<CheckConfigOnThread>[0],
): Promise<ConfigurationJob['output']> {
  try {
    return await (checkConfigOnThread as CheckConfigOnThread)(input, actor.workspaceId);
  } catch (error) {
    if (!(error instanceof JobError) || error.reason === 'failed') throw error;
    const message = `the configuration was not checked: ${error.message}`;
    if (error.reason === 'refused')
      throw new AppError('tooMany', `${message}; retry with fewer parallel requests`, { retryAfterS: 5 });
    throw new AppError('tooLarge', `${message}; make it smaller, for example by splitting it into several servers`);
  }
}

export function runConfigurationJob(input: ConfigurationJob['input']): { output: ConfigurationJob['output'] } {
  return { output: checkParsed(input, parseJson(input.config)) };
}

function checkParsed({ secrets, purpose, rules }: ConfigurationJob['input'], raw: unknown): ConfigurationJob['output'] {
  if (purpose === 'warnings') return { problems: [], warnings: findWarnings(raw as ServerConfig, new Set(secrets)) };
  const foreignKind =
    purpose === 'store-tool' ? describeForeignDocument((raw as { tools: unknown[] }).tools[0]) : undefined;
  if (foreignKind !== undefined) return { problems: [], warnings: [], foreignKind };
  const { config, ...findings } = checkDirectly(raw, createConfigRules(rules), secrets);
  if (!config) return findings;
  return purpose === 'report'
    ? { ...findings, facts: getConfigFacts(config) }
    : { ...findings, config: JSON.stringify(config) };
}
