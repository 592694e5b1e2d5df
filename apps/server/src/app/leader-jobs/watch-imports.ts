import { AppError } from '@toolhost/errors/errors';
import type { Log } from '../../log.ts';
import {
  type CheckDeps,
  checkDescription,
  getNextCheckTime,
  getRetryTime,
} from '../../operations/imports/check-description.ts';
import type { Database } from '../../store/database.ts';
import {
  type DueCheck,
  findDueChecks,
  findImportCheck,
  rescheduleCheck,
  saveCheck,
} from '../../store/servers/imports.ts';
import { findServer } from '../../store/servers/servers.ts';
import { type JobRound, type LeaderJob, startLeaderJob } from './leader-job.ts';
import { runFairly } from './run-fairly.ts';

/** Maximum number of tenants per query. */
const tenantsPerQuery = 1000;
/** Time between two rounds. Each checks only the descriptions that are due. */
const intervalMs = 60_000;
const maxConcurrentChecks = 2;
/** Time after which another process repeats a check whose process died. */
const claimTimeoutMs = 15 * 60_000;
/** Time that a check is postponed while the service is busy. */
const busyRetryMs = 5 * 60_000;

/**
 * Starts the job that compares watched descriptions with the last import of their servers, once a day, in the one
 * process that holds the lease. It changes no server.
 */
export function startImportWatcher(
  { records, db }: Database,
  log: Log,
  { keyring, importer, now, pollIntervalMs }: Omit<CheckDeps, 'db'> & { pollIntervalMs?: number },
): LeaderJob {
  const deps = { db, keyring, importer, now };
  return startLeaderJob(records, log, now, {
    name: 'watched descriptions',
    intervalMs,
    retryMs: intervalMs,
    pollIntervalMs,
    failureMessage: 'could not check watched descriptions',
    round: (round) =>
      runFairly<DueCheck>({
        maxConcurrent: maxConcurrentChecks,
        find: (running) => findDueChecks(db, now(), { limit: tenantsPerQuery, excluded: running }),
        run: (due) => runCheck(deps, due, round, log),
      }),
  });
}

async function runCheck(deps: CheckDeps, due: DueCheck, { signal, throwIfStopped }: JobRound, log: Log): Promise<void> {
  const { db, now } = deps;
  throwIfStopped();
  const claimed = { ...due, dueAt: now() + claimTimeoutMs };
  if (!(await rescheduleCheck(db, due, claimed.dueAt))) return;
  const server = await findServer(db, due.workspaceId, due.slug);
  const lastCheck = server && (await findImportCheck(db, server));
  if (!server?.config.imported || !lastCheck) {
    await rescheduleCheck(db, claimed, getNextCheckTime(due.serverId, now()));
    return;
  }
  const result = await checkDescription(deps, server, lastCheck, signal).catch((error: unknown) => {
    if (error instanceof AppError && error.kind === 'tooMany') return undefined;
    if (error instanceof AppError || signal.aborted) throw error;
    // A failure of this program with one description must not prevent the check of the others.
    log.error({ err: error, workspaceId: due.workspaceId, server: due.slug }, 'could not compare a description');
    return { ...lastCheck, checkedAt: now(), failures: lastCheck.failures + 1, error: 'internal service error' };
  });
  // An interrupted check says nothing about the description.
  if (signal.aborted) {
    await rescheduleCheck(db, claimed, due.dueAt);
    return throwIfStopped();
  }
  if (!result) {
    await rescheduleCheck(db, claimed, now() + busyRetryMs);
    return;
  }
  const { failures } = result;
  await saveCheck(db, server, result);
  const nextAt = failures > 0 ? getRetryTime(now(), failures) : getNextCheckTime(server.id, now());
  await rescheduleCheck(db, claimed, nextAt);
}
