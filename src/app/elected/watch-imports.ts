import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { type CheckParts, checkDescription, nextCheckAt, retryAt } from '../../operations/imports/check-description.ts';
import type { Database } from '../../store/database.ts';
import { type DueCheck, findDueChecks, findImportCheck, moveDueCheck, saveCheck } from '../../store/servers/imports.ts';
import { findServer } from '../../store/servers/servers.ts';
import { type ElectedWork, type RunningRound, startElectedWork } from './elected-work.ts';
import { runInTurns } from './in-turns.ts';

/** Maximum number of tenants per query. */
const foundAtOnce = 1000;
const roundMs = 60_000;
const runAtOnce = 2;
/** Time after which another process repeats a check whose process died. */
const claimMs = 15 * 60_000;
/** Time that a check is postponed while the service is busy. */
const busyMs = 5 * 60_000;

/**
 * Starts the job that compares watched descriptions with the last import of their servers, once a day, in the one
 * process that holds the lease. It changes no server.
 */
export function startWatchingImports(
  { records, db }: Database,
  log: Log,
  { keyring, importing, now, lookMs }: Omit<CheckParts, 'db'> & { lookMs?: number },
): ElectedWork {
  const parts = { db, keyring, importing, now };
  return startElectedWork(records, log, now, {
    name: 'watched descriptions',
    roundMs,
    againMs: roundMs,
    lookMs,
    failure: 'could not check watched descriptions',
    round: (round) =>
      runInTurns<DueCheck>({
        maxConcurrent: runAtOnce,
        find: (running) => findDueChecks(db, now(), { most: foundAtOnce, except: running }),
        run: (due) => checkOne(parts, due, round, log),
      }),
  });
}

async function checkOne(parts: CheckParts, due: DueCheck, { signal, mayGoOn }: RunningRound, log: Log): Promise<void> {
  const { db, now } = parts;
  mayGoOn();
  const claimed = { ...due, dueAt: now() + claimMs };
  if (!(await moveDueCheck(db, due, claimed.dueAt))) return;
  const server = await findServer(db, due.workspaceId, due.slug);
  const known = server && (await findImportCheck(db, server));
  if (!server?.config.imported || !known) {
    await moveDueCheck(db, claimed, nextCheckAt(due.serverId, now()));
    return;
  }
  const result = await checkDescription(parts, server, known, signal).catch((error: unknown) => {
    if (error instanceof AppError && error.kind === 'tooMany') return undefined;
    if (error instanceof AppError || signal.aborted) throw error;
    // A failure of this program with one description must not prevent the check of the others.
    log.error({ err: error, workspaceId: due.workspaceId, server: due.slug }, 'could not compare a description');
    return { ...known, checkedAt: now(), failures: known.failures + 1, error: 'internal service error' };
  });
  // An interrupted check says nothing about the description.
  if (signal.aborted) {
    await moveDueCheck(db, claimed, due.dueAt);
    return mayGoOn();
  }
  if (!result) {
    await moveDueCheck(db, claimed, now() + busyMs);
    return;
  }
  const { failures } = result;
  await saveCheck(db, server, result);
  const next = failures > 0 ? retryAt(now(), failures) : nextCheckAt(server.id, now());
  await moveDueCheck(db, claimed, next);
}
