import type { Log } from '../log.ts';
import type { ChangeFollower, DatabaseClock } from '../store/changes/follow-changes.ts';
import type { Membership } from './membership.ts';
import type { Store } from './open-store.ts';

/** Readiness of this process to serve. */
export type Readiness = {
  /** Returns the reason why the process is not ready. Queries the database if the caches may be out of date. */
  findReason(): Promise<string | undefined>;
  /** Returns true if the process is ready, without a query, for metrics. */
  isServing(): boolean;
  /** Makes the process unready permanently. */
  drain(): void;
  /** Logs when the clock of this process drifts too far, and when it agrees again. */
  logClockState(): void;
};

/**
 * Maximum clock difference. Decisions and records use the database time, but logs and certificate checks use the
 * clock of the process.
 */
const maxSkewMs = 5000;

export function createReadiness(
  { time }: Store,
  { changes, membership }: { changes: ChangeFollower; membership: Membership },
  log: Log,
): Readiness {
  let isDraining = false;
  const { skewMs } = time;
  const isClockOff = () => isOwnClockWrong(skewMs(), membership.getOtherSkews());
  const pollChanges = () =>
    changes.poll().then(
      () => undefined,
      () => 'the database does not respond, and the cached values are too old to be used',
    );
  return {
    async findReason() {
      if (isDraining) return 'the process is stopping';
      const outdatedReason = changes.isFresh() ? undefined : await pollChanges();
      return outdatedReason ?? (isClockOff() ? formatSkew(skewMs()) : undefined);
    },
    isServing: () => !isDraining && changes.isFresh() && !isClockOff(),
    drain() {
      isDraining = true;
    },
    logClockState: createClockStateLog(time, isClockOff, log),
  };
}

/**
 * Returns true if this clock is wrong, and not the database clock: most other clocks are closer to the database time
 * than to this clock. Otherwise, a wrong database clock would make all processes unready.
 */
function isOwnClockWrong(skewMs: number, otherSkews: readonly number[]): boolean {
  if (Math.abs(skewMs) <= maxSkewMs) return false;
  const agreeingWithDatabase = otherSkews.filter((otherSkew) => Math.abs(otherSkew) < Math.abs(otherSkew - skewMs));
  return agreeingWithDatabase.length > otherSkews.length / 2;
}

function createClockStateLog({ skewMs }: DatabaseClock, isClockOff: () => boolean, log: Log): () => void {
  let previousState: 'right' | 'off' | 'doubted' = 'right';
  return () => {
    const ms = skewMs();
    const stateOfSkew = Math.abs(ms) > maxSkewMs ? 'doubted' : 'right';
    const state = isClockOff() ? 'off' : stateOfSkew;
    if (state === previousState) return;
    previousState = state;
    if (state === 'off') log.error({ skewMs: ms }, `not ready: ${formatSkew(ms)}`);
    else if (state === 'doubted') log.warn({ skewMs: ms }, `${formatSkew(ms)}; ${staysReadyMessage}`);
    else log.info({ skewMs: ms }, 'the clock of this machine agrees with the database clock again');
  };
}

const staysReadyMessage = 'the process stays ready, because most other processes do not confirm the database clock';

function formatSkew(ms: number): string {
  const seconds = (Math.abs(ms) / 1000).toFixed(1);
  const direction = ms > 0 ? 'ahead of' : 'behind';
  return `the clock of this machine is ${seconds} s ${direction} the database clock; allowed: ${maxSkewMs / 1000} s; synchronize both machines`;
}
