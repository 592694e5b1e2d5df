import { AppError } from '@toolhost/errors/errors';
import type { FieldChange } from '@toolhost/tool-config/config-changes';
import { confirmAction } from '../ask.ts';
import { connect } from '../connection/connect.ts';
import type { RestClient } from '../connection/rest-client.ts';
import type { ConnectionOptions } from '../options.ts';
import { print, printJson, printMessage } from '../print.ts';
import {
  type ApplySettings,
  applyServer,
  findConflicts,
  findUnlistedServers,
  type PlannedServer,
  type PlanResult,
  planFiles,
  pruneServer,
  type Result,
  results,
  type ServerOutcome,
  toPlannedOutcome,
} from './plan-and-apply.ts';
import { readSecretsFile, type Sources } from './secret-values.ts';
import type { FileProblem } from './server-files.ts';

export type ApplyOptions = ConnectionOptions &
  ApplySettings & { json?: true; dryRun?: true; prune?: true; yes?: true; secrets?: string; env?: string[] };
type UnlistedServers = Awaited<ReturnType<typeof findUnlistedServers>>;

export async function applyFiles(paths: readonly string[], options: ApplyOptions): Promise<void> {
  if (options.prune && options.label === undefined)
    throw new AppError('invalid', '--prune only deletes servers with a label; name it with --label');
  const client = await connect(options);
  const { label } = options;
  const { planned, problems } = await planFiles(client, paths, {
    ...(await readSources(options)),
    label,
  });
  const allProblems = [...problems, ...findConflicts(planned, options)];
  if (allProblems.length > 0) {
    reportProblems(allProblems, options);
    return;
  }
  const slugs = new Set(planned.map(({ server }) => server.slug));
  const unlisted = options.prune && label !== undefined ? await findUnlistedServers(client, label, slugs) : [];
  if (!options.dryRun && unlisted.length > 0) {
    const names = unlisted.map(({ slug }) => slug).join(', ');
    await confirmAction(`delete ${names}`, 'yes', options);
  }
  const outcomes = options.dryRun
    ? toDryRunOutcomes(planned, unlisted)
    : await applyAll(client, planned, { unlisted, options });
  printReport(outcomes, options);
}

async function readSources({ env = [], secrets }: { env?: string[]; secrets?: string }): Promise<Sources> {
  return { allowedVariables: env, secretsFile: secrets === undefined ? undefined : await readSecretsFile(secrets) };
}

function reportProblems(problems: readonly FileProblem[], options: ApplyOptions): void {
  process.exitCode = 1;
  if (options.json) {
    printJson({ applied: false, problems, servers: [] });
    return;
  }
  const problemCount = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  printMessage(
    [`error: ${problemCount}; nothing was changed`, ...formatProblemLines(problems).map((line) => `  ${line}`)].join(
      '\n',
    ),
  );
}

function toDryRunOutcomes(planned: readonly PlannedServer[], unlisted: UnlistedServers): ServerOutcome[] {
  const pruned = unlisted.map(({ slug }) => ({ slug, result: 'pruned' as const, changes: [], warnings: [] }));
  const plannedResults = planned.map((plannedServer) => ({
    ...toPlannedOutcome(plannedServer),
    secrets: plannedServer.server.sources,
  }));
  return [...plannedResults, ...pruned];
}

async function applyAll(
  client: RestClient,
  planned: readonly PlannedServer[],
  { unlisted, options }: { unlisted: UnlistedServers; options: ApplyOptions },
): Promise<ServerOutcome[]> {
  const outcomes: ServerOutcome[] = [];
  for (const plannedServer of planned) outcomes.push(await applyServer(client, plannedServer, options));
  if (outcomes.some(({ result }) => result === 'failed')) {
    if (unlisted.length > 0) printMessage('Nothing was deleted, because some servers could not be applied.');
    return outcomes;
  }
  for (const server of unlisted) outcomes.push(await pruneServer(client, server));
  return outcomes;
}

function printReport(outcomes: readonly ServerOutcome[], { json, dryRun }: ApplyOptions): void {
  if (json) printJson({ applied: !dryRun, problems: [], servers: outcomes });
  else print(formatReport(outcomes, dryRun === true));
  if (outcomes.some(({ result }) => result === 'failed')) process.exitCode = 1;
  else if (dryRun && outcomes.some(({ result }) => result !== 'same')) process.exitCode = 2;
}

export type DiffOptions = ConnectionOptions & { json?: true; label?: string; secrets?: string; env?: string[] };

export async function diffFiles(paths: readonly string[], options: DiffOptions): Promise<void> {
  const client = await connect(options);
  const planResult = await planFiles(client, paths, {
    ...(await readSources(options)),
    allowsUnreadSecrets: true,
  });
  const slugs = new Set(planResult.planned.map(({ server }) => server.slug));
  const unlisted = options.label === undefined ? [] : await findUnlistedServers(client, options.label, slugs);
  const outcomes = [
    ...planResult.planned.filter(({ plan }) => plan.problems.length === 0).map(toPlannedOutcome),
    ...unlisted.map(({ slug }): ServerOutcome => ({ slug, result: 'pruned', changes: [], warnings: [] })),
  ];
  printDifferences(outcomes, planResult, options);
  if (planResult.problems.length > 0) process.exitCode = 1;
  else if (outcomes.some(({ result }) => result !== 'same')) process.exitCode = 2;
}

