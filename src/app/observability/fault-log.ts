import type { Log } from '../../log.ts';
import { type FaultKind, reasonOf, StoreFault } from '../../store/engine/faults.ts';
import type { OnFault } from '../../store/engine/watched-dialect.ts';

/** Minimum time between two log lines for the same kind of error, regardless of the number of affected requests. */
const quietMs = 60_000;

type Line = { level: 'warn' | 'error'; sentence: string };

/**
 * Log lines for database errors: a warning if the error passes by itself, an error if the operator must act. Other
 * kinds are logged elsewhere.
 */
const lines: { readonly [kind in FaultKind]?: Line } = {
  unavailable: { level: 'warn', sentence: 'the database does not respond' },
  connections: {
    level: 'error',
    sentence:
      'PostgreSQL accepts no more connections: lower DATABASE_POOL or the number of processes, raise max_connections, or add a connection pooler',
  },
  full: { level: 'error', sentence: 'the database disk is full: changes are rejected until there is free space' },
  read_only: {
    level: 'error',
    sentence: 'the database is read-only: it is a standby, or its file or file system is read-only',
  },
  io: { level: 'error', sentence: 'the database disk failed' },
  corrupt: { level: 'error', sentence: 'the database is damaged: restore it from a backup' },
  busy: { level: 'warn', sentence: 'a statement waited too long for other statements' },
};

/** Logs one line for a burst of errors. The next line counts the errors in between. `clock` is monotonic, in ms. */
export function faultLog(log: Log, clock: () => number): OnFault {
  const isFirst = bursts<FaultKind>(clock);
  return (fault, error) => {
    const line = lines[fault];
    const first = line && isFirst(fault);
    if (first) log[line.level]({ fault, reason: reasonOf(error), unlogged: first.unlogged }, line.sentence);
  };
}

/** Logs one line for a burst of lost idle connections. The next line counts those in between. */
export function lostConnectionLog(log: Log, clock: () => number): (error: Error) => void {
  const isFirst = bursts<'lost'>(clock);
  return (error) => {
    const first = isFirst('lost');
    // Logs only the message, because pg attaches the client to the error, and with it the connection's settings.
    if (first) log.warn({ reason: reasonOf(error), unlogged: first.unlogged }, 'a database connection was lost');
  };
}

/**
 * Returns the number of unlogged events since the last logged event of a kind; undefined if the event follows too
 * soon to be logged.
 */
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
 * Logs one line when repeated work starts to fail, and one when it succeeds again, regardless of the number of
 * failures in between. Database errors are logged without a stack, which would only show code of this program.
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
