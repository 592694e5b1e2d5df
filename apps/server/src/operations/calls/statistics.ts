import { invalidInputError } from '@toolhost/errors/errors';
import { maxTools } from '@toolhost/tool-config/server-config';
import { z } from 'zod';
import { getPercentile } from '../../duration-buckets.ts';
import {
  type CallScope,
  type CountedCalls,
  countByInterval,
  countByServer,
  countByTool,
  findCountableStart,
  findMostCalled,
  minuteCountsRetentionMs,
} from '../../store/calls/call-statistics.ts';
import { dayMs, hourMs, minuteMs, startOfPeriod } from '../../store/calls/call-writer.ts';
import { listSlugs } from '../../store/servers/servers.ts';
import { estimateToolTokens } from '../../warnings.ts';
import { getServer } from '../find-server.ts';
import { type Context, operation } from '../operation.ts';
import {
  nextCursor,
  pageInputs,
  parsePage,
  serverFilterInputs,
  slugInput,
  time,
  toIsoTime,
  toolInput,
  toServerFilter,
} from '../shapes.ts';

/** Number of hours that activity covers. */
const hours = 24;
const maxEntries = 100;

const countFields = {
  calls: z.int(),
  errors: z.int().describe('Number of calls with an outcome other than ok.'),
};

const getServerActivity = operation({
  name: 'getServerActivity',
  summary: 'Count the calls of hosted servers in the last 24 hours',
  description: 'Returns one server, or the page of servers that listMcpServers returns for the same inputs.',
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
        ...countFields,
        hourly: z
          .array(z.int())
          .max(hours)
          .describe('Number of calls in each of the 24 hours before the end of the current minute, oldest first.'),
      }),
    ),
    next_cursor: nextCursor,
  }),
  async run(context, { slug, ...input }) {
    const { db, actor } = context;
    const requestedSlugs = slug === undefined ? actor.servers : [(await getServer(context, slug)).slug];
    const { rows: servers, next } = await listSlugs(db, actor.workspaceId, requestedSlugs, {
      ...parsePage(input),
      ...toServerFilter(input),
    });
    await context.serving?.flushCalls();
    const until = getIntervalEnd(context.now(), minuteMs);
    const from = until - hours * hourMs;
    const slugs = servers.map((server) => server.slug);
    const scope = { workspaceId: actor.workspaceId, from, until, slugs };
    const rows = Map.groupBy(await countByServer(db, scope, hourMs), (row) => row.slug);
    return {
      servers: slugs.map((serverSlug) => {
        const serverRows = rows.get(serverSlug) ?? [];
        const hourly = Array.from(
          { length: hours },
          (_, n) => serverRows.find((row) => row.at === from + n * hourMs)?.calls ?? 0,
        );
        return { slug: serverSlug, ...sumCounts(serverRows), hourly };
      }),
      next_cursor: next,
    };
  },
});

const getToolActivity = operation({
  name: 'getToolActivity',
  summary: 'Count the calls of each tool of a hosted server in the last 24 hours, and the tokens of its definition',
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
          tokens: z.int().describe('Estimated tokens of the tool definition that an agent gets.'),
          ...countFields,
        }),
      )
      .max(maxTools)
      .describe('All tools, in the order of the configuration.'),
  }),
  async run(context, { slug }) {
    const { db, actor } = context;
    const { config } = await getServer(context, slug);
    await context.serving?.flushCalls();
    const until = getIntervalEnd(context.now(), minuteMs);
    const scope = { workspaceId: actor.workspaceId, from: until - hours * hourMs, until, slugs: [slug] } as const;
    const countsByTool = new Map((await countByTool(db, scope)).map((row) => [row.tool, row]));
    const tokens = await estimateToolTokens(config);
    return {
      tools: config.tools.map(({ name }, index) => ({
        tool: name,
        tokens: tokens[index] ?? 0,
        calls: countsByTool.get(name)?.calls ?? 0,
        errors: countsByTool.get(name)?.errors ?? 0,
      })),
    };
  },
});

/**
 * Returns the end of the minute or day that contains a time. A time at the start of a minute belongs to that minute.
 */
function getIntervalEnd(at: number, width: number): number {
  return startOfPeriod(at, width) + width;
}

function sumCounts(rows: readonly { calls: number; errors: number }[]): { calls: number; errors: number } {
  let [calls, errors] = [0, 0];
  for (const row of rows) {
    calls += row.calls;
    errors += row.errors;
  }
  return { calls, errors };
}

const statisticsShape = z.object({
  ...countFields,
  p50_ms: z.int().optional().describe('Median duration; absent if there were no calls.'),
  p95_ms: z.int().optional().describe('95th percentile of the duration; absent if there were no calls.'),
});

function summarize({ calls, errors, durations }: CountedCalls): z.input<typeof statisticsShape> {
  const [p50, p95] = [getPercentile(durations, 0.5), getPercentile(durations, 0.95)];
  return { calls, errors, ...(p50 !== undefined && { p50_ms: p50 }), ...(p95 !== undefined && { p95_ms: p95 }) };
}

