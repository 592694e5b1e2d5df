import type { ServerConfig } from '../../domain/config/server-config.ts';
import { warningsOf } from '../../domain/warnings/warnings.ts';
import { checkDirectly } from './check-config.ts';
import type { ConfigurationJob } from './checked-config.ts';
import { rulesOf } from './config-rules.ts';

export function runConfigurationJob({ config: text, stored, isStored, rules }: ConfigurationJob['input']): {
  output: ConfigurationJob['output'];
} {
  const raw = JSON.parse(text) as unknown;
  if (isStored) {
    const warnings = warningsOf(raw as ServerConfig, new Set(stored));
    return { output: { config: undefined, problems: [], warnings } };
  }
  const { config, problems, warnings } = checkDirectly(raw, rulesOf(rules), stored);
  return { output: { config: config && JSON.stringify(config), problems, warnings } };
}
