import { type Kysely, sql } from 'kysely';
import { noticesKeptMs } from '../../domain/notices.ts';
import { restKeptMs } from '../../domain/pieces/read-more.ts';
import { pruneAuditEvents } from '../audit-events.ts';
import { pruneAnswerPieces } from '../calls/answer-pieces.ts';
import { minutesKeptMs } from '../calls/call-statistics.ts';
import { dayMs, hourMs, minuteMs } from '../calls/call-writer.ts';
import { captureKeptMs, pruneCaptures } from '../calls/captures.ts';
import { pruneFiles } from '../calls/files.ts';
import { pruneUsage } from '../calls/usage.ts';
import { changesKeptMs, pruneChanges } from '../changes/follow-changes.ts';
import { processesKeptMs, pruneProcesses } from '../changes/processes.ts';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';
import { pruneNotices } from '../notices.ts';
import { invitationsKeptMs } from '../people/members.ts';
import { pruneSessions } from '../people/sessions.ts';
import type { Tables } from '../schema.ts';
import { clientTokensKeptMs, pruneClientTokens } from '../servers/client-tokens.ts';
import { pruneDeletedServers, restorableMs } from '../servers/deleted-servers.ts';
import { pruneQuotaUse } from '../workspaces.ts';
import { type LoginEnding, mostBytesOfWorkspace, pruneEndedGrants, pruneOAuth } from './prune-logins.ts';
import { mostEndedKeys, pruneCrowdedKeys, pruneInvitations, pruneKeys, prunePeople } from './prune-people.ts';

/** Time until the next round. Rows that would expire before it are deleted in this round. */
export const roundMs = hourMs;

/** Round of pruning. Times are database times. No request waits for `records`. */
export type Round = {
  db: Kysely<Tables>;
  records: Db;
  now: number;
  /** Time from which call records and audit events are retained. */
  callsFrom: number;
  auditFrom: number;
  pause: Pause;
  onLoginsEnded: LoginEnding['onEnded'];
};

type Pruning = readonly [tables: readonly (keyof Tables)[], prune: (round: Round) => Promise<unknown>];

/** Tables whose rows are deleted after a time. `test/store/storage-bounds.test.ts` lists the bound of every table. */
export const prunings: readonly Pruning[] = [
  [['calls'], ({ records, callsFrom, pause }) => pruneCalls(records, callsFrom, pause)],
  [
    ['call_counts'],
    ({ records, now, callsFrom, pause }) =>
      pruneCounts(records, now - minutesKeptMs - hourMs, callsFrom - dayMs, pause),
  ],
  [['usage_counts'], ({ records, callsFrom, pause }) => pruneUsage(records, callsFrom - dayMs, pause)],
  [['captures'], ({ records, now, pause }) => pruneCaptures(records, now - captureKeptMs + roundMs, pause)],
  [['answer_pieces'], ({ records, now, pause }) => pruneAnswerPieces(records, now - restKeptMs, pause)],
  [['files', 'file_chunks'], ({ records, now, pause }) => pruneFiles(records, now, pause)],
  [['call_quota_use'], ({ records, now, pause }) => pruneQuotaUse(records, now, pause)],
  [
    ['servers', 'secrets', 'server_versions', 'imports', 'import_checks'],
    ({ records, now, pause }) => pruneDeletedServers(records, now - restorableMs, now, pause),
  ],
  [['changes'], ({ records, now, pause }) => pruneChanges(records, now - changesKeptMs, pause)],
  [['processes'], ({ records, now }) => pruneProcesses(records, now - processesKeptMs)],
  [
    ['authorizations', 'codes', 'tokens', 'handed_out_tokens'],
    ({ records, now, pause, onLoginsEnded: onEnded }) => pruneOAuth(records, dayMs, { now, pause, onEnded }),
  ],
  [['grants'], ({ records, auditFrom, pause }) => pruneEndedGrants(records, auditFrom, mostBytesOfWorkspace, pause)],
  [['client_tokens'], ({ records, now, pause }) => pruneClientTokens(records, now - clientTokensKeptMs, pause)],
  [['sessions'], ({ records, now, pause }) => pruneSessions(records, now, pause)],
  [['invitations'], ({ records, now, pause }) => pruneInvitations(records, now - invitationsKeptMs, pause)],
  [
    ['api_keys'],
    async ({ records, now, auditFrom, pause }) => {
      await pruneKeys(records, auditFrom, pause);
      await pruneCrowdedKeys(records, now, mostEndedKeys, pause);
    },
  ],
  [['notices'], ({ records, now, pause }) => pruneNotices(records, now - noticesKeptMs, pause)],
  [['audit_events'], ({ records, auditFrom, pause }) => pruneAuditEvents(records, auditFrom, pause)],
  [['workspaces', 'members', 'users'], ({ db, auditFrom, pause }) => prunePeople(db, auditFrom, pause)],
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
