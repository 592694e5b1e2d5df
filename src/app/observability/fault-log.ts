import type { Log } from '../../log.ts';
import { type FaultKind, reasonOf } from '../../store/engine/faults.ts';
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
  const logged = new Map<FaultKind, { at: number; unlogged: number }>();
  return (fault, error) => {
    const line = lines[fault];
    if (!line) return;
    const last = logged.get(fault);
    if (last && clock() - last.at < quietMs) {
      last.unlogged++;
      return;
    }
    log[line.level]({ fault, reason: reasonOf(error), unlogged: last?.unlogged ?? 0 }, line.sentence);
    logged.set(fault, { at: clock(), unlogged: 0 });
  };
}

/** Logs one line for a burst of idle connections that were lost; the next line counts those in between. */
export function lostConnectionLog(log: Log, clock: () => number): (error: Error) => void {
  let last = Number.NEGATIVE_INFINITY;
  let unlogged = 0;
  return (error) => {
    if (clock() - last < quietMs) {
      unlogged++;
      return;
    }
    // Only the message: pg attaches the client to the error, and with it the connection's settings.
    log.warn({ reason: reasonOf(error), unlogged }, 'a database connection was lost');
    last = clock();
    unlogged = 0;
  };
}
