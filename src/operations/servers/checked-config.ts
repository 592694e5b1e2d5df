import type { Access } from '../../domain/config/access.ts';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import type { OfSecrets } from '../../domain/config/server-wide.ts';
import type { Warning } from '../../domain/warnings/warnings.ts';
import type { Problem } from '../../errors.ts';
import type { HeldMemory } from '../../outbound/exchange.ts';
import type { RuleSource } from './config-rules.ts';
import type { InputFault, LongConfig, LongConfigText } from './sent-config.ts';

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
  of: { workspaceId: string; held: HeldMemory | undefined },
) => Promise<ConfigurationJob['output']>;

/** The check of a configuration, made before its transaction, and what was checked. */
export type Precheck = { checked: string | LongConfig; result: CheckedConfig };

/** Thrown in a transaction when the server was changed after its new configuration was checked. */
export class StalePrecheck extends Error {}

/**
 * Check of a configuration on a thread. Configurations are transferred as JSON text, a valid one also back when `purpose`
 * is to store it. For a stored configuration, which is valid, only the warnings are computed. `stored` are the names of
 * the secrets that have a value.
 */
export type ConfigurationJob = {
  input: {
    config: string | LongConfigText;
    stored: readonly string[];
    purpose: 'store' | 'report' | 'warnings';
    rules: RuleSource;
  };
  output: JobResult | { refused: InputFault };
};

type JobResult = Omit<CheckedConfig, 'config'> & { config?: string | undefined; facts?: ConfigFacts | undefined };
