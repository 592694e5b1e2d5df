import type { Problem } from '@toolhost/errors/errors';
import { describeForeignDocument } from '@toolhost/errors/input-errors';
import { type ConfigCheck, loadOperator } from '@toolhost/server/command-line';
import { toCommandTerms } from '../command-terms.ts';
import { getServiceUrl } from '../connection/connect.ts';
import type { JsonOption } from '../options.ts';
import { print, printJson } from '../print.ts';
import {
  createDuplicateSlugProblem,
  type FileDocument,
  findLiteralSecrets,
  formatLiteralMessage,
  isDocument,
  listFiles,
  notConfigurationMessage,
  readDocuments,
  splitSections,
} from './server-files.ts';

type Verdict = { file: string; valid: boolean; problems: readonly Problem[]; warnings: readonly Problem[] };

export async function checkFiles(paths: readonly string[], options: JsonOption): Promise<void> {
  const { createConfigCheck } = await loadOperator();
  const checkConfig = createConfigCheck(process.env, getServiceUrl());
  const verdicts: Verdict[] = [];
  for (const path of paths) verdicts.push(...(await checkPath(path, checkConfig)));
  const valid = verdicts.every((verdict) => verdict.valid);
  if (options.json) printJson({ valid, files: verdicts });
  else print(verdicts.flatMap(formatVerdict).join('\n'));
  if (!valid) process.exitCode = 1;
}

/** Checks a file or a folder. Two servers with the same slug are a problem. */
async function checkPath(fileOrFolder: string, checkConfig: ConfigCheck): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  const slugs = new Map<string, string>();
  for (const file of listFiles(fileOrFolder)) {
    const { documents, problems } = await readDocuments(file);
    for (const { path, message } of problems)
      verdicts.push({ file, valid: false, problems: [{ path, message }], warnings: [] });
    for (const document of documents) verdicts.push(checkDocument(document, checkConfig, slugs));
  }
  return verdicts;
}

/** Checks one document. `slugs` maps the slugs of the previous documents to their files. */
function checkDocument({ at, value }: FileDocument, checkConfig: ConfigCheck, slugs: Map<string, string>): Verdict {
  if (!isDocument(value) && describeForeignDocument(value) === undefined) {
    return { file: at, valid: false, problems: [{ path: '', message: notConfigurationMessage }], warnings: [] };
  }
  const { config, problems: sectionProblems } = splitSections(value);
  const secrets = isDocument(value) && isDocument(value.secrets) ? Object.keys(value.secrets) : [];
  const { problems, warnings } = checkConfig(config, secrets);
  const allProblems = [...sectionProblems, ...problems, ...findDuplicateSlug(config, at, slugs)];
  if (allProblems.length > 0) return { file: at, valid: false, problems: allProblems, warnings: [] };
  const literalPaths = isDocument(config) ? findLiteralSecrets(config) : [];
  const literalWarnings = literalPaths.map((path) => ({ path, message: formatLiteralMessage(path) }));
  return { file: at, valid: true, problems: [], warnings: [...warnings, ...literalWarnings] };
}

function findDuplicateSlug(config: unknown, file: string, slugs: Map<string, string>): Problem[] {
  const slug = isDocument(config) ? config.slug : undefined;
  if (typeof slug !== 'string') return [];
  const firstFile = slugs.get(slug);
  if (firstFile !== undefined) return [createDuplicateSlugProblem(slug, firstFile)];
  slugs.set(slug, file);
  return [];
}

function formatVerdict({ file, valid, problems, warnings }: Verdict): string[] {
  const formatLocation = (path: string) => (path === '' ? file : `${file}: ${path}`);
  return [
    ...problems.map(({ path, message }) => `${formatLocation(path)}: ${toCommandTerms(message)}`),
    ...warnings.map(({ path, message }) => `${formatLocation(path)}: warning: ${message}`),
    ...(valid ? [`${file}: ok${warnings.length > 0 ? `, with warnings (${warnings.length})` : ''}`] : []),
  ];
}
