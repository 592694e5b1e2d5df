import { type RawBuilder, sql } from 'kysely';
import { durationClasses } from '../../domain/duration-classes.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import type { Db } from '../db.ts';
import { dayMs, minuteMs, startOf } from './call-writer.ts';

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
export const minutesKeptMs = 3 * dayMs;

type Part = { width: number; from: number; until: number };

/** Splits a period into the smallest number of minute and day ranges. */
export function partsOf(from: number, until: number): Part[] {
  const [firstDay, lastDay] = [startOf(from + dayMs - 1, dayMs), startOf(until, dayMs)];
  if (firstDay >= lastDay) return [{ width: minuteMs, from, until }];
  const parts: Part[] = [
    { width: minuteMs, from, until: firstDay },
    { width: dayMs, from: firstDay, until: lastDay },
    { width: minuteMs, from: lastDay, until },
  ];
  return parts.filter((part) => part.from < part.until);
}

/** Slug that no server has, for callers that may see no servers. */
const noSlug = '-';

function countsIn(db: Db, { workspaceId }: CallScope, { width, from, until }: Part) {
  return db
    .selectFrom('call_counts')
    .where('workspace_id', '=', workspaceId)
    .where('width', '=', width)
    .where('at', '>=', from)
    .where('at', '<', until);
}

/** Selects the counts of tools. */
function countsOfTools(db: Db, scope: CallScope, part: Part) {
  let query = countsIn(db, scope, part);
  const [slug = noSlug, ...more] = scope.slugs ?? [];
  if (!scope.slugs) query = query.where('slug', '<>', '');
  // SQLite reads the newest counts of one slug in index order, but not those of a list.
  else query = more.length === 0 ? query.where('slug', '=', slug) : query.where('slug', 'in', scope.slugs);
  return scope.tool === undefined ? query : query.where('tool', '=', scope.tool);
}

/** Selects the counts to sum. Uses those of the whole workspace if the sum is the same. */
function countsOfScope(db: Db, scope: CallScope, part: Part) {
  if (scope.slugs || scope.tool !== undefined) return countsOfTools(db, scope, part);
  return countsIn(db, scope, part).where('slug', '=', '').where('tool', '=', '');
}

const sumOf = (column: string) => sql<number>`cast(sum(${sql.ref(column)}) as bigint)`;

/** Sums by the columns of `Group`, such as a server. */
type Summed<Group> = Group & CountedCalls;

/** Sums counts by the columns of `groups`. `counts` must have these columns, calls, errors, and durations. */
async function sumsBy<Group extends object>(
  db: Db,
  counts: RawBuilder<unknown>,
  groups: readonly (keyof Group & string)[],
): Promise<Summed<Group>[]> {
  const columns = sql.join(groups.map((group) => sql.ref(group)));
  const { rows } = await sql<Group & Counts & { classes: string }>`
    select ${columns}, ${sumOf('calls')} as calls, ${sumOf('errors')} as errors, string_agg(durations, '') as classes
    from ${counts} as counted group by ${columns}`.execute(db);
  const summed: Summed<Group>[] = [];
  let read = 0;
  for (const { classes, ...row } of rows) {
    read += classes.length;
    if (read >= readAtOnce) {
      read = 0;
      await nextTurn();
    }
    summed.push({ ...(row as Group & Counts), durations: await sumOfClasses(classes) });
  }
  return summed;
}

const [comma, colon, brace] = [...',:}'].map((sign) => sign.charCodeAt(0));

/** Number of characters that are parsed between yields to the event loop; takes a few milliseconds. */
const readAtOnce = 500_000;

/**
 * Sums texts of classes, such as `{"3":1,"7":2}{"3":1}`. Parsed here, because databases take ten times as long. Yields
 * to the event loop, because three days of a server with a thousand tools may be tens of MB.
 */
