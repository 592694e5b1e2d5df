import type { ServerConfig } from '../../domain/config/server-config.ts';
import { parseJson } from '../../domain/json/json.ts';
import { foreignDocument } from '../../domain/mistakes/foreign-document.ts';
import { warningsOf } from '../../domain/warnings/warnings.ts';
import { checkDirectly, factsOf } from './check-config.ts';
import type { ConfigurationJob } from './checked-config.ts';
import { rulesOf } from './config-rules.ts';
import type { RawFields } from './sent-config.ts';

export function runConfigurationJob(input: ConfigurationJob['input']): { output: ConfigurationJob['output'] } {
  return { output: resultOf(input, parseJson(input.config)) };
}

function resultOf({ stored, purpose, rules }: ConfigurationJob['input'], raw: unknown): ConfigurationJob['output'] {
  if (purpose === 'warnings') return { problems: [], warnings: warningsOf(raw as ServerConfig, new Set(stored)) };
  const foreign = purpose === 'store-tool' ? foreignDocument((raw as { tools: RawFields[] }).tools[0]) : undefined;
  if (foreign !== undefined) return { problems: [], warnings: [], foreign };
  const { config, ...found } = checkDirectly(raw, rulesOf(rules), stored);
  if (!config) return found;
  return purpose === 'report' ? { ...found, facts: factsOf(config) } : { ...found, config: JSON.stringify(config) };
}
