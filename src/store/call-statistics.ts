import { type RawBuilder, sql } from 'kysely';
import { durationClasses } from '../domain/duration-classes.ts';
import { classColumns, dayMs, hourMs, minuteMs, startOf } from './call-counts.ts';
import type { Db } from './database.ts';

/** Which calls are asked for: those of one workspace from `from` up to, but not at, `until` (epoch ms, whole minutes). */
export type CallScope = {
  workspaceId: string;
  from: number;
  until: number;
  /** These servers alone. */
  slugs?: readonly string[];
  tool?: string;
};

export type Counts = { calls: number; errors: number };
/** `durations` has the number of calls of each class. */
export type CountedCalls = Counts & { durations: number[] };

/**
 * Counts by the minute are kept for this long; those by the hour and the day for as long as call records. A time that
 * begins before it has to begin and end with a whole hour.
 */
export const minutesKeptMs = 3 * dayMs;

/** Whether every call of a workspace is counted: those that an older version recorded are counted bit by bit. */
export async function isAllCounted(db: Db, workspaceId: string): Promise<boolean> {
  const query = db.selectFrom('calls').select('id').where('workspace_id', '=', workspaceId);
  return (await query.where('counted', 'is', null).limit(1).executeTakeFirst()) === undefined;
}

type Part = { width: number; from: number; until: number };

/** The fewest minutes, hours and days that make up a time. */
export function partsOf(from: number, until: number): Part[] {
  const [firstDay, lastDay] = [startOf(from + dayMs - 1, dayMs), startOf(until, dayMs)];
  const [firstHour, lastHour] = [startOf(from + hourMs - 1, hourMs), startOf(until, hourMs)];
  if (firstHour > lastHour) return [{ width: minuteMs, from, until }];
  const inner: Part[] =
    firstDay > lastDay
      ? [{ width: hourMs, from: firstHour, until: lastHour }]
      : [
          { width: hourMs, from: firstHour, until: firstDay },
          { width: dayMs, from: firstDay, until: lastDay },
          { width: hourMs, from: lastDay, until: lastHour },
        ];
  const parts = [{ width: minuteMs, from, until: firstHour }, ...inner, { width: minuteMs, from: lastHour, until }];
  return parts.filter((part) => part.from < part.until);
}

/** No server has it: for those who may see none. */
const noSlug = '-';

/** The counts of tools. */
function countsOfTools(db: Db, scope: CallScope, part: Part) {
  let query = db
    .selectFrom('call_counts')
    .where('workspace_id', '=', scope.workspaceId)
    .where('width', '=', part.width)
    .where('at', '>=', part.from)
    .where('at', '<', part.until);
  query = scope.slugs ? query.where('slug', 'in', [...scope.slugs, noSlug]) : query.where('slug', '<>', '');
  return scope.tool === undefined ? query : query.where('tool', '=', scope.tool);
}

/** The counts of which the sum is asked for: those of the whole workspace where that is the same. */
function countsOfScope(db: Db, scope: CallScope, part: Part) {
  if (scope.slugs || scope.tool !== undefined) return countsOfTools(db, scope, part);
  return db
    .selectFrom('call_counts')
    .where('workspace_id', '=', scope.workspaceId)
    .where('width', '=', part.width)
    .where('at', '>=', part.from)
    .where('at', '<', part.until)
    .where('slug', '=', '')
    .where('tool', '=', '');
}

const sumOf = (column: string) => sql<number>`cast(sum(${sql.ref(column)}) as bigint)`;
const sums = [
  ...(['calls', 'errors'] as const).map((column) => sumOf(column).as(column)),
  ...classColumns.map((column) => sumOf(column).as(column)),
];

type SummedRow = Counts & { [column in (typeof classColumns)[number]]?: number };

function countedIn(row: SummedRow): CountedCalls {
  return { calls: row.calls, errors: row.errors, durations: classColumns.map((column) => row[column] ?? 0) };
}

/** Start of the interval of `widthMs`, counted from `origin`. `%` is whole on every engine, `/` is not. */
function intervalStart(origin: number, widthMs: number): RawBuilder<number> {
  return sql<number>`at - (at - ${sql.lit(origin)}) % ${sql.lit(widthMs)}`;
}

