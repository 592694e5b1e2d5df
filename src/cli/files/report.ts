import { type Result, results, type ServerOutcome } from './apply-files.ts';
import type { FileProblem } from './read-files.ts';

const mostPaths = 6;

/** Lines for the problems of files. */
export function problemLines(problems: readonly FileProblem[]): string[] {
  return problems.map(({ at, path, message }) => `${at}: ${path === '' ? '' : `${path}: `}${message}`);
}

/** Report of a run: a line for each server, its secrets and warnings, and the counts. */
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

/** Differences of one server, field by field. */
export function differenceText({ slug, file, result, changes }: ServerOutcome, undone: readonly string[]): string {
  if (result === 'created') return `${slug} (${file}): not on the service yet`;
  if (result === 'pruned') return `${slug}: only on the service`;
  const lines = changes.flatMap((change) => changeLines(change, undone.includes(change.path)));
  return [`${slug} (${file}): ${changes.length} ${changes.length === 1 ? 'difference' : 'differences'}`, ...lines].join(
    '\n',
  );
}

/** Lines of one difference. */
export function changeLines({ path, before, after }: ServerOutcome['changes'][number], isUndone: boolean): string[] {
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

/** A value as lines of JSON, or of the text itself where it has several lines. */
function valueLines(value: unknown): string[] {
  if (value === undefined) return [];
  const isText = typeof value === 'string' && value.includes('\n');
  const short = JSON.stringify(value);
  const lines = isText ? value.split('\n') : short.length <= 100 ? [short] : JSON.stringify(value, null, 2).split('\n');
  return lines.length > mostLines
    ? [...lines.slice(0, mostLines), `… and ${lines.length - mostLines} more lines`]
    : lines;
}