function printDifferences(outcomes: readonly ServerOutcome[], planResult: PlanResult, { json }: DiffOptions): void {
  const { planned, problems } = planResult;
  const uncompared = findUncompared(planResult);
  if (json) {
    printJson({ problems, not_compared: uncompared, servers: outcomes });
    return;
  }
  const undonePathsBySlug = new Map(planned.map(({ server, plan }) => [server.slug, plan.undone]));
  const differing = outcomes.filter(({ result }) => result !== 'same');
  if (differing.length > 0)
    print(differing.map((outcome) => formatDifferences(outcome, undonePathsBySlug.get(outcome.slug) ?? [])).join('\n'));
  const lines = [
    ...formatProblemLines(problems).map((line) => `error: ${line}`),
    ...formatProblemLines(uncompared).map((line) => `${line}; not compared`),
  ];
  if (lines.length > 0) printMessage(lines.join('\n'));
}

function findUncompared({ planned, unread }: PlanResult): FileProblem[] {
  const forbidden = planned.flatMap(({ server: { at }, plan }) =>
    plan.not_compared.map((name) => ({
      at,
      // A name with a dot is the path of a sealed field.
      path: name.includes('.') ? name : `secrets.${name}`,
      message: 'the key lacks the scope manage:write',
    })),
  );
  return [...unread, ...forbidden];
}

/** Formats the problems of files, one line each. */
export function formatProblemLines(problems: readonly FileProblem[]): string[] {
  return problems.map(({ at, path, message }) => `${at}: ${path === '' ? '' : `${path}: `}${message}`);
}

/** Formats the report of a run: a line per server, its secrets and warnings, and the counts. */
export function formatReport(outcomes: readonly ServerOutcome[], isDryRun: boolean): string {
  const slugWidth = Math.max(0, ...outcomes.map(({ slug }) => slug.length));
  const resultWidth = isDryRun ? 11 : 7;
  const lines = outcomes.flatMap((outcome) => [
    `${formatResult(outcome.result, isDryRun).padEnd(resultWidth)}  ${outcome.slug.padEnd(slugWidth)}  ${formatDetail(outcome)}`.trimEnd(),
    ...(outcome.secrets ?? []).map(
      ({ name, source, hosts }) => `  secret ${name}: from ${source}, may reach ${hosts.join(', ') || 'no host'}`,
    ),
    ...outcome.warnings.map(({ path, message }) => `  warning: ${path === '' ? '' : `${path}: `}${message}`),
  ]);
  const counts = results.flatMap((result) => {
    const count = outcomes.filter((outcome) => outcome.result === result).length;
    return count > 0 ? [`${count} ${formatResult(result, isDryRun)}`] : [];
  });
  return [...lines, counts.join(', ')].join('\n');
}

const plannedVerbs: Record<Result, string> = {
  created: 'to create',
  changed: 'to change',
  same: 'same',
  pruned: 'to delete',
  failed: 'failed',
};

function formatResult(result: Result, isDryRun: boolean): string {
  return isDryRun ? plannedVerbs[result] : result;
}

const maxPathsInReport = 6;

function formatDetail({ result, changes, message, file }: ServerOutcome): string {
  if (result === 'failed') return message ?? '';
  if (result === 'created') return file ?? '';
  if (result !== 'changed') return '';
  const paths = changes.map(({ path }) => path);
  const hiddenCount = paths.length - maxPathsInReport;
  return paths.slice(0, maxPathsInReport).join(', ') + (hiddenCount > 0 ? ` and ${hiddenCount} more` : '');
}

/** Formats the differences of one server, field by field. `undonePaths` are fields that were changed elsewhere. */
export function formatDifferences(
  { slug, file, result, changes }: ServerOutcome,
  undonePaths: readonly string[],
): string {
  if (result === 'created') return `${slug} (${file}): not on the service yet`;
  if (result === 'pruned') return `${slug}: only on the service`;
  const lines = changes.flatMap((change) => formatPlannedChange(change, undonePaths.includes(change.path)));
  return [`${slug} (${file}): ${changes.length} ${changes.length === 1 ? 'difference' : 'differences'}`, ...lines].join(
    '\n',
  );
}

/** Maximum length of JSON, and of the old and the new value together, on one line. */
const maxInlineLength = 100;

/** Formats the change of a field. With `isUndone`, notes that the field was changed elsewhere. */
export function formatPlannedChange({ path, before, after }: FieldChange, isUndone: boolean): string[] {
  const changedSign = after === undefined ? '-' : '~';
  const sign = before === undefined ? '+' : changedSign;
  const note = isUndone ? '  (changed elsewhere since the last apply)' : '';
  const [oldLines, newLines] = [formatValue(before), formatValue(after)];
  const inlineLength = (oldLines[0]?.length ?? 0) + (newLines[0]?.length ?? 0);
  if (oldLines.length <= 1 && newLines.length <= 1 && inlineLength <= maxInlineLength)
    return [`  ${sign} ${path}: ${[...oldLines, ...newLines].join(' → ')}${note}`];
  return [
    `  ${sign} ${path}${note}`,
    ...oldLines.map((line) => `      - ${line}`),
    ...newLines.map((line) => `      + ${line}`),
  ];
}

const maxValueLines = 60;

/** Formats a value as lines of JSON, or a multi-line string as its own lines. */
function formatValue(value: unknown): string[] {
  if (value === undefined) return [];
  const compactJson = JSON.stringify(value);
  const json = compactJson.length <= maxInlineLength ? compactJson : JSON.stringify(value, null, 2);
  const isMultiline = typeof value === 'string' && value.includes('\n');
  const lines = (isMultiline ? value : json).split('\n');
  return lines.length > maxValueLines
    ? [...lines.slice(0, maxValueLines), `… and ${lines.length - maxValueLines} more lines`]
    : lines;
}
