import type { Log } from '../log.ts';
import type { ChangeFollower, DatabaseClock } from '../store/changes/follow-changes.ts';
import type { Store } from './open-store.ts';
import type { Presence } from './presence.ts';

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

export function createReadiness(
  { time }: Store,
  { changes, presence }: { changes: ChangeFollower; presence: Presence },
  log: Log,
): Readiness {
  let draining = false;
  const { skewMs } = time;
  const isOff = () => isOffAlone(skewMs(), presence.skewsOfOthers());
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
    watchClock: watchClock(time, isOff, log),
  };
}

/**
 * Whether this clock is wrong, and not the database's: more clocks of the others are nearer to the database's time than to
 * this one. A wrong clock of the database would otherwise make all of them unready.
 */
function isOffAlone(skewMs: number, others: readonly number[]): boolean {
  if (Math.abs(skewMs) <= maxSkewMs) return false;
  const withDatabase = others.filter((other) => Math.abs(other) < Math.abs(other - skewMs));
  return withDatabase.length > others.length / 2;
}

function watchClock({ skewMs }: DatabaseClock, isOff: () => boolean, log: Log): () => void {
  let was: 'right' | 'off' | 'doubted' = 'right';
  return () => {
    const ms = skewMs();
    const is = isOff() ? 'off' : Math.abs(ms) > maxSkewMs ? 'doubted' : 'right';
    if (is === was) return;
    was = is;
    if (is === 'off') log.error({ skewMs: ms }, `not ready: ${skewText(ms)}`);
    else if (is === 'doubted') log.warn({ skewMs: ms }, `${skewText(ms)}; ${staysReadyText}`);
    else log.info({ skewMs: ms }, 'the clock of this machine agrees with the database’s again');
  };
}

const staysReadyText =
  'it stays ready, because no majority of the other processes says that the clock of the database is right';

function skewText(ms: number): string {
  const seconds = (Math.abs(ms) / 1000).toFixed(1);
  const side = ms > 0 ? 'ahead of' : 'behind';
  return `the clock of this machine is ${seconds} s ${side} that of the database; allowed: ${maxSkewMs / 1000} s; synchronise both machines`;
}
