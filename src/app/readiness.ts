import type { Log } from '../log.ts';
import type { ChangeFollower, DatabaseClock } from '../store/changes/follow-changes.ts';
import type { Store } from './open-store.ts';
import type { Presence } from './presence.ts';

/** Readiness of this process to serve. */
export type Readiness = {
  /**
   * Returns the reason why the process is not ready, or undefined. Queries the database if the caches may be out of
   * date.
   */
  whyNot(): Promise<string | undefined>;
  /** Returns true if the process is ready, without a query, for metrics. */
  isServing(): boolean;
  /** Makes the process not ready from now on. */
  drain(): void;
  /** Logs when the clock of this process drifts too far, and when it agrees again. */
  watchClock(): void;
};

/**
 * Maximum clock difference. Decisions and records use the database time, but logs and certificate checks use the
 * clock of the process.
 */
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
      () => 'the database does not respond, and the cached values are too old to be used',
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
 * Returns true if this clock is wrong, and not the database clock: most other clocks are closer to the database time
 * than to this clock. Otherwise, a wrong database clock would make all processes unready.
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
    else log.info({ skewMs: ms }, 'the clock of this machine agrees with the database clock again');
  };
}

const staysReadyText = 'the process stays ready, because most other processes do not confirm the database clock';

function skewText(ms: number): string {
  const seconds = (Math.abs(ms) / 1000).toFixed(1);
  const side = ms > 0 ? 'ahead of' : 'behind';
  return `the clock of this machine is ${seconds} s ${side} the database clock; allowed: ${maxSkewMs / 1000} s; synchronize both machines`;
}
