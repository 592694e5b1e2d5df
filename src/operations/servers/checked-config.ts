import type { Access } from '../../domain/config/access.ts';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import type { OfSecrets } from '../../domain/config/server-wide.ts';
import type { Warning } from '../../domain/warnings/warnings.ts';
import { AppError, type Problem } from '../../errors.ts';
import type { RuleSource } from './config-rules.ts';

/** Problems and warnings of a configuration. `config` is set when it is valid, with defaults filled in. */
export type CheckedConfig = {
  config?: ServerConfig;
  problems: readonly Problem[];
  warnings: readonly Warning[];
  /** What the tool is, when it is a document of another program. */
  foreign?: string | undefined;
};

/** Facts about a valid configuration. `ofSecrets` is what decides where its secrets go, with a tool for each host. */
export type ConfigFacts = { tools: number; access: Access; ofSecrets: OfSecrets };

/** Checks a configuration on a thread. @throws JobError */
export type CheckConfigOnThread = (
  input: Omit<ConfigurationJob['input'], 'rules'>,
  workspaceId: string,
) => Promise<ConfigurationJob['output']>;

/** The check of a large configuration, made before its transaction, and the version of the server that it is based on. */
export type Precheck = CheckedConfig & { version: number | undefined };

/** Thrown in a transaction when the server was changed after its new configuration was checked; it is repeated once. */
export class StalePrecheck extends AppError {
  constructor() {
    super('conflict', 'the server was changed again and again meanwhile; repeat your change');
  }
}

/**
 * Check of a configuration on a thread. Configurations are transferred as JSON text, a valid one also back when `purpose`
 * is to store it, or a tool of it. For a stored configuration, which is valid, only the warnings are computed. `stored`
 * are the names of the secrets that have a value.
 */
export type ConfigurationJob = {
  input: {
    config: string;
    stored: readonly string[];
    purpose: 'store' | 'store-tool' | 'report' | 'warnings';
    rules: RuleSource;
  };
  output: Omit<CheckedConfig, 'config'> & { config?: string | undefined; facts?: ConfigFacts | undefined };
};
