import { z } from 'zod';
import { mostTools } from '../../domain/config/server-config.ts';
import { percentile } from '../../domain/duration-classes.ts';
import { estimatedTokensOfTools } from '../../domain/warnings/warnings.ts';
import { invalid } from '../../errors.ts';
import {
  type CallScope,
  type CountedCalls,
  countByInterval,
  countByServer,
  countByTool,
  countedFrom,
  minutesKeptMs,
  mostCalled,
} from '../../store/calls/call-statistics.ts';
import { dayMs, hourMs, minuteMs, startOf } from '../../store/calls/call-writer.ts';
import { listSlugs } from '../../store/servers/servers.ts';
import { type Context, operation } from '../operation.ts';
import {
  getServer,
  isoTime,
  nextCursor,
  pageFrom,
  pageInputs,
  serverFilterFrom,
  serverFilterInputs,
  slugInput,
  time,
  toolInput,
} from '../shapes.ts';

const hours = 24;
const mostEntries = 100;

const counts = {
  calls: z.int(),
  errors: z.int().describe('Calls of any outcome but ok.'),
};

const getServerActivity = operation({
  name: 'getServerActivity',
  summary: 'Count the calls of hosted servers in the last 24 hours',
  description: 'Of one server, or of a page of servers: the same ones as listMcpServers gives for these inputs.',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({
    slug: slugInput.optional(),
    ...serverFilterInputs,
    ...pageInputs,
    limit: pageInputs.limit.default(200),
  }),
  output: z.object({
    servers: z.array(
      z.object({
        slug: z.string(),
        ...counts,
        hourly: z
          .array(z.int())
          .max(hours)
          .describe('Calls in each of the 24 hours up to the end of this minute, oldest first.'),
      }),
    ),
    next_cursor: nextCursor,
  }),
  async run(context, { slug, ...input }) {
    const { db, actor } = context;
    const wanted = slug === undefined ? actor.servers : [(await getServer(context, slug)).slug];
    const { rows: servers, next } = await listSlugs(db, actor.workspaceId, wanted, {
      ...pageFrom(input),
      ...serverFilterFrom(input),
    });
    await context.serving?.flushCalls();
    const until = endOf(context.now(), minuteMs);
    const from = until - hours * hourMs;
    const slugs = servers.map((server) => server.slug);
    const scope = { workspaceId: actor.workspaceId, from, until, slugs };
    const rows = Map.groupBy(await countByServer(db, scope, hourMs), (row) => row.slug);
    return {
      servers: slugs.map((name) => {
        const own = rows.get(name) ?? [];
        const hourly = Array.from(
          { length: hours },
          (_, n) => own.find((row) => row.at === from + n * hourMs)?.calls ?? 0,
        );
        return { slug: name, ...sumOf(own), hourly };
      }),
      next_cursor: next,
    };
  },
});

const getToolActivity = operation({
  name: 'getToolActivity',
  summary: 'Count the calls of the tools of a hosted server in the last 24 hours, and the tokens of their definitions',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({ slug: slugInput }),
  output: z.object({
    tools: z
      .array(
        z.object({
          tool: z.string(),
          tokens: z.int().describe('About how many tokens its definition takes where an agent gets it.'),
          ...counts,
        }),
      )
      .max(mostTools)
      .describe('Every tool, in the order of the configuration.'),
  }),
  async run(context, { slug }) {
    const { db, actor } = context;
    const { config } = await getServer(context, slug);
    await context.serving?.flushCalls();
    const until = endOf(context.now(), minuteMs);
    const scope = { workspaceId: actor.workspaceId, from: until - hours * hourMs, until, slugs: [slug] } as const;
    const found = new Map((await countByTool(db, scope)).map((row) => [row.tool, row]));
    const tokens = await estimatedTokensOfTools(config);
    return {
      tools: config.tools.map(({ name }, index) => ({
        tool: name,
        tokens: tokens[index] ?? 0,
        calls: found.get(name)?.calls ?? 0,
        errors: found.get(name)?.errors ?? 0,
      })),
    };
  },
});

/** The end of the minute or day that contains a time. A time at the start of a minute belongs to it. */
function endOf(at: number, width: number): number {
  return startOf(at, width) + width;
}

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

function summary({ calls, errors, durations }: CountedCalls): z.input<typeof statistics> {
  const [p50, p95] = [percentile(durations, 0.5), percentile(durations, 0.95)];
  return { calls, errors, ...(p50 !== undefined && { p50_ms: p50 }), ...(p95 !== undefined && { p95_ms: p95 }) };
}

