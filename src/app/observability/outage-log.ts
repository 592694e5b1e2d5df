import type { Log } from '../../log.ts';
import { reasonOf, StoreFault } from '../../store/engine/faults.ts';

/**
 * Writes one line when work that is done again and again begins to fail, and one when it succeeds again, however often it
 * failed in between. A fault of the database has no stack: that would tell of this program.
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
