import { durationClasses, durationClassOf } from '../../domain/duration-classes.ts';
import type { CallRow, Tables } from '../schema.ts';

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/** The columns of the classes of durations, in their order. */
export const classColumns = durationClasses.map((lower) => `ms_${lower}` as const);
const keyColumns = ['workspace_id', 'slug', 'tool', 'width', 'at'] as const;
const sumColumns = ['calls', 'errors', ...classColumns] as const;
export const countColumns = [...keyColumns, ...sumColumns] as const;

type CountKey = Pick<Tables['call_counts'], (typeof keyColumns)[number]>;
/** `durations` has the number of calls in each class. */
export type CallCount = CountKey & { calls: number; errors: number; durations: number[] };

/** The fields of a call that are counted. */
export const countedColumns = ['workspace_id', 'slug', 'tool', 'started_at', 'outcome', 'duration_ms'] as const;
export type CountedCall = Pick<CallRow, (typeof countedColumns)[number]>;

/**
 * Increments for the counts of tools, and of workspaces, where slug and tool are empty; by the minute, the hour and the
 * day (UTC). Sorted by key, so that two writers cannot deadlock.
 */
export function countsOf(calls: Iterable<CountedCall>): CallCount[] {
  const minutes = new Map<string, CallCount>();
  let last: CallCount | undefined;
  for (const call of calls) {
    const sum = last && isOf(last, call) ? last : sumFor(minutes, minuteOf(call));
    last = sum;
    const durationClass = durationClassOf(call.duration_ms);
    sum.calls += 1;
    if (call.outcome !== 'ok') sum.errors += 1;
    sum.durations[durationClass] = (sum.durations[durationClass] ?? 0) + 1;
  }
  const all = new Map<string, CallCount>();
  for (const minute of minutes.values()) {
    for (const width of [minuteMs, hourMs, dayMs]) {
      const at = startOf(minute.at, width);
      add(sumFor(all, { ...minute, width, at }), minute);
      add(sumFor(all, { ...minute, slug: '', tool: '', width, at }), minute);
    }
  }
  return [...all].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, count]) => count);
}

function minuteOf({ workspace_id, slug, tool, started_at }: CountedCall): CountKey {
  return { workspace_id, slug, tool, width: minuteMs, at: startOf(started_at, minuteMs) };
}

/** Whether a call counts in a minute. Under load one call often follows another of the same tool. */
function isOf({ workspace_id, slug, tool, at }: CountKey, call: CountedCall): boolean {
  const { started_at } = call;
  return (
    at <= started_at &&
    started_at < at + minuteMs &&
    slug === call.slug &&
    tool === call.tool &&
    workspace_id === call.workspace_id
  );
}

export function startOf(at: number, width: number): number {
  return Math.floor(at / width) * width;
}

function sumFor(sums: Map<string, CallCount>, { workspace_id, slug, tool, width, at }: CountKey): CallCount {
  const key = `${workspace_id}\n${width}\n${at}\n${slug}\n${tool}`;
  const known = sums.get(key);
  if (known) return known;
  const durations = new Array<number>(durationClasses.length).fill(0);
  const sum = { workspace_id, slug, tool, width, at, calls: 0, errors: 0, durations };
  sums.set(key, sum);
  return sum;
}

function add(sum: CallCount, more: CallCount): void {
  sum.calls += more.calls;
  sum.errors += more.errors;
  for (const [index, calls] of more.durations.entries())
    if (calls > 0) sum.durations[index] = (sum.durations[index] ?? 0) + calls;
}

/** The statement that adds to the counts; `source` gives rows of `countColumns`. */
export function addCountsText(source: string): string {
  const sums = sumColumns.map((column) => `${column} = call_counts.${column} + excluded.${column}`);
  return `insert into call_counts (${countColumns.join(', ')}) ${source} on conflict (${keyColumns.join(', ')}) do update set ${sums.join(', ')}`;
}
