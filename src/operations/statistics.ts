import { z } from 'zod';
import { invalid } from '../errors.ts';
import {
  type CallScope,
  countable,
  countByServer,
  type DurationCount,
  durationsByInterval,
  durationsByTool,
  middleOfClass,
} from '../store/call-statistics.ts';
import { listSlugs } from '../store/servers.ts';
import { type Context, operation } from './operation.ts';
import { getServer, isoTime, slugInput, time, toolInput } from './shapes.ts';

const hourMs = 60 * 60_000;
const hours = 24;
const mostEntries = 100;

const complete = z
  .boolean()
  .describe('false when there were so many calls that only the newest of them, half a million, are counted.');
const counts = {
  calls: z.int(),
  errors: z.int().describe('Calls of any outcome but ok.'),
};

const getServerActivity = operation({
  name: 'getServerActivity',
  summary: 'Count the calls of every hosted server in the last 24 hours',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({ slug: slugInput.optional() }),
  output: z.object({
    servers: z.array(
      z.object({
        slug: z.string(),
        ...counts,
        hourly: z.array(z.int()).describe('Calls in each of the 24 hours up to now, oldest first.'),
      }),
    ),
    complete,
  }),
  async run(context, { slug }) {
    await context.flushCalls();
    const { db, actor } = context;
    const until = context.now() + 1;
    const from = until - hours * hourMs;
    const slugs = slug === undefined ? actor.servers : [(await getServer(context, slug)).slug];
    const wanted: CallScope = { workspaceId: actor.workspaceId, from, until, ...(slugs && { slugs }) };
    const { scope, complete } = await countable(db, wanted);
    const rows = Map.groupBy(await countByServer(db, scope, from, hourMs), (row) => row.slug);
    const servers = (await listSlugs(db, actor.workspaceId, slugs)).map((name) => {
      const own = rows.get(name) ?? [];
      const hourly = Array.from(
        { length: hours },
        (_, n) => own.find((row) => row.at === from + n * hourMs)?.calls ?? 0,
      );
      return { slug: name, ...sumOf(own), hourly };
    });
    return { servers, complete };
  },
});

function sumOf(rows: readonly { calls: number; errors: number }[]): { calls: number; errors: number } {
  let [calls, errors] = [0, 0];
  for (const row of rows) {
    calls += row.calls;
    errors += row.errors;
  }
  return { calls, errors };
}

const statistics = z.object({
  ...counts,
  p50_ms: z.int().optional().describe('Half of the calls took no longer; absent without calls.'),
  p95_ms: z.int().optional().describe('Of twenty calls nineteen took no longer; absent without calls.'),
});

/** Counts and percentiles (nearest rank) of calls that are counted in classes of duration. */
function summary(rows: readonly DurationCount[]): z.input<typeof statistics> {
  const { calls, errors } = sumOf(rows);
  if (calls === 0) return { calls, errors };
  const sorted = rows.toSorted((a, b) => a.lower - b.lower);
  const percentile = (share: number) => {
    let left = Math.ceil(calls * share);
    for (const row of sorted) {
      left -= row.calls;
      if (left <= 0) return middleOfClass(row.lower);
    }
    return 0;
  };
  return { calls, errors, p50_ms: percentile(0.5), p95_ms: percentile(0.95) };
}

const getCallStatistics = operation({
  name: 'getCallStatistics',
  summary: 'Count calls and errors and how long calls took, over time, by server and by tool',
  description: 'Percentiles are exact below 40 ms and within 2.5 % above.',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({
    slug: slugInput.optional(),
    tool: toolInput.optional(),
    since: z.iso.datetime().optional().describe('Start; 24 hours before the end when absent.'),
    until: z.iso.datetime().optional().describe('End; now when absent.'),
    buckets: z.int().min(1).max(500).default(48).describe('How many intervals to divide the time into.'),
  }),
  output: z.object({
    from: time,
    to: time,
    bucket_ms: z.int().describe('Length of an interval.'),
    buckets: z.array(statistics.extend({ at: time.describe('Start of the interval.') })),
    by_server: z.array(statistics.extend({ slug: z.string() })).describe(`Most called first, at most ${mostEntries}.`),
    by_tool: z
      .array(statistics.extend({ slug: z.string(), tool: z.string() }))
      .describe(`Most called first, at most ${mostEntries}.`),
    complete,
  }),
  async run(context, input) {
    const { from, until } = spanOf(context, input);
    const widthMs = Math.ceil((until - from) / input.buckets);
    await context.flushCalls();
    const { scope, complete } = await countable(context.db, await scopeOf(context, input, from, until));
    const byInterval = Map.groupBy(await durationsByInterval(context.db, scope, from, widthMs), (row) => row.at);
    const tools = await durationsByTool(context.db, scope);
    return {
      from: isoTime(from),
      to: isoTime(until),
      bucket_ms: widthMs,
      buckets: Array.from({ length: Math.ceil((until - from) / widthMs) }, (_, n) => from + n * widthMs).map((at) => ({
        at: isoTime(at),
        ...summary(byInterval.get(at) ?? []),
      })),
      by_server: ranked(tools, ({ slug }) => ({ slug })),
      by_tool: ranked(tools, ({ slug, tool }) => ({ slug, tool })),
      complete,
    };
  },
});

type Asked = {
  slug?: string | undefined;
  tool?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
};

/** @throws AppError invalid */
function spanOf(context: Context, { since, until }: Asked): { from: number; until: number } {
  // A call of this very millisecond is one of the past.
  const end = until === undefined ? context.now() + 1 : Date.parse(until);
  const from = since === undefined ? end - hours * hourMs : Date.parse(since);
  if (from >= end) throw invalid([{ path: 'since', message: 'is not before the end; allowed: an earlier time' }]);
  return { from, until: end };
}

/** @throws AppError notFound */
async function scopeOf(context: Context, { slug, tool }: Asked, from: number, until: number): Promise<CallScope> {
  const { actor } = context;
  const server = slug === undefined ? undefined : await getServer(context, slug);
  return {
    workspaceId: actor.workspaceId,
    from,
    until,
    ...(server && { serverId: server.id }),
    ...(actor.servers && { slugs: actor.servers }),
    ...(tool !== undefined && { tool }),
  };
}

function ranked<Row extends DurationCount, Key extends object>(
  rows: readonly Row[],
  keyOf: (row: Row) => Key,
): (Key & z.input<typeof statistics>)[] {
  const groups = Map.groupBy(rows, (row) => JSON.stringify(keyOf(row)));
  return [...groups.values()]
    .map((group) => ({ ...keyOf(group[0] as Row), ...summary(group) }))
    .sort((a, b) => b.calls - a.calls)
    .slice(0, mostEntries);
}

export const statisticsOperations = { getServerActivity, getCallStatistics };
