import type { Notice, NoticeEvent } from '../../domain/notices.ts';
import { type Quotas, quotaKinds, quotaNames } from '../../domain/quotas.ts';
import { dayMs, minuteMs, startOf } from '../../store/calls/call-writer.ts';
import type { Db } from '../../store/db.ts';
import {
  brokenLogins,
  checkedServers,
  type EndedCall,
  expiringKeys,
  newestCalls,
  troubledServers,
  unusedKeys,
  usedCallQuotas,
} from '../../store/notice-causes.ts';
import { findSetQuotas } from '../../store/workspaces.ts';
import { changesText } from '../import-changes.ts';
import { usedIn } from '../quotas/quotas.ts';

/** The workspace that is checked, with the current time of the database. */
export type LookedAt = { db: Db; workspaceId: string; now: number; defaultQuotas: Quotas };

const leastCalls = 20;
/**
 * Time spans to check. Two minutes reveal an upstream that has just begun to fail, ten minutes one that has few calls.
 */
const spansMs = [2 * minuteMs, 10 * minuteMs];
const expiringMs = 7 * dayMs;
const unusedMs = 90 * dayMs;
const nearPercent = 80;

/** Finds servers whose upstreams fail. */
export async function failures({ db, workspaceId, now }: LookedAt): Promise<Notice[]> {
  const found = new Map<string, Notice>();
  for (const spanMs of spansMs) {
    const from = now - spanMs;
    const troubled = await troubledServers(db, workspaceId, { from, least: leastCalls });
    if (troubled.length === 0) continue;
    for (const [slug, calls] of await newestCalls(db, workspaceId, troubled, startOf(from, minuteMs))) {
      const failed = calls.filter(isOfUpstream).length;
      if (failed * 2 <= calls.length || failed * 2 <= leastCalls) continue;
      const text = `The API of ${slug} is failing: ${failed} of ${calls.length} calls failed since ${timeText(from)}.`;
      found.set(slug, { event: 'upstream.failing', subject: slug, text, dedupe: daily(now, 'upstream.failing', slug) });
    }
  }
  return [...found.values()];
}

/** Returns true if a call failed because of the upstream or of the credential that is stored for it. */
function isOfUpstream({ outcome, upstream_status: status, caller_kind }: EndedCall): boolean {
  if (outcome !== 'upstream_status')
    return ['timeout', 'unreachable', 'malformed', 'circuit_open', 'redirect'].includes(outcome);
  const isRefused = status === 401 || status === 403;
  return (status ?? 0) >= 500 || status === 429 || (isRefused && caller_kind === 'api_key');
}

/** Finds all causes of notifications that change slowly. */
export async function slowCauses(watched: LookedAt): Promise<Notice[]> {
  const { db, workspaceId, now } = watched;
  const expiring = await expiringKeys(db, workspaceId, { now, ms: expiringMs });
  const unused = await unusedKeys(db, workspaceId, { now, before: now - unusedMs });
  const broken = await brokenLogins(db, workspaceId, now - dayMs);
  const changed = (await checkedServers(db, workspaceId)).filter(({ counts }) => changesText(counts) !== '');
  return [
    ...expiring.map(({ id, name, expiresAt }) =>
      once('key.expiring', id, `The API key “${name}” expires on ${timeText(expiresAt)}.`, String(expiresAt)),
    ),
    ...unused.map(({ id, name }) => once('key.unused', id, `The API key “${name}” was not used for 90 days.`)),
    ...broken.map(({ slug, logins }) => {
      const what = logins === 1 ? 'A login' : `${logins} logins`;
      const text = `${what} at ${slug} ended: the provider no longer accepts ${logins === 1 ? 'it' : 'them'}.`;
      return { event: 'login.ended' as const, subject: slug, text, dedupe: daily(now, 'login.ended', slug) };
    }),
    ...changed.map(({ id, slug, counts, documentHash }) =>
      once(
        'description.changed',
        slug,
        `The description of ${slug} has changed: ${changesText(counts)}.`,
        `${id} ${documentHash}`,
      ),
    ),
    ...(await nearQuotas(watched)),
  ];
}

/**
 * Creates a notification that is sent once while it is stored; `notice-causes.ts` finds what was already sent about
 * keys.
 */
function once(event: NoticeEvent, subject: string, text: string, more = ''): Notice {
  return { event, subject, text, dedupe: `${event} ${subject} ${more}` };
}

const daily = (now: number, event: NoticeEvent, subject: string) => `${event} ${subject} ${startOf(now, dayMs)}`;

async function nearQuotas({ db, workspaceId, now, defaultQuotas }: LookedAt): Promise<Notice[]> {
  const set = await findSetQuotas(db, workspaceId);
  const used = await usedIn(db, workspaceId, now);
  const stored = quotaNames.flatMap((name) => {
    const quota = set[name] ?? defaultQuotas[name];
    const isCounted = name !== 'writes' && quota > 0;
    return isCounted ? [{ subject: name, what: quotaKinds[name].what, used: used[name] ?? 0, quota }] : [];
  });
  const day = startOf(now, dayMs);
  const calls = (await usedCallQuotas(db, workspaceId, { day, share: nearPercent })).map(({ kind, name, ...use }) => ({
    subject: `calls of ${kind === 'workspace' ? 'the workspace' : name}`,
    what: `calls per day of ${kind === 'workspace' ? 'the workspace' : `the ${kind} “${name}”`}`,
    used: use.calls,
    quota: use.quota,
  }));
  return [...stored, ...calls]
    .filter((one) => one.used * 100 >= one.quota * nearPercent)
    .map(({ subject, what, used: now_, quota }) => ({
      event: 'quota.near' as const,
      subject,
      text: `${Math.floor(now_).toLocaleString('en')} of ${quota.toLocaleString('en')} ${what} are used.`,
      dedupe: daily(now, 'quota.near', subject),
    }));
}

function timeText(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
