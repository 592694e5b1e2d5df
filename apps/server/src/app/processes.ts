import type { Caches } from './caches.ts';
import type { Foundation } from './foundation.ts';
import { createReadiness } from './readiness.ts';

/** Joins the processes that serve from the database. Starts to keep the caches up to date, which readiness requires. */
export async function joinProcesses({ membership, store, log }: Foundation, { changes }: Caches) {
  const readiness = createReadiness(store, { changes, membership }, log);
  const report = async () => {
    readiness.logClockState();
    await membership.sendHeartbeat();
  };
  await changes.poll();
  await report();
  changes.afterEachPoll(report);
  return {
    readiness,
    /** Without a database, the other processes notice when the heartbeat expires. */
    async leave() {
      if (!changes.state().isUp) return;
      await membership
        .leave()
        .catch((error) => log.warn({ err: error }, 'could not deregister this process from the other processes'));
    },
  };
}
