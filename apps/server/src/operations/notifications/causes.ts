import type { NotificationEvent, WorkspaceNotification } from '../../notification-events.ts';
import { type Quotas, quotaKinds, quotaNames } from '../../quotas.ts';
import { dayMs, minuteMs, startOfPeriod } from '../../store/calls/call-writer.ts';
import type { Db } from '../../store/db.ts';
import {
  countBrokenLogins,
  type EndedCall,
  findChangedServers,
  findExpiringKeys,
  findFailingServers,
  findNewestCalls,
  findUnusedKeys,
  findUsedCallQuotas,
} from '../../store/notification-causes.ts';
import { findSetQuotas } from '../../store/workspaces.ts';
import { formatImportChanges } from '../import-changes.ts';
import { getQuotaUsage } from '../quotas/quotas.ts';

/** The workspace that is checked, with the current time of the database. */
export type CheckedWorkspace = { db: Db; workspaceId: string; now: number; defaultQuotas: Quotas };

/** Fewer calls do not show that an upstream is failing. */
const minCalls = 20;
/**
 * Time spans to check. Two minutes reveal an upstream that has just begun to fail, ten minutes one that has few calls.
 */
const spansMs = [2 * minuteMs, 10 * minuteMs];
/** Thresholds for events: time before the expiry of a key, time since its last use, and use of a quota. */
const expiringMs = 7 * dayMs;
const unusedMs = 90 * dayMs;
const nearPercent = 80;

/** Finds servers whose upstreams fail. */
export async function findFailures({ db, workspaceId, now }: CheckedWorkspace): Promise<WorkspaceNotification[]> {
  const notifications = new Map<string, WorkspaceNotification>();
  for (const spanMs of spansMs) {
    const from = now - spanMs;
    const slugs = await findFailingServers(db, workspaceId, { from, minCalls });
    if (slugs.length === 0) continue;
    for (const [slug, calls] of await findNewestCalls(db, workspaceId, slugs, startOfPeriod(from, minuteMs))) {
      const failed = calls.filter(isUpstreamFailure).length;
      if (failed * 2 <= calls.length || failed * 2 <= minCalls) continue;
      const text = `The API of ${slug} is failing: ${failed} of ${calls.length} calls failed since ${formatTime(from)}.`;
      notifications.set(slug, {
        event: 'upstream.failing',
        subject: slug,
        text,
        dedupe: getDailyKey(now, 'upstream.failing', slug),
      });
    }
  }
  return [...notifications.values()];
}

/** Returns true if a call failed because of the upstream or of the credential that is stored for it. */
function isUpstreamFailure({ outcome, upstream_status: status, caller_kind }: EndedCall): boolean {
  if (outcome !== 'upstream_status')
    return ['timeout', 'unreachable', 'malformed', 'circuit_open', 'redirect'].includes(outcome);
  const isRefused = status === 401 || status === 403;
  return (status ?? 0) >= 500 || status === 429 || (isRefused && caller_kind === 'api_key');
}

/** Finds all causes of notifications that change slowly. */
export async function findSlowCauses(workspace: CheckedWorkspace): Promise<WorkspaceNotification[]> {
  const { db, workspaceId, now } = workspace;
  const expiring = await findExpiringKeys(db, workspaceId, { now, withinMs: expiringMs });
  const unused = await findUnusedKeys(db, workspaceId, { now, unusedSince: now - unusedMs });
  const broken = await countBrokenLogins(db, workspaceId, now - dayMs);
  const changed = (await findChangedServers(db, workspaceId)).filter(
    ({ counts }) => formatImportChanges(counts) !== '',
  );
  return [
    ...expiring.map(({ id, name, expiresAt }) =>
      createOneTimeNotification(
        'key.expiring',
        id,
        `The API key “${name}” expires on ${formatTime(expiresAt)}.`,
        String(expiresAt),
      ),
    ),
    ...unused.map(({ id, name }) =>
      createOneTimeNotification('key.unused', id, `The API key “${name}” was not used for 90 days.`),
    ),
    ...broken.map(({ slug, logins }) => {
      const subjectText = logins === 1 ? 'A login' : `${logins} logins`;
      const text = `${subjectText} at ${slug} ended: the provider no longer accepts ${logins === 1 ? 'it' : 'them'}.`;
      return { event: 'login.ended' as const, subject: slug, text, dedupe: getDailyKey(now, 'login.ended', slug) };
    }),
    ...changed.map(({ id, slug, counts, documentHash }) =>
      createOneTimeNotification(
        'description.changed',
        slug,
        `The description of ${slug} has changed: ${formatImportChanges(counts)}.`,
        `${id} ${documentHash}`,
      ),
    ),
    ...(await findNearQuotas(workspace)),
  ];
}

/** Creates a notification that is sent once while it is stored. `selectUnnotifiedKeys` builds the same `dedupe`. */
function createOneTimeNotification(
  event: NotificationEvent,
  subject: string,
  text: string,
  variant = '',
): WorkspaceNotification {
  return { event, subject, text, dedupe: `${event} ${subject} ${variant}` };
}

const getDailyKey = (now: number, event: NotificationEvent, subject: string) =>
  `${event} ${subject} ${startOfPeriod(now, dayMs)}`;

async function findNearQuotas({
  db,
  workspaceId,
  now,
  defaultQuotas,
}: CheckedWorkspace): Promise<WorkspaceNotification[]> {
  const configured = await findSetQuotas(db, workspaceId);
  const used = await getQuotaUsage(db, workspaceId, now);
  const storage = quotaNames.flatMap((name) => {
    const quota = configured[name] ?? defaultQuotas[name];
    const isCounted = name !== 'writes' && quota > 0;
    return isCounted ? [{ subject: name, noun: quotaKinds[name].description, used: used[name] ?? 0, quota }] : [];
  });
  const dayStart = startOfPeriod(now, dayMs);
  const calls = (await findUsedCallQuotas(db, workspaceId, { dayStart, minPercent: nearPercent })).map(
    ({ kind, name, ...use }) => ({
      subject: `calls of ${kind === 'workspace' ? 'the workspace' : name}`,
      noun: `calls per day of ${kind === 'workspace' ? 'the workspace' : `the ${kind} “${name}”`}`,
      used: use.calls,
      quota: use.quota,
    }),
  );
  return [...storage, ...calls]
    .filter((usage) => usage.used * 100 >= usage.quota * nearPercent)
    .map(({ subject, noun, used: usedCount, quota }) => ({
      event: 'quota.near' as const,
      subject,
      text: `${Math.floor(usedCount).toLocaleString('en')} of ${quota.toLocaleString('en')} ${noun} are used.`,
      dedupe: getDailyKey(now, 'quota.near', subject),
    }));
}

function formatTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
