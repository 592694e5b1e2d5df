import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { type RawBuilder, sql } from 'kysely';
import { durationBuckets } from '../../duration-buckets.ts';
import type { Db } from '../db.ts';
import { dayMs, minuteMs, startOfPeriod } from './call-writer.ts';

/** Calls of one workspace from `from` up to, but excluding, `until` (epoch ms, whole minutes). */
export type CallScope = {
  workspaceId: string;
  from: number;
  until: number;
  /** Includes only these servers. */
  slugs?: readonly string[];
  tool?: string;
};

export type Counts = { calls: number; errors: number };
/** `durations` has the number of calls in each class. */
export type CountedCalls = Counts & { durations: number[] };

/**
 * Retention of per-minute counts. Per-day counts are retained as long as call records. A period that begins earlier
 * must begin and end with a whole day.
 */
export const minuteCountsRetentionMs = 3 * dayMs;

type TimeRange = { width: number; from: number; until: number };

/** Splits a period into the smallest number of minute and day ranges. */
export function splitIntoRanges(from: number, until: number): TimeRange[] {
  const [firstDay, lastDay] = [startOfPeriod(from + dayMs - 1, dayMs), startOfPeriod(until, dayMs)];
  if (firstDay >= lastDay) return [{ width: minuteMs, from, until }];
  const ranges: TimeRange[] = [
    { width: minuteMs, from, until: firstDay },
    { width: dayMs, from: firstDay, until: lastDay },
    { width: minuteMs, from: lastDay, until },
  ];
  return ranges.filter((range) => range.from < range.until);
}

/** Slug that no server has, for callers that may see no servers. */
const noSlug = '-';

function selectCounts(db: Db, { workspaceId }: CallScope, { width, from, until }: TimeRange) {
  return db
    .selectFrom('call_counts')
    .where('workspace_id', '=', workspaceId)
    .where('width', '=', width)
    .where('at', '>=', from)
    .where('at', '<', until);
}

/** Selects the counts of tools. */
function selectToolCounts(db: Db, scope: CallScope, range: TimeRange) {
  let query = selectCounts(db, scope, range);
  const [slug = noSlug, ...otherSlugs] = scope.slugs ?? [];
  if (!scope.slugs) query = query.where('slug', '<>', '');
  // SQLite reads the newest counts of one slug in index order, but not those of a list.
  else query = otherSlugs.length === 0 ? query.where('slug', '=', slug) : query.where('slug', 'in', scope.slugs);
  return scope.tool === undefined ? query : query.where('tool', '=', scope.tool);
}

/** Selects the counts to sum. Uses those of the whole workspace if the sum is the same. */
function selectScopeCounts(db: Db, scope: CallScope, range: TimeRange) {
  if (scope.slugs || scope.tool !== undefined) return selectToolCounts(db, scope, range);
  return selectCounts(db, scope, range).where('slug', '=', '').where('tool', '=', '');
}

const sumColumn = (column: string) => sql<number>`cast(sum(${sql.ref(column)}) as bigint)`;

/** Sums by the columns of `Group`, such as a server. */
type Summed<Group> = Group & CountedCalls;

/** Sums counts by the columns of `groups`. `counts` must have these columns, calls, errors, and durations. */
async function sumBy<Group extends object>(
  db: Db,
  counts: RawBuilder<unknown>,
  groups: readonly (keyof Group & string)[],
): Promise<Summed<Group>[]> {
  const columns = sql.join(groups.map((group) => sql.ref(group)));
  const { rows } = await sql<Group & Counts & { classes: string }>`
    select ${columns}, ${sumColumn('calls')} as calls, ${sumColumn('errors')} as errors, string_agg(durations, '') as classes
    from ${counts} as counted group by ${columns}`.execute(db);
  const summed: Summed<Group>[] = [];
  let charsParsed = 0;
  for (const { classes, ...row } of rows) {
    charsParsed += classes.length;
    if (charsParsed >= charsPerYield) {
      charsParsed = 0;
      await yieldToEventLoop();
    }
    summed.push({ ...(row as Group & Counts), durations: await sumDurationClasses(classes) });
  }
  return summed;
}

const [comma, colon, brace, zero = 0, nine = 0] = [...',:}09'].map((character) => character.charCodeAt(0));

/** Number of characters that are parsed between yields to the event loop; takes a few milliseconds. */
const charsPerYield = 500_000;

/**
 * Sums texts of classes, such as `{"3":1,"7":2}{"3":1}`. Parsed here, because databases take ten times as long. Yields
 * to the event loop, because three days of a server with a thousand tools may be tens of MB.
 */
