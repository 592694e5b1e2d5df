import { type ConfigRules, checkServerConfig, type ServerConfig } from '../../domain/config/server-config.ts';
import { isLargerThan } from '../../domain/json/json.ts';
import { type Warning, warningsOf } from '../../domain/warnings/warnings.ts';
import { nextTurn, turnAfter } from '../../domain/work/next-turn.ts';
import { AppError, invalid, JobError } from '../../errors.ts';
import type { Context } from '../operation.ts';
import {
  type CheckConfigOnThread,
  type CheckedConfig,
  type ConfigurationJob,
  type Precheck,
  StalePrecheck,
} from './checked-config.ts';

/** Checking a configuration of this size takes some milliseconds; larger ones are checked on a thread. */
const most = { values: 1500, characters: 60_000 };

/** `stored` are the names of the secrets that have a value. */
export function checkDirectly(raw: unknown, rules: ConfigRules, stored: readonly string[]): CheckedConfig {
  const { config, problems } = checkServerConfig(raw, rules);
  return config ? { config, problems, warnings: warningsOf(config, new Set(stored)) } : { problems, warnings: [] };
}

/**
 * Checks a configuration, a large one on a thread. @throws AppError tooLarge, tooMany, and in a transaction
 * StalePrecheck
 */
export async function checkConfig(context: Context, raw: unknown, stored: readonly string[]): Promise<CheckedConfig> {
  if (!isLargerThan(raw, most) || !context.checkConfigOnThread) return checkDirectly(raw, context.rules, stored);
  const text = await textOf(raw);
  if (context.precheck?.text === text) return context.precheck.result;
  if (context.precheck) throw new StalePrecheck();
  return checkText(context, text, stored);
}

async function checkText(context: Context, text: string, stored: readonly string[]): Promise<CheckedConfig> {
  const { config, problems, warnings } = await onThread(context, { config: text, stored, isStored: false });
  if (config === undefined) return { problems, warnings };
  await turnAfter(config);
  const parsed = JSON.parse(config) as ServerConfig;
  await turnAfter(config);
  return { config: parsed, problems, warnings };
}

/** A large value as JSON, in a turn of its own. */
async function textOf(value: unknown): Promise<string> {
  await nextTurn();
  const text = JSON.stringify(value);
  await turnAfter(text);
  return text;
}

/** Checks a large configuration before the transaction that stores it, which must not wait for a thread. */
export async function precheck(
  context: Context,
  raw: unknown,
  stored: readonly string[] = [],
): Promise<Precheck | undefined> {
  if (!isLargerThan(raw, most) || !context.checkConfigOnThread) return undefined;
  const text = await textOf(raw);
  return { text, result: await checkText(context, text, stored) };
}

/** The warnings of a valid configuration. @throws AppError tooLarge, tooMany */
export async function warningsOfStored(
  context: Context,
  config: ServerConfig,
  stored: readonly string[],
): Promise<readonly Warning[]> {
  const checked = context.precheck?.result;
  // Masking the secrets of a configuration leaves its tools as they are.
  if (checked?.config?.tools === config.tools) return checked.warnings;
  if (!isLargerThan(config, most) || !context.checkConfigOnThread) return warningsOf(config, new Set(stored));
  const { warnings } = await onThread(context, { config: await textOf(config), stored, isStored: true });
  return warnings;
}

/** @throws AppError invalid with all problems */
export async function validConfig(context: Context, raw: unknown): Promise<ServerConfig> {
  const { config, problems } = await checkConfig(context, raw, []);
  if (!config) throw invalid(problems, 'The server was not stored; its configuration is not valid');
  return config;
}

async function onThread(
  context: Context,
  input: Parameters<CheckConfigOnThread>[0],
): Promise<ConfigurationJob['output']> {
  try {
    return await (context.checkConfigOnThread as CheckConfigOnThread)(input, context.actor.workspaceId);
  } catch (error) {
    if (!(error instanceof JobError) || error.reason === 'failed') throw error;
    const message = `the configuration was not checked: ${error.message}`;
    if (error.reason === 'refused')
      throw new AppError('tooMany', `${message}; try again with fewer at once`, { retryAfterS: 5 });
    throw new AppError('tooLarge', `${message}; make it smaller, for example as several servers`);
  }
}