const getCallStatistics = operation({
  name: 'getCallStatistics',
  summary: 'Count calls and errors and how long calls took, over time, by server and by tool',
  description:
    'Calls are counted by the minute, and by the day (UTC) what began three days ago or earlier: since is taken down and until up to a whole one, and intervals are whole ones. ' +
    'Percentiles are exact below 8 ms and within 12.5 % above.',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({
    slug: slugInput.optional(),
    tool: toolInput.optional(),
    since: z.iso.datetime().optional().describe('Start; 24 hours before the end when absent.'),
    until: z.iso.datetime().optional().describe('End; now when absent.'),
    buckets: z
      .int()
      .min(1)
      .max(500)
      .default(48)
      .describe('Into how many intervals to divide the time at most; up to two more where they are whole days.'),
  }),
  output: z.object({
    from: time.describe(
      'Start of the first interval. It may be later than since where a tool is asked for in very many servers at once; name the slug for all of the time.',
    ),
    to: time.describe('End of the last interval.'),
    bucket_ms: z
      .int()
      .describe(
        'Length of an interval: whole minutes, from an hour on whole hours, and whole days where it begins three days ago or earlier.',
      ),
    buckets: z.array(statistics.extend({ at: time.describe('Start of the interval.') })).max(502),
    by_server: z
      .array(statistics.extend({ slug: z.string() }))
      .max(mostEntries)
      .describe(`Most called first, at most ${mostEntries}.`),
    by_tool: z
      .array(statistics.extend({ slug: z.string(), tool: z.string() }))
      .max(mostEntries)
      .describe(`Most called first, at most ${mostEntries}.`),
    ranked_from: time
      .optional()
      .describe(
        'Present where very many tools were called: by_server and by_tool then have those that were called most from this time on, with all of their calls.',
      ),
  }),
  async run(context, input) {
    const { from: wantedFrom, until, widthMs } = spanOf(context, input);
    const wanted = await scopeOf(context, input, wantedFrom, until);
    await context.serving?.flushCalls();
    const { db } = context;
    const from = await countedFrom(db, wanted, widthMs);
    const scope = { ...wanted, from };
    const intervals = new Map((await countByInterval(db, scope, widthMs)).map((row) => [row.at, row]));
    const { servers, tools, rankedFrom } = await mostCalled(db, scope, mostEntries);
    return {
      from: isoTime(from),
      to: isoTime(until),
      bucket_ms: widthMs,
      buckets: Array.from({ length: Math.ceil((until - from) / widthMs) }, (_, n) => from + n * widthMs).map((at) => ({
        at: isoTime(at),
        ...summary(intervals.get(at) ?? { calls: 0, errors: 0, durations: [] }),
      })),
      by_server: servers.map((row) => ({ slug: row.slug, ...summary(row) })),
      by_tool: tools.map((row) => ({ slug: row.slug, tool: row.tool, ...summary(row) })),
      ...(rankedFrom !== undefined && { ranked_from: isoTime(rankedFrom) }),
    };
  },
});

type Asked = {
  slug?: string | undefined;
  tool?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
  buckets: number;
};

/** The requested period in whole minutes, or in whole days (UTC) where minutes are no longer kept. @throws AppError invalid */
function spanOf(context: Context, { since, until, buckets }: Asked): { from: number; until: number; widthMs: number } {
  const now = context.now();
  // A call of the present millisecond belongs to the past.
  const wantedEnd = until === undefined ? now + 1 : Date.parse(until);
  const unit = (at: number) => (at < now - minutesKeptMs ? dayMs : minuteMs);
  const wantedStart = since === undefined ? undefined : Date.parse(since);
  if (wantedStart !== undefined && wantedStart >= wantedEnd)
    throw invalid([{ path: 'since', message: 'is not before the end; allowed: an earlier time' }]);
  const whole = unit(wantedStart ?? wantedEnd - hours * hourMs);
  const end = endOf(wantedEnd - 1, whole);
  const from = wantedStart === undefined ? end - hours * hourMs : startOf(wantedStart, whole);
  // Thirty days that begin and end within a day touch 31, and would otherwise be divided into intervals of two days.
  const divided = whole === dayMs ? startOf(wantedEnd - (wantedStart ?? from), dayMs) : end - from;
  const least = Math.max(whole, divided / buckets);
  const step = Math.max(whole, least < hourMs ? minuteMs : hourMs);
  return { from, until: end, widthMs: Math.ceil(least / step) * step };
}

/** @throws AppError notFound */
async function scopeOf(context: Context, { slug, tool }: Asked, from: number, until: number): Promise<CallScope> {
  const { actor } = context;
  const slugs = slug === undefined ? actor.servers : [(await getServer(context, slug)).slug];
  return { workspaceId: actor.workspaceId, from, until, ...(slugs && { slugs }), ...(tool !== undefined && { tool }) };
}

export const statisticsOperations = { getServerActivity, getToolActivity, getCallStatistics };