async function sumDurationClasses(texts: string): Promise<number[]> {
  const durations = durationBuckets.map(() => 0);
  let [durationClass, number] = [0, 0];
  for (let index = 0; index < texts.length; index++) {
    if (index % charsPerYield === charsPerYield - 1) await yieldToEventLoop();
    const code = texts.charCodeAt(index);
    if (code >= zero && code <= nine) number = number * 10 + code - zero;
    else if (code === colon) [durationClass, number] = [number, 0];
    else if (code === comma || code === brace) {
      durations[durationClass] = (durations[durationClass] ?? 0) + number;
      number = 0;
    }
  }
  return durations;
}

/**
 * Returns the SQL for the start of an interval of `widthMs`, counted from `origin`. Uses `%`, which is an integer
 * operation on both engines, unlike `/`.
 */
function getIntervalStart(origin: number, widthMs: number): RawBuilder<number> {
  return sql<number>`at - (at - ${sql.lit(origin)}) % ${sql.lit(widthMs)}`;
}

/** Returns the widest counted period that evenly divides the intervals. */
function getCountedWidth({ from, until }: CallScope, widthMs: number): number {
  return [from, widthMs, until].every((value) => value % dayMs === 0) ? dayMs : minuteMs;
}

/** Counts calls by interval of `widthMs`, a multiple of a minute. Omits intervals without calls. */
export async function countByInterval(
  db: Db,
  scope: CallScope,
  widthMs: number,
): Promise<(CountedCalls & { at: number })[]> {
  const { from, until } = scope;
  const counts = selectScopeCounts(db, scope, { width: getCountedWidth(scope, widthMs), from, until })
    .select(['calls', 'errors', 'durations'])
    .select(getIntervalStart(from, widthMs).as('interval'));
  const rows = await sumBy<{ interval: number }>(db, sql`${counts}`, ['interval']);
  return rows.map(({ interval, ...row }) => ({ at: interval, ...row }));
}

/** Counts calls of servers by interval of `widthMs`, without durations. */
export async function countByServer(
  db: Db,
  scope: CallScope & { slugs: readonly string[] },
  widthMs: number,
): Promise<(Counts & { slug: string; at: number })[]> {
  const { from, until } = scope;
  const rows = await selectToolCounts(db, scope, { width: minuteMs, from, until })
    .select(['slug', getIntervalStart(from, widthMs).as('interval')])
    .select([sumColumn('calls').as('calls'), sumColumn('errors').as('errors')])
    .groupBy(['slug', 'interval'])
    .execute();
  return rows.map(({ interval, ...row }) => ({ ...row, at: interval }));
}

/** Counts calls by tool of one server, without durations. */
export async function countByTool(
  db: Db,
  scope: CallScope & { slugs: readonly [string] },
): Promise<(Counts & { tool: string })[]> {
  const { from, until } = scope;
  return selectToolCounts(db, scope, { width: minuteMs, from, until })
    .select(['tool', sumColumn('calls').as('calls'), sumColumn('errors').as('errors')])
    .groupBy('tool')
    .execute();
}

/** Maximum number of counts of a tool, each with all duration classes, that are summed by interval. */
const maxSummedCounts = 15_000;

/**
 * Returns the time from which the calls of a scope can be counted by interval. This is the scope's start, except for a
 * tool across all servers with more than `maxCounts` counts. Then it is the first whole interval within the newest
 * `maxCounts`.
 */
export async function findCountableStart(
  db: Db,
  scope: CallScope,
  widthMs: number,
  maxCounts = maxSummedCounts,
): Promise<number> {
  const { from, until, slugs, tool } = scope;
  if (slugs || tool === undefined) return from;
  const width = getCountedWidth(scope, widthMs);
  const query = selectToolCounts(db, scope, { width, from, until }).select('at').orderBy('at', 'desc');
  const oldestIncluded = await query.offset(maxCounts).limit(1).executeTakeFirst();
  return oldestIncluded === undefined ? from : from + Math.ceil((oldestIncluded.at + width - from) / widthMs) * widthMs;
}

export type Ranked = CountedCalls & { slug: string; tool: string };

/** Most-called servers (their `tool` is empty) and tools, in descending order of calls. */
export type MostCalled = {
  servers: Ranked[];
  tools: Ranked[];
  /** Start of the compared counts, if there are too many to compare them all. */
  rankedFrom: number | undefined;
};

/**
 * Maximum number of counts that are compared to find the most-called servers and tools. If a workspace has more, only
 * the newest are compared. The calls of the resulting servers and tools are then counted over the whole period.
 */
export const maxComparedCounts = 40_000;

