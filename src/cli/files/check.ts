import { configRules } from '../../app/operator.ts';
import { checkServerConfig } from '../../domain/config/server-config.ts';
import { warningsOf } from '../../domain/warnings/warnings.ts';
import type { Problem } from '../../errors.ts';
import { tooManyTools } from '../../operations/quotas/quotas.ts';
import { environmentUrl } from '../connection/connect.ts';
import type { JsonOption } from '../options.ts';
import { print, printJson } from '../print.ts';
import {
  duplicateSlug,
  type FileDocument,
  filesOf,
  isDocument,
  literalMessage,
  literalSecrets,
  readDocuments,
  splitDocument,
} from './server-files.ts';

type Verdict = { file: string; valid: boolean; problems: readonly Problem[]; warnings: readonly Problem[] };

export async function check(paths: readonly string[], options: JsonOption): Promise<void> {
  const checkOne = await createCheck();
  const verdicts: Verdict[] = [];
  for (const path of paths) verdicts.push(...(await verdictsOf(path, checkOne)));
  const valid = verdicts.every((verdict) => verdict.valid);
  if (options.json) printJson({ valid, files: verdicts });
  else print(verdicts.flatMap(linesOf).join('\n'));
  if (!valid) process.exitCode = 1;
}

/** Checks a file or a folder. Two servers with the same slug are a problem. */
async function verdictsOf(given: string, check: Check): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  const slugs = new Map<string, string>();
  for (const file of filesOf(given)) {
    const { documents, problems } = await readDocuments(file);
    for (const { path, message } of problems)
      verdicts.push({ file, valid: false, problems: [{ path, message }], warnings: [] });
    for (const document of documents) verdicts.push(verdictOf(document, check, slugs));
  }
  return verdicts;
}

/** Checks a configuration. `secrets` are the names of the secrets that the file has a source for. */
type Check = (config: unknown, secrets: readonly string[]) => Pick<Verdict, 'problems' | 'warnings'>;

/** Creates a check with the rules of the service that this environment would start. */
async function createCheck(): Promise<Check> {
  const { rules, quotas } = configRules(process.env, environmentUrl());
  return (raw, secrets) => {
    const { config: checked, problems } = checkServerConfig(raw, rules);
    const excess = checked && tooManyTools(checked.tools.length, quotas);
    if (excess !== undefined) return { problems: [{ path: 'tools', message: excess }], warnings: [] };
    return { problems, warnings: checked ? warningsOf(checked, new Set(secrets)) : [] };
  };
}

/** Checks one document. `slugs` maps the slugs of the previous documents to their files. */
function verdictOf({ at, value }: FileDocument, check: Check, slugs: Map<string, string>): Verdict {
  const { config, problems: ofSections } = splitDocument(value);
  const secrets = isDocument(value) && isDocument(value.secrets) ? Object.keys(value.secrets) : [];
  const { problems, warnings } = check(config, secrets);
  const all = [...ofSections, ...problems, ...duplicate(config, at, slugs)];
  if (all.length > 0) return { file: at, valid: false, problems: all, warnings: [] };
  const literal = isDocument(config) ? literalSecrets(config) : [];
  const advice = literal.map((path) => ({ path, message: literalMessage(path) }));
  return { file: at, valid: true, problems: [], warnings: [...warnings, ...advice] };
}

function duplicate(config: unknown, at: string, slugs: Map<string, string>): Problem[] {
  const slug = isDocument(config) ? config.slug : undefined;
  if (typeof slug !== 'string') return [];
  const before = slugs.get(slug);
  if (before !== undefined) return [duplicateSlug(slug, before)];
  slugs.set(slug, at);
  return [];
}

function linesOf({ file, valid, problems, warnings }: Verdict): string[] {
  const at = (path: string) => (path === '' ? file : `${file}: ${path}`);
  return [
    ...problems.map(({ path, message }) => `${at(path)}: ${message}`),
    ...warnings.map(({ path, message }) => `${at(path)}: warning: ${message}`),
    ...(valid ? [`${file}: ok${warnings.length > 0 ? `, with warnings (${warnings.length})` : ''}`] : []),
  ];
}
