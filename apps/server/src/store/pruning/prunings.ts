import { remainderRetentionMs } from '@toolhost/tool-config/read-more';
import { type Kysely, sql } from 'kysely';
import { notificationRetentionMs } from '../../notification-events.ts';
import { pruneAuditEvents } from '../audit-events.ts';
import { minuteCountsRetentionMs } from '../calls/call-statistics.ts';
import { dayMs, hourMs, minuteMs } from '../calls/call-writer.ts';
import { captureRetentionMs, pruneCaptures } from '../calls/captures.ts';
import { pruneFiles } from '../calls/files.ts';
import { pruneResultChunks } from '../calls/result-chunks.ts';
import { pruneUsage } from '../calls/usage.ts';
import { changesRetentionMs, pruneChanges } from '../changes/follow-changes.ts';
import { processRetentionMs, pruneProcesses } from '../changes/processes.ts';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';
import { pruneNotifications } from '../notifications.ts';
import { invitationLifetimeMs } from '../people/members.ts';
import { pruneSessions } from '../people/sessions.ts';
import { pruneSignInLinks } from '../people/sign-in-links.ts';
import type { Tables } from '../schema.ts';
import { clientTokenRetentionMs, pruneClientTokens } from '../servers/client-tokens.ts';
import { pruneDeletedServers, restorePeriodMs } from '../servers/deleted-servers.ts';
import { pruneQuotaUse } from '../workspaces.ts';
import { type LoginEndingOptions, maxLoginBytesPerWorkspace, pruneEndedGrants, pruneOAuth } from './prune-logins.ts';
import { maxEndedKeys, pruneInvitations, pruneKeys, pruneKeysOverLimit, prunePeople } from './prune-people.ts';

/** Time until the next round. Rows that would expire before it are deleted in this round. */
export const pruneIntervalMs = hourMs;

/** Round of pruning. Times are database times. No request waits for `records`. */
export type PruneRound = {
  db: Kysely<Tables>;
  records: Db;
  now: number;
  /** Time from which call records and audit events are retained. */
  callsRetainedFrom: number;
  auditRetainedFrom: number;
  pause: Pause;
  onLoginsEnded: LoginEndingOptions['onEnded'];
};

type PruneTask = readonly [tables: readonly (keyof Tables)[], prune: (round: PruneRound) => Promise<unknown>];

/** Tables whose rows are deleted after a time. `storage-bounds.test.ts` lists the bound of every table. */
export const pruneTasks: readonly PruneTask[] = [
  [['calls'], ({ records, callsRetainedFrom, pause }) => pruneCalls(records, callsRetainedFrom, pause)],
  [
    ['call_counts'],
    ({ records, now, callsRetainedFrom, pause }) =>
      pruneCounts(records, now - minuteCountsRetentionMs - hourMs, callsRetainedFrom - dayMs, pause),
  ],
  [['usage_counts'], ({ records, callsRetainedFrom, pause }) => pruneUsage(records, callsRetainedFrom - dayMs, pause)],
  [
    ['captures'],
    ({ records, now, pause }) => pruneCaptures(records, now - captureRetentionMs + pruneIntervalMs, pause),
  ],
  [['result_chunks'], ({ records, now, pause }) => pruneResultChunks(records, now - remainderRetentionMs, pause)],
  [['files', 'file_chunks'], ({ records, now, pause }) => pruneFiles(records, now, pause)],
  [['call_quota_use'], ({ records, now, pause }) => pruneQuotaUse(records, now, pause)],
  [
    ['servers', 'secrets', 'person_values', 'server_versions', 'imports', 'import_checks'],
    ({ records, now, pause }) => pruneDeletedServers(records, now - restorePeriodMs, now, pause),
  ],
  [['changes'], ({ records, now, pause }) => pruneChanges(records, now - changesRetentionMs, pause)],
  [['processes'], ({ records, now }) => pruneProcesses(records, now - processRetentionMs)],
  [
    ['authorizations', 'codes', 'tokens', 'passthrough_tokens'],
    ({ records, now, pause, onLoginsEnded: onEnded }) => pruneOAuth(records, dayMs, { now, pause, onEnded }),
  ],
  [
    ['grants'],
    ({ records, auditRetainedFrom, pause }) =>
      pruneEndedGrants(records, auditRetainedFrom, maxLoginBytesPerWorkspace, pause),
  ],
  [['client_tokens'], ({ records, now, pause }) => pruneClientTokens(records, now - clientTokenRetentionMs, pause)],
  [['sessions'], ({ records, now, pause }) => pruneSessions(records, now, pause)],
  [['sign_in_links'], ({ records, now, pause }) => pruneSignInLinks(records, now, pause)],
  [['invitations'], ({ records, now, pause }) => pruneInvitations(records, now - invitationLifetimeMs, pause)],
  [
    ['api_keys'],
    async ({ records, now, auditRetainedFrom, pause }) => {
      await pruneKeys(records, auditRetainedFrom, pause);
      await pruneKeysOverLimit(records, now, maxEndedKeys, pause);
    },
  ],
  [['notifications'], ({ records, now, pause }) => pruneNotifications(records, now - notificationRetentionMs, pause)],
  [['audit_events'], ({ records, auditRetainedFrom, pause }) => pruneAuditEvents(records, auditRetainedFrom, pause)],
  [['workspaces', 'members', 'users'], ({ db, auditRetainedFrom, pause }) => prunePeople(db, auditRetainedFrom, pause)],
];

// No query here takes a workspace. A workspace without recent calls costs nothing.

/** Deletes calls that started before `before`. Returns their number. */
export async function pruneCalls(db: Db, before: number, pause?: Pause): Promise<number> {
  return deleteInSteps(db, { table: 'calls', key: ['id'], where: sql`started_at < ${before}` }, pause);
}

/** Deletes per-minute counts older than `minutesFrom`, and all counts older than `from`. */
export async function pruneCounts(db: Db, minutesFrom: number, from: number, pause?: Pause): Promise<void> {
  const key = ['workspace_id', 'width', 'slug', 'tool', 'at'];
  for (const [width, before] of [
    [minuteMs, minutesFrom],
    [dayMs, from],
  ] as const) {
    const where = sql`width = ${width} and at < ${before}`;
    await deleteInSteps(db, { table: 'call_counts', key, where }, pause);
  }
}
