import type { ServerConfig } from '../../domain/config/server-config.ts';
import type { Warning } from '../../domain/config/warnings.ts';
import type { Problem } from '../../errors.ts';
import type { RuleSource } from './config-rules.ts';

/** What is to be said of a configuration; `config` where it is valid, with its defaults filled in. */
export type Judged = { config?: ServerConfig; problems: readonly Problem[]; warnings: readonly Warning[] };

/** Has a configuration judged on a thread. @throws JobError */
export type JudgeOnThread = (
  input: Omit<ConfigurationJob['input'], 'rules'>,
  workspaceId: string,
) => Promise<ConfigurationJob['output']>;

/** A judgement made before a transaction, for the configuration whose JSON text it keeps. */
export type Foreseen = { text: string; judged: Judged };

/**
 * Judges a configuration; configurations cross as JSON text. Of one that is stored, and so is valid, only the warnings
 * are wanted. `stored` are the names of the secrets that have a value.
 */
export type ConfigurationJob = {
  input: { config: string; stored: readonly string[]; isStored: boolean; rules: RuleSource };
  output: { config: string | undefined; problems: readonly Problem[]; warnings: readonly Warning[] };
};
