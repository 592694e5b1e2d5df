import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { type CheckParts, checkDescription, nextCheckAt, retryAt } from '../../operations/imports/check-description.ts';
import type { Database } from '../../store/database.ts';
import { type DueCheck, findDueChecks, findImportCheck, moveDueCheck, saveCheck } from '../../store/servers/imports.ts';
import { findServer } from '../../store/servers/servers.ts';
import { type ElectedWork, type RunningRound, startElectedWork } from './elected-work.ts';

/** Workspaces that are looked for at once, and checks that run at once: each holds a document of megabytes. */
const foundAtOnce = 1000;
const roundMs = 60_000;
const runAtOnce = 2;
/** A check whose process died is done by another one after this time. */
const claimMs = 15 * 60_000;
/** A check is put off for this time while the service is busy. */
const busyMs = 5 * 60_000;

/**
 * Compares watched descriptions with the last import of their servers, once a day, in the one process that holds the
 * lease. It changes no server.
 */
export function startWatchingImports(
  { records, db }: Database,
  log: Log,
  { keyring, importing, now, lookMs }: Omit<CheckParts, 'db'> & { lookMs?: number },
): ElectedWork {
  const parts = { db, keyring, importing, now };
  const check = (due: DueCheck, round: RunningRound) => checkOne(parts, due, round, log);
  return startElectedWork(records, log, now, {
    name: 'watched descriptions',
    roundMs,
    againMs: roundMs,
    lookMs,
    failure: 'could not check watched descriptions',
    async round(round) {
      const find = (except: Iterable<string>) => findDueChecks(db, { now: now(), most: foundAtOnce, except });
      const turns = turnsOfWorkspaces(find, now);
      const lane = () => turns((due) => check(due, round));
      const ended = await Promise.allSettled(Array.from({ length: runAtOnce }, lane));
      for (const lane of ended) if (lane.status === 'rejected') throw lane.reason;
    },
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
    // A fault of this program with one description must not keep the others from being checked.
    log.error({ err: error, workspaceId: due.workspaceId, server: due.slug }, 'could not compare a description');
    return { ...known, checkedAt: now(), failures: known.failures + 1, error: 'internal error of the service' };
  });
  // A check that was broken off says nothing about the description.
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

type OfWorkspace = { workspaceId: string };

/**
 * Lets the workspaces take turns: one item of a workspace at a time, and first the items of those that took the least
 * time until now. So slow items delay those of their own workspace. `find` gives one item of each workspace that is not
 * in `except`. The result is a lane, which may run several times at once; it ends when `find` has nothing for it.
 */
function turnsOfWorkspaces<Item extends OfWorkspace>(
  find: (except: Iterable<string>) => Promise<Item[]>,
  now: () => number,
): (run: (item: Item) => Promise<void>) => Promise<void> {
  const running = new Set<string>();
  const spentMs = new Map<string, number>();
  let waiting: Item[] = [];
  let finding: Promise<void> | undefined;

  /** Lanes that have nothing at the same time share one query, so that none begins what another one has begun. */
  function findMore(): Promise<void> {
    finding ??= find(running)
      .then((found) => {
        waiting = found.sort((one, other) => spentBy(one) - spentBy(other));
      })
      .finally(() => {
        finding = undefined;
      });
    return finding;
  }
  const spentBy = ({ workspaceId }: Item) => spentMs.get(workspaceId) ?? 0;

  return async (run) => {
    for (;;) {
      if (waiting.length === 0) await findMore();
      const item = waiting.shift();
      if (!item) return;
      const { workspaceId } = item;
      // Another lane may have begun an item of this workspace while this one was being found.
      if (running.has(workspaceId)) continue;
      const from = now();
      running.add(workspaceId);
      try {
        await run(item);
      } finally {
        running.delete(workspaceId);
        spentMs.set(workspaceId, spentBy(item) + now() - from);
      }
    }
  };
}
