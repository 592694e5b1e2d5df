import type { FieldChange } from '../../domain/config-changes.ts';
import { AppError } from '../../errors.ts';
import { confirm } from '../ask.ts';
import { connect } from '../connection/connect.ts';
import type { RestClient } from '../connection/rest-client.ts';
import type { ConnectionOptions } from '../options.ts';
import { note, print, printJson } from '../print.ts';
import {
  type Applying,
  applyServer,
  conflictsOf,
  type PlannedServer,
  type Planning,
  planFiles,
  plannedOutcome,
  pruneServer,
  type Result,
  results,
  type ServerOutcome,
  strayServers,
} from './applying.ts';
import { readSecretFile, type Sources } from './secret-values.ts';
import type { FileProblem } from './server-files.ts';

export type ApplyOptions = ConnectionOptions &
  Applying & { json?: true; dryRun?: true; prune?: true; yes?: true; secrets?: string; env?: string[] };
type Stray = Awaited<ReturnType<typeof strayServers>>;

export async function apply(paths: readonly string[], options: ApplyOptions): Promise<void> {
  if (options.prune && options.label === undefined)
    throw new AppError('invalid', '--prune only deletes servers with a label; name it with --label');
  const client = await connect(options);
  const { label } = options;
  const { planned, problems } = await planFiles(client, paths, {
    ...(await sourcesOf(options)),
    label,
  });
  const all = [...problems, ...conflictsOf(planned, options)];
  if (all.length > 0) {
    refuse(all, options);
    return;
  }
  const slugs = new Set(planned.map(({ server }) => server.slug));
  const stray = options.prune && label !== undefined ? await strayServers(client, label, slugs) : [];
  if (!options.dryRun && stray.length > 0) {
    const names = stray.map(({ slug }) => slug).join(', ');
    await confirm(`delete ${names}`, 'yes', options);
  }
  const outcomes = options.dryRun
    ? plannedOutcomes(planned, stray)
    : await applyAll(client, planned, { stray, options });
  report(outcomes, options);
}

/** Returns the allowed sources of secret values. */
async function sourcesOf({ env = [], secrets }: { env?: string[]; secrets?: string }): Promise<Sources> {
  return { named: env, more: secrets === undefined ? undefined : await readSecretFile(secrets) };
}

function refuse(problems: readonly FileProblem[], options: ApplyOptions): void {
  process.exitCode = 1;
  if (options.json) {
    printJson({ applied: false, problems, servers: [] });
    return;
  }
  const found = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  note([`error: ${found}; nothing was changed`, ...problemLines(problems).map((line) => `  ${line}`)].join('\n'));
}

function plannedOutcomes(planned: readonly PlannedServer[], stray: Stray): ServerOutcome[] {
  const pruned = stray.map(({ slug }) => ({ slug, result: 'pruned' as const, changes: [], warnings: [] }));
  const known = planned.map((one) => ({ ...plannedOutcome(one), secrets: one.server.sources }));
  return [...known, ...pruned];
}

async function applyAll(
  client: RestClient,
  planned: readonly PlannedServer[],
  { stray, options }: { stray: Stray; options: ApplyOptions },
): Promise<ServerOutcome[]> {
  const outcomes: ServerOutcome[] = [];
  for (const one of planned) outcomes.push(await applyServer(client, one, options));
  if (outcomes.some(({ result }) => result === 'failed')) {
    if (stray.length > 0) note('Nothing was deleted, because some servers could not be applied.');
    return outcomes;
  }
  for (const server of stray) outcomes.push(await pruneServer(client, server));
  return outcomes;
}

function report(outcomes: readonly ServerOutcome[], { json, dryRun }: ApplyOptions): void {
  if (json) printJson({ applied: !dryRun, problems: [], servers: outcomes });
  else print(reportText(outcomes, dryRun === true));
  if (outcomes.some(({ result }) => result === 'failed')) process.exitCode = 1;
  else if (dryRun && outcomes.some(({ result }) => result !== 'same')) process.exitCode = 2;
}

export type DiffOptions = ConnectionOptions & { json?: true; label?: string; secrets?: string; env?: string[] };

export async function diff(paths: readonly string[], options: DiffOptions): Promise<void> {
  const client = await connect(options);
  const planning = await planFiles(client, paths, {
    ...(await sourcesOf(options)),
    forgivesSecrets: true,
  });
  const slugs = new Set(planning.planned.map(({ server }) => server.slug));
  const stray = options.label === undefined ? [] : await strayServers(client, options.label, slugs);
  const outcomes = [
    ...planning.planned.filter(({ plan }) => plan.problems.length === 0).map(plannedOutcome),
    ...stray.map(({ slug }): ServerOutcome => ({ slug, result: 'pruned', changes: [], warnings: [] })),
  ];
  show(outcomes, planning, options);
  if (planning.problems.length > 0) process.exitCode = 1;
  else if (outcomes.some(({ result }) => result !== 'same')) process.exitCode = 2;
}