async function sumOfClasses(texts: string): Promise<number[]> {
  const durations = durationClasses.map(() => 0);
  let [durationClass, number] = [0, 0];
  for (let index = 0; index < texts.length; index++) {
    if (index % readAtOnce === readAtOnce - 1) await nextTurn();
    const code = texts.charCodeAt(index);
    if (code >= 48 && code <= 57) number = number * 10 + code - 48;
    else if (code === colon) [durationClass, number] = [number, 0];
    else if (code === comma || code === brace) {
      durations[durationClass] = (durations[durationClass] ?? 0) + number;
      number = 0;
    }
  }
  return durations;
}

/**
 * Returns the start of the interval of `widthMs`, counted from `origin`. `%` is an integer operation on every engine,
 * `/` is not.
 */
function intervalStart(origin: number, widthMs: number): RawBuilder<number> {
  return sql<number>`at - (at - ${sql.lit(origin)}) % ${sql.lit(widthMs)}`;
}

/** Returns the widest counted period that evenly divides the intervals. */
function widthFor({ from, until }: CallScope, widthMs: number): number {
  return [from, widthMs, until].every((each) => each % dayMs === 0) ? dayMs : minuteMs;
}

/** Counts calls by interval of `widthMs`, a multiple of a minute. Omits intervals without calls. */
export async function countByInterval(
  db: Db,
  scope: CallScope,
  widthMs: number,
): Promise<(CountedCalls & { at: number })[]> {
  const { from, until } = scope;
  const counts = countsOfScope(db, scope, { width: widthFor(scope, widthMs), from, until })
    .select(['calls', 'errors', 'durations'])
    .select(intervalStart(from, widthMs).as('interval'));
  const rows = await sumsBy<{ interval: number }>(db, sql`${counts}`, ['interval']);
  return rows.map(({ interval, ...row }) => ({ at: interval, ...row }));
}

/** Counts calls of servers by interval of `widthMs`, without durations. */
export async function countByServer(
  db: Db,
  scope: CallScope & { slugs: readonly string[] },
  widthMs: number,
): Promise<(Counts & { slug: string; at: number })[]> {
  const { from, until } = scope;
  const rows = await countsOfTools(db, scope, { width: minuteMs, from, until })
    .select(['slug', intervalStart(from, widthMs).as('interval')])
    .select([sumOf('calls').as('calls'), sumOf('errors').as('errors')])
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
  return countsOfTools(db, scope, { width: minuteMs, from, until })
    .select(['tool', sumOf('calls').as('calls'), sumOf('errors').as('errors')])
    .groupBy('tool')
    .execute();
}

/** Maximum number of counts of a tool, each with all duration classes, that are summed by interval. */
const summedAtOnce = 15_000;

/**
 * Returns the time from which the calls of a scope can be counted by interval. This is the scope's start, except for a
 * tool across all servers with more than `atOnce` counts. Then it is the first whole interval within the newest
 * `atOnce`.
 */
