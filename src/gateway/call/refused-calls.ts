import type { CallRow } from '../../store/schema.ts';

/** Most refused calls of one server that a process records in a minute. */
const mostRefused = 600;
const minuteMs = 60_000;

/**
 * Whether the record of a call is kept. No limit of calls bounds those that it refuses, and on many servers anybody may
 * have calls refused; the metrics count all of them.
 */
export function createRefusedCalls(): (row: CallRow) => boolean {
  let minute = 0;
  const refused = new Map<string, number>();
  return function isKept({ outcome, server_id, started_at }) {
    if (outcome !== 'limited') return true;
    const at = Math.floor(started_at / minuteMs);
    // A call that waited may have begun in the minute before; a clock that was set back begins anew.
    if (at > minute || at < minute - 1) {
      minute = at;
      refused.clear();
    }
    const count = (refused.get(server_id) ?? 0) + 1;
    refused.set(server_id, count);
    return count <= mostRefused;
  };
}
