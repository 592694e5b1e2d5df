import { isDeepStrictEqual } from 'node:util';
import { accessOf } from '../../domain/config/access.ts';
import { type ConfigRules, checkServerConfig, type ServerConfig } from '../../domain/config/server-config.ts';
import { mostVariableLength, originsOf } from '../../domain/config/server-wide.ts';
import { hasMorePlaceholders } from '../../domain/http/placeholders.ts';
import { mostParsed } from '../../domain/json/body-limits.ts';
import { isLargerThan, parseStored } from '../../domain/json/json.ts';
import { LongInput } from '../../domain/json/long-input.ts';
import { type Warning, warningsOf } from '../../domain/warnings/warnings.ts';
import { nextTurn, turnAfter } from '../../domain/work/next-turn.ts';
import { AppError, invalid, JobError } from '../../errors.ts';
import type { Context } from '../operation.ts';
import {
  type CheckConfigOnThread,
  type CheckedConfig,
  type ConfigFacts,
  type ConfigurationJob,
  type Precheck,
  StalePrecheck,
} from './checked-config.ts';
import { errorOfFault, LongConfig, type LongConfigText } from './sent-config.ts';

function isLarge(raw: unknown): boolean {
  if (isLargerThan(raw, mostParsed)) return true;
  const hasVariables = typeof raw === 'object' && raw !== null && 'variables' in raw;
  return hasVariables && hasMorePlaceholders(raw, mostParsed.characters / mostVariableLength);
}

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
  const large = await ofThread(context, raw);
  if (large === undefined) return checkDirectly(raw, context.rules, stored);
  const { precheck } = context;
  if (precheck && isSame(precheck.checked, large)) return precheck.result;
  if (precheck) throw new StalePrecheck();
  return checkLarge(context, large, stored);
}

/** The same for an answer that only reports: a large configuration stays on the thread. @throws AppError tooLarge, tooMany */
export async function reportOn(
  context: Context,
  raw: unknown,
  stored: readonly string[],
): Promise<Omit<CheckedConfig, 'config'> & { facts?: ConfigFacts | undefined }> {
  const large = await ofThread(context, raw);
  if (large !== undefined) return onThread(context, { config: sent(large), stored, purpose: 'report' });
  const { config, problems, warnings } = checkDirectly(raw, context.rules, stored);
  return { facts: config && factsOf(config), problems, warnings };
}

export function factsOf(config: ServerConfig): ConfigFacts {
  const { authentication, variables, tools } = config;
  const ofSecrets = { authentication, variables, tools: originsOf(config).map((url) => ({ url })) };
  return { tools: tools.length, access: accessOf(config), ofSecrets };
}

/** A configuration that is checked on a thread; undefined for one that is checked here. */
async function ofThread(context: Context, raw: unknown): Promise<string | LongConfig | undefined> {
  if (raw instanceof LongConfig) return raw;
  if (raw instanceof LongInput) return new LongConfig(raw, { kind: 'whole' });
  return isLarge(raw) && context.checkConfigOnThread ? textOf(raw) : undefined;
}

function isSame(checked: string | LongConfig, other: string | LongConfig): boolean {
  if (typeof checked === 'string' || typeof other === 'string') return checked === other;
  return checked.input === other.input && isDeepStrictEqual(checked.recipe, other.recipe);
}

function sent(large: string | LongConfig): string | LongConfigText {
  return typeof large === 'string' ? large : { ...large.input.copy(), recipe: large.recipe };
}

async function checkLarge(
  context: Context,
  large: string | LongConfig,
  stored: readonly string[],
): Promise<CheckedConfig> {
  const { config, ...found } = await onThread(context, { config: sent(large), stored, purpose: 'store' });
  if (config === undefined) return found;
  return { ...found, config: (await parseStored(config)) as ServerConfig };
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
  const large = await ofThread(context, raw);
  return large === undefined ? undefined : { checked: large, result: await checkLarge(context, large, stored) };
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
  if (!isLarge(config) || !context.checkConfigOnThread) return warningsOf(config, new Set(stored));
  const { warnings } = await onThread(context, { config: await textOf(config), stored, purpose: 'warnings' });
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
): Promise<Exclude<ConfigurationJob['output'], { refused: unknown }>> {
  try {
    const of = { workspaceId: context.actor.workspaceId, held: context.held() };
    const result = await (context.checkConfigOnThread as CheckConfigOnThread)(input, of);
    if ('refused' in result) throw errorOfFault(result.refused);
    return result;
  } catch (error) {
    if (!(error instanceof JobError) || error.reason === 'failed') throw error;
    const message = `the configuration was not checked: ${error.message}`;
    if (error.reason === 'refused')
      throw new AppError('tooMany', `${message}; try again with fewer at once`, { retryAfterS: 5 });
    throw new AppError('tooLarge', `${message}; make it smaller, for example as several servers`);
  }
}