/** Returns the most-called servers and tools, `limit` of each. */
export async function findMostCalled(
  db: Db,
  scope: CallScope,
  limit: number,
  maxCounts = maxComparedCounts,
): Promise<MostCalled> {
  const ranges = splitIntoRanges(scope.from, scope.until);
  const { ranks, from } = await rankByCalls(db, scope, { ranges, limit, maxCounts });
  const servers = ranks.filter(({ tool }) => tool === '');
  const tools = ranks.filter(({ tool }) => tool !== '');
  return {
    servers: await countRanked(db, scope, ranges, servers),
    tools: await countRanked(db, scope, ranges, tools),
    rankedFrom: from,
  };
}

/** Tool, or a server if `tool` is empty. */
type ToolKey = { slug: string; tool: string };
type Ranking = { ranges: readonly TimeRange[]; limit: number; maxCounts: number };

/** Ranks servers and tools by calls. Also returns the start of the compared period, if it was not the whole period. */
async function rankByCalls(
  db: Db,
  scope: CallScope,
  { ranges, limit, maxCounts }: Ranking,
): Promise<{ ranks: ToolKey[]; from: number | undefined }> {
  const queries: RawBuilder<unknown>[] = [];
  let remaining = maxCounts;
  let from: number | undefined;
  for (const range of ranges.toReversed()) {
    const newest = selectToolCounts(db, scope, range).select(['slug', 'tool', 'calls', 'at']).orderBy('at', 'desc');
    const counts = newest.limit(remaining);
    queries.push(sql`select slug, tool, calls from ${counts} as newest`);
    const { rows } = await sql<{ counts: number; first: number | null }>`
      select count(*) as counts, min(at) as first from ${counts} as newest`.execute(db);
    remaining -= rows[0]?.counts ?? 0;
    if (remaining > 0) continue;
    from = rows[0]?.first ?? range.until;
    break;
  }
  return { ranks: await selectTop(db, queries, limit), from };
}

/** Ranks in the database, because a workspace may have tens of thousands of tools. */
async function selectTop(db: Db, queries: readonly RawBuilder<unknown>[], limit: number): Promise<ToolKey[]> {
  if (queries.length === 0) return [];
  const { rows } = await sql<ToolKey>`
    with each_tool as (
      select slug, tool, cast(sum(calls) as bigint) as calls
      from (${sql.join(queries, sql` union all `)}) as compared group by slug, tool
    ), each_server as (
      select slug, '' as tool, cast(sum(calls) as bigint) as calls from each_tool group by slug
    )
    select slug, tool from (select * from each_server order by calls desc, slug limit ${limit}) as most_servers
    union all
    select slug, tool from (select * from each_tool order by calls desc, slug, tool limit ${limit}) as most_tools`.execute(
    db,
  );
  return rows;
}

function compareByCalls(a: Ranked, b: Ranked): number {
  if (a.calls !== b.calls) return b.calls - a.calls;
  if (a.slug !== b.slug) return a.slug < b.slug ? -1 : 1;
  return a.tool < b.tool ? -1 : 1;
}

/** Sums the calls and durations of servers, or of tools. */
async function countRanked(
  db: Db,
  scope: CallScope,
  ranges: readonly TimeRange[],
  ranks: readonly ToolKey[],
): Promise<Ranked[]> {
  if (ranks.length === 0) return [];
  const isByTool = ranks[0]?.tool !== '';
  const sums = new Map(
    ranks.map(({ slug, tool }) => {
      const zero: Ranked = { slug, tool, calls: 0, errors: 0, durations: durationBuckets.map(() => 0) };
      return [`${slug}\n${tool}`, zero];
    }),
  );
  const pairs = sql.join(ranks.map(({ slug, tool }) => sql`${`${slug} ${tool}`}`));
  for (const range of ranges) {
    const query = selectToolCounts(db, { ...scope, slugs: [...new Set(ranks.map(({ slug }) => slug))] }, range);
    const counts = query.select(['slug', 'tool', 'calls', 'errors', 'durations']);
    // Uses one text for both columns. By tool name, SQLite would read the tools of all servers.
    const toolCounts = counts.where(sql<boolean>`slug || ' ' || tool in (${pairs})`);
    const rows: Summed<{ slug: string; tool?: string }>[] = isByTool
      ? await sumBy<ToolKey>(db, sql`${toolCounts}`, ['slug', 'tool'])
      : await sumBy<{ slug: string }>(db, sql`${counts}`, ['slug']);
    for (const row of rows) {
      const sum = sums.get(`${row.slug}\n${row.tool ?? ''}`);
      if (!sum) continue;
      const { calls, errors, durations } = row;
      sum.calls += calls;
      sum.errors += errors;
      sum.durations = sum.durations.map((previous, index) => previous + (durations[index] ?? 0));
    }
  }
  return [...sums.values()].sort(compareByCalls);
}