/** Calls by interval of `widthMs`, which is of whole minutes; intervals without any are left out. */
export async function countByInterval(
  db: Db,
  scope: CallScope,
  widthMs: number,
): Promise<(CountedCalls & { at: number })[]> {
  const { from, until } = scope;
  const width = [dayMs, hourMs].find((wide) => from % wide === 0 && widthMs % wide === 0 && until % wide === 0);
  const rows = await countsOfScope(db, scope, { width: width ?? minuteMs, from, until })
    .select(intervalStart(from, widthMs).as('interval'))
    .select(sums)
    .groupBy('interval')
    .execute();
  return rows.map((row) => ({ at: row.interval, ...countedIn(row) }));
}

/** Calls of servers by interval, as above, without how long they took. */
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

export type Ranked = CountedCalls & { slug: string; tool: string };

/** The servers (their `tool` is empty) and the tools that were called most, `most` of each, most called first. */
export async function mostCalled(
  db: Db,
  scope: CallScope,
  most: number,
): Promise<{ servers: Ranked[]; tools: Ranked[] }> {
  const parts = partsOf(scope.from, scope.until);
  const ranks = await ranking(db, scope, parts, most);
  const servers = ranks.filter(({ tool }) => tool === '');
  const tools = ranks.filter(({ tool }) => tool !== '');
  return {
    servers: await withDurations(db, scope, parts, servers),
    tools: await withDurations(db, scope, parts, tools),
  };
}

type Rank = Counts & { slug: string; tool: string };

async function ranking(db: Db, scope: CallScope, parts: readonly Part[], most: number): Promise<Rank[]> {
  const queries = parts.map((part) => countsOfTools(db, scope, part).select(['slug', 'tool', 'calls', 'errors']));
  const counted = queries.slice(1).reduce((all, query) => all.unionAll(query), queries[0] as (typeof queries)[number]);
  const { rows } = await sql<Rank>`
    with counted as materialized (
      select slug, tool, sum(calls) as calls, sum(errors) as errors from ${counted} as parts group by slug, tool
    )
    select slug, tool, cast(calls as bigint) as calls, cast(errors as bigint) as errors
    from (select * from counted order by calls desc, slug, tool limit ${sql.lit(most)}) as tools
    union all
    select slug, '' as tool, cast(calls as bigint) as calls, cast(errors as bigint) as errors
    from (
      select slug, sum(calls) as calls, sum(errors) as errors from counted
      group by slug order by calls desc, slug limit ${sql.lit(most)}
    ) as servers`.execute(db);
  return rows.toSorted((a, b) => b.calls - a.calls || (a.slug < b.slug ? -1 : 1) || (a.tool < b.tool ? -1 : 1));
}

/** Sums up how long the calls of servers, or of tools, took. */
async function withDurations(
  db: Db,
  scope: CallScope,
  parts: readonly Part[],
  ranks: readonly Rank[],
): Promise<Ranked[]> {
  if (ranks.length === 0) return [];
  const isOfTools = ranks[0]?.tool !== '';
  const found = new Map(ranks.map((rank) => [`${rank.slug}\n${rank.tool}`, durationClasses.map(() => 0)]));
  const pairs = sql.join(ranks.map(({ slug, tool }) => sql`(${slug}, ${tool})`));
  for (const part of parts) {
    const query = countsOfTools(db, { ...scope, slugs: [...new Set(ranks.map(({ slug }) => slug))] }, part);
    const rows = isOfTools
      ? await query
          .where(sql<boolean>`(slug, tool) in (values ${pairs})`)
          .select(['slug', 'tool'])
          .select(sums)
          .groupBy(['slug', 'tool'])
          .execute()
      : await query
          .select(['slug', sql<string>`''`.as('tool')])
          .select(sums)
          .groupBy('slug')
          .execute();
    for (const row of rows) {
      const durations = found.get(`${row.slug}\n${row.tool}`);
      countedIn(row).durations.forEach((calls, index) => {
        if (durations) durations[index] = (durations[index] ?? 0) + calls;
      });
    }
  }
  return ranks.map((rank) => ({ ...rank, durations: found.get(`${rank.slug}\n${rank.tool}`) ?? [] }));
}
