import type { ServerConfig } from '../domain/server-config.ts';
import { type Warning, warningsOf } from '../domain/warnings.ts';
import type { Problem } from '../errors.ts';
import { type RuleSource, rulesOf } from './config-rules.ts';
import { judgeConfig } from './judge-config.ts';

/**
 * Judges a configuration; configurations cross as JSON text. Of one that is stored, and so is valid, only the warnings
 * are wanted. `stored` are the names of the secrets that have a value.
 */
export type ConfigurationJob = {
  input: { config: string; stored: readonly string[]; isStored: boolean; rules: RuleSource };
  output: { config: string | undefined; problems: readonly Problem[]; warnings: readonly Warning[] };
};

export function judgeConfiguration({ config: text, stored, isStored, rules }: ConfigurationJob['input']): {
  output: ConfigurationJob['output'];
} {
  const raw = JSON.parse(text) as unknown;
  if (isStored) {
    const warnings = warningsOf(raw as ServerConfig, new Set(stored));
    return { output: { config: undefined, problems: [], warnings } };
  }
  const { config, problems, warnings } = judgeConfig(raw, rulesOf(rules), stored);
  return { output: { config: config && JSON.stringify(config), problems, warnings } };
}
