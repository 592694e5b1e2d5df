import { sql } from 'kysely';
import type { Db } from './database.ts';

/** Which calls are counted: those of one workspace from `from` up to, but not at, `until` (epoch ms). */
export type CallScope = {
  workspaceId: string;
  from: number;
  until: number;
  /** One server alone. */
  serverId?: string;
  /** These servers alone. */
  slugs?: readonly string[];
  tool?: string;
};

/** No question looks at more calls than this, so that none holds up the database, or with SQLite the process. */
const maxCounted = 500_000;

/** The calls of a scope, which its index finds. */
function callsOf(db: Db, scope: CallScope) {
  let query = db
    .selectFrom('calls')
    .where('workspace_id', '=', scope.workspaceId)
    .where('started_at', '>=', scope.from)
    .where('started_at', '<', scope.until);
  if (scope.serverId !== undefined) query = query.where('server_id', '=', scope.serverId);
  if (scope.slugs) query = query.where('slug', 'in', [...scope.slugs, '']);
  if (scope.tool !== undefined) query = query.where('tool', '=', scope.tool);
  return query;
}

/** The scope without the calls that are too many to count: the newest stay. */
export async function countable(
  db: Db,
  scope: CallScope,
  most = maxCounted,
): Promise<{ scope: CallScope; complete: boolean }> {
  const first = await callsOf(db, scope)
    .select('started_at')
    .orderBy('started_at', 'desc')
    .offset(most)
    .limit(1)
    .executeTakeFirst();
  return first ? { scope: { ...scope, from: first.started_at + 1 }, complete: false } : { scope, complete: true };
}

/** Start of the interval of `widthMs`, counted from `origin`, that a call began in. `%` is whole on every engine, `/` is not. */
function intervalStart(origin: number, widthMs: number) {
  return sql<number>`started_at - (started_at - ${origin}) % ${widthMs}`;
}

const failures = sql`case when outcome <> 'ok' then 1 end`;

/** Calls and those of them that failed, by server and interval. */
export async function countByServer(
  db: Db,
  scope: CallScope,
  origin: number,
  widthMs: number,
): Promise<{ slug: string; at: number; calls: number; errors: number }[]> {
  return callsOf(db, scope)
    .select(['slug', intervalStart(origin, widthMs).as('at')])
    .select((e) => [e.fn.countAll<number>().as('calls'), e.fn.count<number>(failures).as('errors')])
    .groupBy(['slug', 'at'])
    .execute();
}

/**
 * Durations are counted in classes, each a twentieth of its lower bound wide: below 40 ms one millisecond, from there
 * to 80 ms two, and so on. So percentiles come from every call without sorting or sending any; they are exact below
 * 40 ms and within 2.5 % above.
 */
const classWidths = Array.from({ length: 12 }, (_, n) => ({ below: 40 * 2 ** n, width: 2 ** n }));
const widestClass = 2 ** classWidths.length;
const durationClass = sql<number>`duration_ms - duration_ms % (case ${sql.join(
  classWidths.map(({ below, width }) => sql`when duration_ms < ${sql.lit(below)} then ${sql.lit(width)}`),
  sql` `,
)} else ${sql.lit(widestClass)} end)`;

/** The middle of the class that begins at `lower`. */
export function middleOfClass(lower: number): number {
  const width = classWidths.find(({ below }) => lower < below)?.width ?? widestClass;
  return lower + Math.floor(width / 2);
}

/** Calls that took about as long as each other. `lower` is the least duration of their class, in ms. */
export type DurationCount = { lower: number; calls: number; errors: number };

export async function durationsByInterval(
  db: Db,
  scope: CallScope,
  origin: number,
  widthMs: number,
): Promise<(DurationCount & { at: number })[]> {
  return callsOf(db, scope)
    .select([intervalStart(origin, widthMs).as('at'), durationClass.as('lower')])
    .select((e) => [e.fn.countAll<number>().as('calls'), e.fn.count<number>(failures).as('errors')])
    .groupBy(['at', 'lower'])
    .execute();
}

export async function durationsByTool(
  db: Db,
  scope: CallScope,
): Promise<(DurationCount & { slug: string; tool: string })[]> {
  return callsOf(db, scope)
    .select(['slug', 'tool', durationClass.as('lower')])
    .select((e) => [e.fn.countAll<number>().as('calls'), e.fn.count<number>(failures).as('errors')])
    .groupBy(['slug', 'tool', 'lower'])
    .execute();
}