export async function countedFrom(db: Db, scope: CallScope, widthMs: number, atOnce = summedAtOnce): Promise<number> {
  const { from, until, slugs, tool } = scope;
  if (slugs || tool === undefined) return from;
  const width = widthFor(scope, widthMs);
  const query = countsOfTools(db, scope, { width, from, until }).select('at').orderBy('at', 'desc');
  const last = await query.offset(atOnce).limit(1).executeTakeFirst();
  return last === undefined ? from : from + Math.ceil((last.at + width - from) / widthMs) * widthMs;
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
export const comparedAtOnce = 40_000;

/** Returns the most-called servers and tools, `most` of each. */
export async function mostCalled(db: Db, scope: CallScope, most: number, atOnce = comparedAtOnce): Promise<MostCalled> {
  const parts = partsOf(scope.from, scope.until);
  const { ranks, from } = await ranking(db, scope, { parts, most, atOnce });
  const servers = ranks.filter(({ tool }) => tool === '');
  const tools = ranks.filter(({ tool }) => tool !== '');
  return {
    servers: await counted(db, scope, parts, servers),
    tools: await counted(db, scope, parts, tools),
    rankedFrom: from,
  };
}

type Named = { slug: string; tool: string };
type Rank = Named & { calls: number };
type Ranking = { parts: readonly Part[]; most: number; atOnce: number };

/** Ranks servers and tools by calls. Also returns the start of the compared period, if it was not the whole period. */
async function ranking(
  db: Db,
  scope: CallScope,
  { parts, most, atOnce }: Ranking,
): Promise<{ ranks: Named[]; from: number | undefined }> {
  const compared: RawBuilder<unknown>[] = [];
  let left = atOnce;
  let from: number | undefined;
  for (const part of parts.toReversed()) {
    const newest = countsOfTools(db, scope, part).select(['slug', 'tool', 'calls', 'at']).orderBy('at', 'desc');
    const counts = newest.limit(left);
    compared.push(sql`select slug, tool, calls from ${counts} as newest`);
    const { rows } = await sql<{ counts: number; first: number | null }>`
      select count(*) as counts, min(at) as first from ${counts} as newest`.execute(db);
    left -= rows[0]?.counts ?? 0;
    if (left > 0) continue;
    from = rows[0]?.first ?? part.until;
    break;
  }
  return { ranks: await mostOf(db, compared, most), from };
}

/** Ranks in the database, because a workspace may have tens of thousands of tools. */
async function mostOf(db: Db, compared: readonly RawBuilder<unknown>[], most: number): Promise<Named[]> {
  if (compared.length === 0) return [];
  const { rows } = await sql<Named>`
    with each_tool as (
      select slug, tool, cast(sum(calls) as bigint) as calls
      from (${sql.join(compared, sql` union all `)}) as compared group by slug, tool
    ), each_server as (
      select slug, '' as tool, cast(sum(calls) as bigint) as calls from each_tool group by slug
    )
    select slug, tool from (select * from each_server order by calls desc, slug limit ${most}) as most_servers
    union all
    select slug, tool from (select * from each_tool order by calls desc, slug, tool limit ${most}) as most_tools`.execute(
    db,
  );
  return rows;
}

function byCalls(a: Rank, b: Rank): number {
  return b.calls - a.calls || (a.slug < b.slug ? -1 : a.slug > b.slug ? 1 : a.tool < b.tool ? -1 : 1);
}

/** Sums the calls and durations of servers, or of tools. */
async function counted(db: Db, scope: CallScope, parts: readonly Part[], ranks: readonly Named[]): Promise<Ranked[]> {
  if (ranks.length === 0) return [];
  const isOfTools = ranks[0]?.tool !== '';
  const found = new Map(
    ranks.map(({ slug, tool }) => {
      const none: Ranked = { slug, tool, calls: 0, errors: 0, durations: durationClasses.map(() => 0) };
      return [`${slug}\n${tool}`, none];
    }),
  );
  const pairs = sql.join(ranks.map(({ slug, tool }) => sql`${`${slug} ${tool}`}`));
  for (const part of parts) {
    const query = countsOfTools(db, { ...scope, slugs: [...new Set(ranks.map(({ slug }) => slug))] }, part);
    const counts = query.select(['slug', 'tool', 'calls', 'errors', 'durations']);
    // Uses one text for both columns. By tool name, SQLite would read the tools of all servers.
    const ofTools = counts.where(sql<boolean>`slug || ' ' || tool in (${pairs})`);
    const rows: Summed<{ slug: string; tool?: string }>[] = isOfTools
      ? await sumsBy<Named>(db, sql`${ofTools}`, ['slug', 'tool'])
      : await sumsBy<{ slug: string }>(db, sql`${counts}`, ['slug']);
    for (const row of rows) {
      const sum = found.get(`${row.slug}\n${row.tool ?? ''}`);
      if (!sum) continue;
      const { calls, errors, durations } = row;
      sum.calls += calls;
      sum.errors += errors;
      sum.durations = sum.durations.map((before, index) => before + (durations[index] ?? 0));
    }
  }
  return [...found.values()].sort(byCalls);
}
