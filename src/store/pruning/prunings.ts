import type { Kysely } from 'kysely';
import { restKeptMs } from '../../domain/pieces/read-more.ts';
import { pruneAuditEvents } from '../audit-events.ts';
import { pruneAnswerPieces } from '../calls/answer-pieces.ts';
import { hourMs } from '../calls/call-counts.ts';
import { pruneQuotaUse } from '../calls/call-quota-use.ts';
import { minutesKeptMs } from '../calls/call-statistics.ts';
import { captureKeptMs, pruneCaptures } from '../calls/captures.ts';
import { pruneFiles } from '../calls/files.ts';
import { changesKeptMs, pruneChanges } from '../changes/changes.ts';
import { processesKeptMs, pruneProcesses } from '../changes/processes.ts';
import type { Db } from '../db.ts';
import type { Pause } from '../delete-in-steps.ts';
import { invitationsKeptMs } from '../people/members.ts';
import { pruneSessions } from '../people/sessions.ts';
import type { Tables } from '../schema.ts';
import { clientTokensKeptMs, pruneClientTokens } from '../servers/client-tokens.ts';
import { pruneCalls, pruneCounts } from './prune-calls.ts';
import { type LoginEnding, mostBytesOfWorkspace, pruneEndedGrants, pruneOAuth } from './prune-logins.ts';
import { mostEndedKeys, pruneCrowdedKeys, pruneInvitations, pruneKeys, prunePeople } from './prune-people.ts';

const dayMs = 24 * hourMs;
/** Time until the next round; rows that would expire before it are deleted in this one. */
export const roundMs = hourMs;

/** One round of pruning. Times are the database's; no request waits for `records`. */
export type Round = {
  db: Kysely<Tables>;
  records: Db;
  now: number;
  /** Time from which on call records and audit events are kept. */
  callsFrom: number;
  auditFrom: number;
  pause: Pause;
  onLoginsEnded: LoginEnding['onEnded'];
};

type Pruning = { tables: readonly (keyof Tables)[]; prune(round: Round): Promise<unknown> };

/** Everything that is deleted after a time, by table. `test/store/storage-bounds.test.ts` has the bound of every table. */
export const prunings: readonly Pruning[] = [
  { tables: ['calls'], prune: ({ records, callsFrom, pause }) => pruneCalls(records, callsFrom, pause) },
  {
    tables: ['call_counts'],
    prune: ({ records, now, callsFrom, pause }) =>
      pruneCounts(records, now - minutesKeptMs - hourMs, callsFrom - dayMs, pause),
  },
  {
    tables: ['captures'],
    prune: ({ records, now, pause }) => pruneCaptures(records, now - captureKeptMs + roundMs, pause),
  },
  {
    tables: ['answer_pieces'],
    prune: ({ records, now, pause }) => pruneAnswerPieces(records, now - restKeptMs, pause),
  },
  { tables: ['files', 'file_chunks'], prune: ({ records, now, pause }) => pruneFiles(records, now, pause) },
  { tables: ['call_quota_use'], prune: ({ records, now, pause }) => pruneQuotaUse(records, now, pause) },
  { tables: ['changes'], prune: ({ records, now, pause }) => pruneChanges(records, now - changesKeptMs, pause) },
  { tables: ['processes'], prune: ({ records, now }) => pruneProcesses(records, now - processesKeptMs) },
  {
    tables: ['authorizations', 'codes', 'tokens', 'handed_out_tokens'],
    prune: ({ records, now, pause, onLoginsEnded: onEnded }) => pruneOAuth(records, dayMs, { now, pause, onEnded }),
  },
  {
    tables: ['grants'],
    prune: ({ records, auditFrom, pause }) => pruneEndedGrants(records, auditFrom, mostBytesOfWorkspace, pause),
  },
  {
    tables: ['client_tokens'],
    prune: ({ records, now, pause }) => pruneClientTokens(records, now - clientTokensKeptMs, pause),
  },
  { tables: ['sessions'], prune: ({ records, now, pause }) => pruneSessions(records, now, pause) },
  {
    tables: ['invitations'],
    prune: ({ records, now, pause }) => pruneInvitations(records, now - invitationsKeptMs, pause),
  },
  {
    tables: ['api_keys'],
    async prune({ records, now, auditFrom, pause }) {
      await pruneKeys(records, auditFrom, pause);
      await pruneCrowdedKeys(records, now, mostEndedKeys, pause);
    },
  },
  { tables: ['audit_events'], prune: ({ records, auditFrom, pause }) => pruneAuditEvents(records, auditFrom, pause) },
  {
    tables: ['workspaces', 'members', 'users'],
    prune: ({ db, auditFrom, pause }) => prunePeople(db, auditFrom, pause),
  },
];
