import type { Log } from '../../log.ts';
import { type FaultKind, reasonOf, StoreFault } from '../../store/engine/faults.ts';
import type { OnFault } from '../../store/engine/watched-dialect.ts';

/** Each kind of fault is logged at most once in this time, however many requests it affects. */
const quietMs = 60_000;

type Line = { level: 'warn' | 'error'; sentence: string };

/** A warning for faults that pass on their own, an error where the operator must act. Other kinds are logged elsewhere. */
const lines: { readonly [kind in FaultKind]?: Line } = {
  unavailable: { level: 'warn', sentence: 'the database does not answer' },
  connections: {
    level: 'error',
    sentence:
      'PostgreSQL takes no more connections: lower DATABASE_POOL or the number of processes, raise max_connections, or put a pooler between',
  },
  full: { level: 'error', sentence: 'the disk of the database is full: changes are refused until there is free space' },
  read_only: {
    level: 'error',
    sentence: 'the database takes no changes: it is a standby, or its file or file system is read-only',
  },
  io: { level: 'error', sentence: 'the disk of the database fails' },
  corrupt: { level: 'error', sentence: 'the database is damaged: restore it from a backup' },
  busy: { level: 'warn', sentence: 'a statement waited too long for others to end' },
};

/** Logs one line for a burst of faults; the next line counts those in between. `clock` is monotonic, in ms. */
export function faultLog(log: Log, clock: () => number): OnFault {
  const isFirst = bursts<FaultKind>(clock);
  return (fault, error) => {
    const line = lines[fault];
    const first = line && isFirst(fault);
    if (first) log[line.level]({ fault, reason: reasonOf(error), unlogged: first.unlogged }, line.sentence);
  };
}

/** Logs one line for a burst of idle connections that were lost; the next line counts those in between. */
export function lostConnectionLog(log: Log, clock: () => number): (error: Error) => void {
  const isFirst = bursts<'lost'>(clock);
  return (error) => {
    const first = isFirst('lost');
    // Only the message: pg attaches the client to the error, and with it the connection's settings.
    if (first) log.warn({ reason: reasonOf(error), unlogged: first.unlogged }, 'a database connection was lost');
  };
}

/** Says how many of a kind were not logged since the last that was; undefined for those that come soon after it. */
function bursts<Kind>(clock: () => number): (kind: Kind) => { unlogged: number } | undefined {
  const logged = new Map<Kind, { at: number; unlogged: number }>();
  return (kind) => {
    const last = logged.get(kind);
    if (last && clock() - last.at < quietMs) {
      last.unlogged++;
      return undefined;
    }
    logged.set(kind, { at: clock(), unlogged: 0 });
    return { unlogged: last?.unlogged ?? 0 };
  };
}

/**
 * Logs one line when repeated work begins to fail, and one when it succeeds again, however often it failed in between.
 * Faults of the database are logged without a stack, which would only show code of this program.
 */
export function outageLog(log: Log, failing: string, recovered: string) {
  let failures = 0;
  return {
    onError(error: unknown): void {
      const isOutage = error instanceof StoreFault;
      if (failures === 0) log.warn(isOutage ? { reason: reasonOf(error.cause) } : { err: error }, failing);
      failures++;
    },
    onSuccess(): void {
      if (failures === 0) return;
      log.info({ failures }, recovered);
      failures = 0;
    },
  };
}
