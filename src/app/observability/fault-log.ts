import type { Log } from '../../log.ts';
import { type FaultKind, reasonOf } from '../../store/engine/faults.ts';
import type { OnFault } from '../../store/engine/watched-dialect.ts';

/** A kind of fault is logged when it appears, and then at most once in this time, however many requests it meets. */
const quietMs = 60_000;

type Line = { level: 'warn' | 'error'; sentence: string };

/** A warning where it passes by itself, an error where the operator must act. Other kinds are told by whoever met them. */
const lines: { readonly [kind in FaultKind]?: Line } = {
  unavailable: { level: 'warn', sentence: 'the database does not answer' },
  connections: {
    level: 'error',
    sentence:
      'PostgreSQL takes no more connections: lower DATABASE_POOL or the number of processes, raise max_connections, or put a pooler between',
  },
  full: { level: 'error', sentence: 'the disk of the database is full: changes are refused until there is room' },
  read_only: {
    level: 'error',
    sentence: 'the database takes no changes: it is a standby, or its file or file system is read-only',
  },
  io: { level: 'error', sentence: 'the disk of the database fails' },
  corrupt: { level: 'error', sentence: 'the database is damaged: restore it from a backup' },
  busy: { level: 'warn', sentence: 'a statement waited too long for others to end' },
};

/** Writes one line for a burst of faults, and with the next line how many came in between. `clock` is monotonic, in ms. */
export function faultLog(log: Log, clock: () => number): OnFault {
  const told = new Map<FaultKind, { at: number; unlogged: number }>();
  return (fault, error) => {
    const line = lines[fault];
    if (!line) return;
    const last = told.get(fault);
    if (last && clock() - last.at < quietMs) {
      last.unlogged++;
      return;
    }
    log[line.level]({ fault, reason: reasonOf(error), unlogged: last?.unlogged ?? 0 }, line.sentence);
    told.set(fault, { at: clock(), unlogged: 0 });
  };
}
