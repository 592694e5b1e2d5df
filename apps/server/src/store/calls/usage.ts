import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';
import type { UsageCount } from './call-writer.ts';

/** Usage of a workspace, or of some of its servers, in whole days (UTC) from `from` up to, but excluding, `until`. */
export type UsageScope = { workspaceId: string; from: number; until: number; slugs?: readonly string[] | undefined };

type Sum = { calls: number; errors: number };

const sumOfCalls = sql<number>`cast(sum(calls) as bigint)`;
const sumOfErrors = sql<number>`cast(sum(errors) as bigint)`;

function selectUsage(db: Db, { workspaceId, from, until, slugs }: UsageScope) {
  const query = db.selectFrom('usage_counts').where('workspace_id', '=', workspaceId);
  const inPeriod = query.where('at', '>=', from).where('at', '<', until);
  // Like `toSqlList`, but the slug is empty in the counts of the whole workspace. No server has the slug -.
  return slugs ? inPeriod.where('slug', 'in', [...slugs, '-']) : inPeriod;
}

const toNumbers = <Row extends Sum>(row: Row): Row => ({
  ...row,
  calls: Number(row.calls),
  errors: Number(row.errors),
});

export async function findUsageByDay(db: Db, scope: UsageScope): Promise<(Sum & { at: number })[]> {
  const query = selectUsage(db, scope)
    .select(['at', sumOfCalls.as('calls'), sumOfErrors.as('errors')])
    .groupBy('at');
  return (await query.orderBy('at').execute()).map(toNumbers);
}

/** Returns the usage by caller, most calls first. */
export async function findUsageByCaller(
  db: Db,
  scope: UsageScope,
  limit: number,
): Promise<(Sum & { slug: string; caller: string })[]> {
  const query = selectUsage(db, scope).select(['slug', 'caller', sumOfCalls.as('calls'), sumOfErrors.as('errors')]);
  const ordered = query.groupBy(['slug', 'caller']).orderBy(sumOfCalls, 'desc').orderBy('slug').orderBy('caller');
  return (await ordered.limit(limit).execute()).map(toNumbers);
}

/** Lists the usage by day, newest first. */
export async function listUsage(db: Db, scope: UsageScope, limit: number): Promise<UsageCount[]> {
  const query = selectUsage(db, scope).selectAll().orderBy('at', 'desc').orderBy('slug').orderBy('caller');
  return (await query.limit(limit).execute()).map(toNumbers);
}

/** Takes no workspace, because retention is the same for all. */
export async function pruneUsage(db: Db, before: number, pause?: Pause): Promise<void> {
  const key = ['workspace_id', 'at', 'slug', 'caller'];
  await deleteInSteps(db, { table: 'usage_counts', key, where: sql`at < ${before}` }, pause);
}