const getCallStatistics = operation({
  name: 'getCallStatistics',
  summary: 'Get the number, errors, and durations of calls over time, by server, and by tool',
  description:
    'Calls are counted by minute, or by day (UTC) if the period begins three or more days ago. since is rounded down and until is rounded up to a whole minute or day, and intervals are multiples of it. ' +
    'Percentiles are exact below 8 ms and accurate to 12.5% above.',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({
    slug: slugInput.optional(),
    tool: toolInput.optional(),
    since: z.iso.datetime().optional().describe('Start of the period; 24 hours before its end if absent.'),
    until: z.iso.datetime().optional().describe('End of the period; now if absent.'),
    buckets: z
      .int()
      .min(1)
      .max(500)
      .default(48)
      .describe('Maximum number of intervals. Up to two more are returned if intervals are whole days.'),
  }),
  output: z.object({
    from: time.describe(
      'Start of the first interval. It may be later than since if you request a tool across very many servers; set slug to get the whole period.',
    ),
    to: time.describe('End of the last interval.'),
    bucket_ms: z
      .int()
      .describe(
        'Length of an interval in milliseconds: whole minutes, whole hours if it is an hour or more, or whole days if the period begins three or more days ago.',
      ),
    buckets: z.array(statisticsShape.extend({ at: time.describe('Start of the interval.') })).max(502),
    by_server: z
      .array(statisticsShape.extend({ slug: z.string() }))
      .max(maxEntries)
      .describe(`Servers, most calls first; at most ${maxEntries}.`),
    by_tool: z
      .array(statisticsShape.extend({ slug: z.string(), tool: z.string() }))
      .max(maxEntries)
      .describe(`Tools, most calls first; at most ${maxEntries}.`),
    ranked_from: time
      .optional()
      .describe(
        'Present if very many tools were called. by_server and by_tool then contain the entries with the most calls since this time, each with all of its calls.',
      ),
  }),
  async run(context, input) {
    const { from: requestedFrom, until, widthMs } = getPeriod(context, input);
    const requestedScope = await getCallScope(context, input, requestedFrom, until);
    await context.serving?.flushCalls();
    const { db } = context;
    const from = await findCountableStart(db, requestedScope, widthMs);
    const scope = { ...requestedScope, from };
    const intervals = new Map((await countByInterval(db, scope, widthMs)).map((row) => [row.at, row]));
    const { servers, tools, rankedFrom } = await findMostCalled(db, scope, maxEntries);
    return {
      from: toIsoTime(from),
      to: toIsoTime(until),
      bucket_ms: widthMs,
      buckets: Array.from({ length: Math.ceil((until - from) / widthMs) }, (_, n) => from + n * widthMs).map((at) => ({
        at: toIsoTime(at),
        ...summarize(intervals.get(at) ?? { calls: 0, errors: 0, durations: [] }),
      })),
      by_server: servers.map((row) => ({ slug: row.slug, ...summarize(row) })),
      by_tool: tools.map((row) => ({ slug: row.slug, tool: row.tool, ...summarize(row) })),
      ...(rankedFrom !== undefined && { ranked_from: toIsoTime(rankedFrom) }),
    };
  },
});

type StatisticsInput = {
  slug?: string | undefined;
  tool?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
  buckets: number;
};

/**
 * Returns the requested period in whole minutes, or in whole days (UTC) if its minutes are no longer stored.
 * @throws AppError invalid
 */
function getPeriod(
  context: Context,
  { since, until, buckets }: StatisticsInput,
): { from: number; until: number; widthMs: number } {
  const now = context.now();
  // A call in the current millisecond belongs to the past.
  const requestedEnd = until === undefined ? now + 1 : Date.parse(until);
  const getUnitMs = (at: number) => (at < now - minuteCountsRetentionMs ? dayMs : minuteMs);
  const requestedStart = since === undefined ? undefined : Date.parse(since);
  if (requestedStart !== undefined && requestedStart >= requestedEnd)
    throw invalidInputError([
      { path: 'since', message: 'is not before the end of the period; allowed: an earlier time' },
    ]);
  const unitMs = getUnitMs(requestedStart ?? requestedEnd - hours * hourMs);
  const periodEnd = getIntervalEnd(requestedEnd - 1, unitMs);
  const from = requestedStart === undefined ? periodEnd - hours * hourMs : startOfPeriod(requestedStart, unitMs);
  // A period of 30 days that begins at noon touches 31 days, and would otherwise be divided into intervals of two days.
  const periodMs = unitMs === dayMs ? startOfPeriod(requestedEnd - (requestedStart ?? from), dayMs) : periodEnd - from;
  const minWidthMs = Math.max(unitMs, periodMs / buckets);
  const stepMs = Math.max(unitMs, minWidthMs < hourMs ? minuteMs : hourMs);
  return { from, until: periodEnd, widthMs: Math.ceil(minWidthMs / stepMs) * stepMs };
}

/** @throws AppError notFound */
async function getCallScope(
  context: Context,
  { slug, tool }: StatisticsInput,
  from: number,
  until: number,
): Promise<CallScope> {
  const { actor } = context;
  const slugs = slug === undefined ? actor.servers : [(await getServer(context, slug)).slug];
  return { workspaceId: actor.workspaceId, from, until, ...(slugs && { slugs }), ...(tool !== undefined && { tool }) };
}

export const statisticsOperations = { getServerActivity, getToolActivity, getCallStatistics };
