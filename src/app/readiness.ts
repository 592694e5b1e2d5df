import type { Log } from '../log.ts';
import type { ChangeFollower } from '../store/changes/follow-changes.ts';
import type { Store } from './open-store.ts';

/** Readiness of this process to serve. */
export type Readiness = {
  /** The reason why it is not ready, or undefined. Asks the database when the caches may be out of date. */
  whyNot(): Promise<string | undefined>;
  /** The same without a query, for metrics. */
  isServing(): boolean;
  /** From now on the process is not ready. */
  drain(): void;
  /** Logs when the clock of this process becomes too far off, and when it agrees again. */
  watchClock(): void;
};

/** Decisions and records use the database's time, but logs and certificate checks use the clock of the process. */
const maxSkewMs = 5000;

export function createReadiness({ engine, time }: Store, changes: ChangeFollower, log: Log): Readiness {
  let draining = false;
  let wasOff = false;
  // SQLite has no clock of its own to compare with.
  const skewMs = () => (engine === 'postgres' ? time.skewMs() : 0);
  const isOff = () => Math.abs(skewMs()) > maxSkewMs;
  const look = () =>
    changes.look().then(
      () => undefined,
      () => 'the database does not answer, and what is remembered is too old to be used',
    );
  return {
    async whyNot() {
      if (draining) return 'the process is stopping';
      const unseen = changes.isFresh() ? undefined : await look();
      return unseen ?? (isOff() ? skewText(skewMs()) : undefined);
    },
    isServing: () => !draining && changes.isFresh() && !isOff(),
    drain() {
      draining = true;
    },
    watchClock() {
      if (isOff() === wasOff) return;
      wasOff = !wasOff;
      if (wasOff) log.error({ skewMs: skewMs() }, `not ready: ${skewText(skewMs())}`);
      else log.info({ skewMs: skewMs() }, 'the clock of this machine agrees with the database’s again');
    },
  };
}

function skewText(ms: number): string {
  const seconds = (Math.abs(ms) / 1000).toFixed(1);
  const side = ms > 0 ? 'ahead of' : 'behind';
  return `the clock of this machine is ${seconds} s ${side} that of the database; allowed: ${maxSkewMs / 1000} s; synchronise both machines`;
}
