import type { Log } from '../../log.ts';
import { DatabaseError, type DatabaseErrorKind, getErrorReason } from '../../store/engine/database-errors.ts';
import type { OnDatabaseError } from '../../store/engine/watched-dialect.ts';

/** Minimum time between two log lines for the same kind of error, regardless of the number of affected requests. */
const minLogIntervalMs = 60_000;

type Line = { level: 'warn' | 'error'; message: string };

/**
 * Log lines for database errors: a warning if the error passes by itself, an error if the operator must act. Other
 * kinds are logged elsewhere.
 */
const linesByKind: { readonly [kind in DatabaseErrorKind]?: Line } = {
  unavailable: { level: 'warn', message: 'the database does not respond' },
  connections: {
    level: 'error',
    message:
      'PostgreSQL accepts no more connections: lower DATABASE_POOL or the number of processes, raise max_connections, or add a connection pooler',
  },
  full: { level: 'error', message: 'the database disk is full: changes are rejected until there is free space' },
  read_only: {
    level: 'error',
    message: 'the database is read-only: it is a standby, or its file or file system is read-only',
  },
  io: { level: 'error', message: 'the database disk failed' },
  corrupt: { level: 'error', message: 'the database is damaged: restore it from a backup' },
  busy: { level: 'warn', message: 'a statement waited too long for other statements' },
};

/** Logs one line for a burst of errors. The next line counts the errors in between. `clock` is monotonic, in ms. */
export function createDatabaseErrorLog(log: Log, clock: () => number): OnDatabaseError {
  const takeBurst = createBurstCounter<DatabaseErrorKind>(clock);
  return (kind, error) => {
    const line = linesByKind[kind];
    const burst = line && takeBurst(kind);
    if (burst) log[line.level]({ fault: kind, reason: getErrorReason(error), unlogged: burst.unlogged }, line.message);
  };
}

/** Logs one line for a burst of lost idle connections. The next line counts those in between. */
export function createLostConnectionLog(log: Log, clock: () => number): (error: Error) => void {
  const takeBurst = createBurstCounter<'lost'>(clock);
  return (error) => {
    const burst = takeBurst('lost');
    // Logs only the message, because pg attaches the client to the error, and with it the connection's settings.
    if (burst) log.warn({ reason: getErrorReason(error), unlogged: burst.unlogged }, 'a database connection was lost');
  };
}

/**
 * Returns the number of unlogged events since the last logged event of a kind; undefined if the event follows too
 * soon to be logged.
 */
function createBurstCounter<Kind>(clock: () => number): (kind: Kind) => { unlogged: number } | undefined {
  const lastLogged = new Map<Kind, { at: number; unlogged: number }>();
  return (kind) => {
    const last = lastLogged.get(kind);
    if (last && clock() - last.at < minLogIntervalMs) {
      last.unlogged++;
      return undefined;
    }
    lastLogged.set(kind, { at: clock(), unlogged: 0 });
    return { unlogged: last?.unlogged ?? 0 };
  };
}

/**
 * Logs one line when repeated work starts to fail, and one when it succeeds again, regardless of the number of
 * failures in between. Database errors are logged without a stack, which would only show code of this program.
 */
export function createOutageLog(log: Log, failureMessage: string, recoveryMessage: string) {
  let failures = 0;
  return {
    onError(error: unknown): void {
      const isOutage = error instanceof DatabaseError;
      if (failures === 0) log.warn(isOutage ? { reason: getErrorReason(error.cause) } : { err: error }, failureMessage);
      failures++;
    },
    onSuccess(): void {
      if (failures === 0) return;
      log.info({ failures }, recoveryMessage);
      failures = 0;
    },
  };
}
