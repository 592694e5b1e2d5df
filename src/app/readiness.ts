import type { Log } from '../log.ts';
import type { DatabaseClock } from '../store/changes/database-clock.ts';
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
  /** Logs when the clock of this process becomes too far off or is set back, and when it agrees again. */
  watchClock(): void;
};

/** Decisions and records use the database's time, but logs and certificate checks use the clock of the process. */
const maxSkewMs = 5000;

export function createReadiness({ engine, time }: Store, changes: ChangeFollower, log: Log): Readiness {
  let draining = false;
  const { skewMs } = time;
  // The clock of SQLite is that of the machine. After it was set back, the one service there would be down for hours.
  const isOff = () => engine === 'postgres' && Math.abs(skewMs()) > maxSkewMs;
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
    watchClock: engine === 'postgres' ? watchServerClock(time, log) : watchMachineClock(time, log),
  };
}

function watchServerClock({ skewMs }: DatabaseClock, log: Log): () => void {
  let wasOff = false;
  return () => {
    const ms = skewMs();
    if (Math.abs(ms) > maxSkewMs === wasOff) return;
    wasOff = !wasOff;
    if (wasOff) log.error({ skewMs: ms }, `not ready: ${skewText(ms)}`);
    else log.info({ skewMs: ms }, 'the clock of this machine agrees with the database’s again');
  };
}

function watchMachineClock({ now, skewMs }: DatabaseClock, log: Log): () => void {
  let wasOff = false;
  let lastAt = now();
  return () => {
    const [ms, at] = [skewMs(), now()];
    if (at < lastAt - maxSkewMs) log.warn({ stepMs: at - lastAt }, followedText);
    lastAt = at;
    if (ms < -maxSkewMs === wasOff) return;
    wasOff = !wasOff;
    if (wasOff) log.warn({ skewMs: ms }, setBackText(-ms));
    else log.info({ skewMs: ms }, 'the clock of this machine agrees with the time of the service again');
  };
}

const followedText =
  'the clock of this machine was set back by more than a day, and the service follows it at once: what expired by the wrong clock may be valid again';

function setBackText(ms: number): string {
  const [ahead, still] = [ms, 2 * ms].map(spanText);
  return `the clock of this machine was set back: the time of the service is ${ahead} ahead of it, and passes at half speed until they agree in ${still}, so that nothing that expired is valid again; the service stays ready`;
}

function spanText(ms: number): string {
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  return ms < 2 * 3_600_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}

function skewText(ms: number): string {
  const seconds = (Math.abs(ms) / 1000).toFixed(1);
  const side = ms > 0 ? 'ahead of' : 'behind';
  return `the clock of this machine is ${seconds} s ${side} that of the database; allowed: ${maxSkewMs / 1000} s; synchronise both machines`;
}
