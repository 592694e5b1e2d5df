import type { ServerConfig } from '../../domain/config/server-config.ts';
import { holdsNul, parseJson } from '../../domain/json/json.ts';
import { parseLongJson } from '../../domain/json/long-json.ts';
import { foreignDocument } from '../../domain/mistakes/foreign-document.ts';
import { warningsOf } from '../../domain/warnings/warnings.ts';
import { AppError } from '../../errors.ts';
import { checkDirectly, factsOf } from './check-config.ts';
import type { ConfigurationJob } from './checked-config.ts';
import { rulesOf } from './config-rules.ts';
import { configOfFields, type InputFault, type LongConfigText, nulFault, type RawFields } from './sent-config.ts';

type Output = ConfigurationJob['output'];

export async function runConfigurationJob(input: ConfigurationJob['input']): Promise<{ output: Output }> {
  const made = typeof input.config === 'string' ? { config: parseJson(input.config) } : await configOf(input.config);
  return { output: 'refused' in made ? made : resultOf(input, made) };
}

type Made = { config: unknown; tool?: RawFields };

function resultOf({ stored, purpose, rules }: ConfigurationJob['input'], { config: raw, tool }: Made): Output {
  if (purpose === 'warnings') return { problems: [], warnings: warningsOf(raw as ServerConfig, new Set(stored)) };
  const foreign = foreignDocument(tool);
  if (foreign !== undefined) return { problems: [], warnings: [], foreign };
  const { config, ...found } = checkDirectly(raw, rulesOf(rules), stored);
  if (!config) return found;
  return purpose === 'report' ? { ...found, facts: factsOf(config) } : { ...found, config: JSON.stringify(config) };
}

/** Parses an input, and makes a configuration of it. */
async function configOf({ text, over, recipe }: LongConfigText): Promise<Made | { refused: InputFault }> {
  try {
    const json = Buffer.from(text.buffer).toString('utf8');
    const parsed = (await parseLongJson(json)) as RawFields;
    const fields = { ...parsed, ...over };
    return holdsNul(fields) ? { refused: nulFault } : configOfFields(fields, recipe);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { refused: { kind: 'tooLarge', message: error.message } };
  }
}