function show(outcomes: readonly ServerOutcome[], planning: Planning, { json }: DiffOptions): void {
  const { planned, problems } = planning;
  const unknown = notCompared(planning);
  if (json) {
    printJson({ problems, not_compared: unknown, servers: outcomes });
    return;
  }
  const undone = new Map(planned.map(({ server, plan }) => [server.slug, plan.undone]));
  const different = outcomes.filter(({ result }) => result !== 'same');
  if (different.length > 0)
    print(different.map((outcome) => differenceText(outcome, undone.get(outcome.slug) ?? [])).join('\n'));
  const lines = [
    ...problemLines(problems).map((line) => `error: ${line}`),
    ...problemLines(unknown).map((line) => `${line}; not compared`),
  ];
  if (lines.length > 0) note(lines.join('\n'));
}

function notCompared({ planned, unread }: Planning): FileProblem[] {
  const refused = planned.flatMap(({ server: { at }, plan }) =>
    plan.not_compared.map((name) => ({
      at,
      path: name.includes('.') ? name : `secrets.${name}`,
      message: 'the key lacks the scope manage:write',
    })),
  );
  return [...unread, ...refused];
}

const mostPaths = 6;

/** Formats the problems of files, one line each. */
export function problemLines(problems: readonly FileProblem[]): string[] {
  return problems.map(({ at, path, message }) => `${at}: ${path === '' ? '' : `${path}: `}${message}`);
}

/** Formats the report of a run: a line per server, its secrets and warnings, and the counts. */
export function reportText(outcomes: readonly ServerOutcome[], isDryRun: boolean): string {
  const width = Math.max(0, ...outcomes.map(({ slug }) => slug.length));
  const lines = outcomes.flatMap((outcome) => [
    `${verb(outcome.result, isDryRun).padEnd(isDryRun ? 11 : 7)}  ${outcome.slug.padEnd(width)}  ${detail(outcome)}`.trimEnd(),
    ...(outcome.secrets ?? []).map(
      ({ name, source, hosts }) => `  secret ${name}: from ${source}, may reach ${hosts.join(', ') || 'no host'}`,
    ),
    ...outcome.warnings.map(({ path, message }) => `  warning: ${path === '' ? '' : `${path}: `}${message}`),
  ]);
  const counts = results.flatMap((result) => {
    const count = outcomes.filter((outcome) => outcome.result === result).length;
    return count > 0 ? [`${count} ${verb(result, isDryRun)}`] : [];
  });
  return [...lines, counts.join(', ')].join('\n');
}

const future: Record<Result, string> = {
  created: 'to create',
  changed: 'to change',
  same: 'same',
  pruned: 'to delete',
  failed: 'failed',
};

function verb(result: Result, isDryRun: boolean): string {
  return isDryRun ? future[result] : result;
}

function detail({ result, changes, message, file }: ServerOutcome): string {
  if (result === 'failed') return message ?? '';
  if (result === 'created') return file ?? '';
  if (result !== 'changed') return '';
  const paths = changes.map(({ path }) => path);
  const more = paths.length > mostPaths ? ` and ${paths.length - mostPaths} more` : '';
  return paths.slice(0, mostPaths).join(', ') + more;
}

/** Formats the differences of one server, field by field. */
export function differenceText({ slug, file, result, changes }: ServerOutcome, undone: readonly string[]): string {
  if (result === 'created') return `${slug} (${file}): not on the service yet`;
  if (result === 'pruned') return `${slug}: only on the service`;
  const lines = changes.flatMap((change) => changeLines(change, undone.includes(change.path)));
  return [`${slug} (${file}): ${changes.length} ${changes.length === 1 ? 'difference' : 'differences'}`, ...lines].join(
    '\n',
  );
}

/** Formats one difference. */
export function changeLines({ path, before, after }: FieldChange, isUndone: boolean): string[] {
  const sign = before === undefined ? '+' : after === undefined ? '-' : '~';
  const note = isUndone ? '  (changed elsewhere since the last apply)' : '';
  const [old, next] = [valueLines(before), valueLines(after)];
  const isShort = old.length <= 1 && next.length <= 1 && (old[0]?.length ?? 0) + (next[0]?.length ?? 0) <= 100;
  if (isShort) return [`  ${sign} ${path}: ${[...old, ...next].join(' → ')}${note}`];
  return [
    `  ${sign} ${path}${note}`,
    ...old.map((line) => `      - ${line}`),
    ...next.map((line) => `      + ${line}`),
  ];
}

const mostLines = 60;

/** Formats a value as lines of JSON, or a multi-line string as its own lines. */
function valueLines(value: unknown): string[] {
  if (value === undefined) return [];
  const isText = typeof value === 'string' && value.includes('\n');
  const short = JSON.stringify(value);
  const lines = isText ? value.split('\n') : short.length <= 100 ? [short] : JSON.stringify(value, null, 2).split('\n');
  return lines.length > mostLines
    ? [...lines.slice(0, mostLines), `… and ${lines.length - mostLines} more lines`]
    : lines;
}
