import type { Log } from '../../log.ts';
import { reasonOf, StoreFault } from '../../store/engine/faults.ts';

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
