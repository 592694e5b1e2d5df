import type { ServerConfig } from '../../domain/config/server-config.ts';
import type { Warning } from '../../domain/warnings/warnings.ts';
import type { Problem } from '../../errors.ts';
import type { RuleSource } from './config-rules.ts';

/** Problems and warnings of a configuration. `config` is set when it is valid, with defaults filled in. */
export type CheckedConfig = { config?: ServerConfig; problems: readonly Problem[]; warnings: readonly Warning[] };

/** Checks a configuration on a thread. @throws JobError */
export type CheckConfigOnThread = (
  input: Omit<ConfigurationJob['input'], 'rules'>,
  workspaceId: string,
) => Promise<ConfigurationJob['output']>;

/** The check of a configuration, made before its transaction. `text` is the configuration as JSON. */
export type Precheck = { text: string; result: CheckedConfig };

/** Thrown in a transaction when the server was changed after its new configuration was checked. */
export class StalePrecheck extends Error {}

/**
 * Check of a configuration on a thread. Configurations are transferred as JSON text. For a stored configuration, which
 * is valid, only the warnings are computed. `stored` are the names of the secrets that have a value.
 */
export type ConfigurationJob = {
  input: { config: string; stored: readonly string[]; isStored: boolean; rules: RuleSource };
  output: { config: string | undefined; problems: readonly Problem[]; warnings: readonly Warning[] };
};
