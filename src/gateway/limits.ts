import { AppError } from '../errors.ts';

/** How much one server and one key may ask for; 0 is no limit. */
export type LimitOptions = {
  callsPerSecond: number;
  concurrentPerServer: number;
  concurrentPerKey: number;
  /** Monotonic milliseconds. */
  clock: () => number;
};

/** Lets calls in, holds them for a moment, or refuses them. */
export type Limits = {
  /**
   * Resolves with the function that gives the place back.
   * @throws AppError tooMany with the seconds to wait
   */
  enter(serverId: string, keyId: string | undefined): Promise<() => void>;
};

const queueLength = 50;
const queueMs = 2000;
/** A server that was idle may use up this much of its rate at once. */
const burstMs = 1000;

type Waiting = { start: () => void };

/** What one server or one key has under way, and who waits for a place. */
type Lane = { running: number; waiting: Waiting[] };

export function createLimits(options: LimitOptions): Limits {
  const lanes = new Map<string, Lane>();
  /** Theoretical arrival time of the next call of a server (GCRA). */
  const arrivals = new Map<string, number>();

  function take(name: string, places: number): Promise<() => void> | (() => void) {
    if (places === 0) return () => undefined;
    let lane = lanes.get(name);
    if (!lane) {
      lane = { running: 0, waiting: [] };
      lanes.set(name, lane);
    }
    const held = lane;
    const leave = () => {
      const next = held.waiting.shift();
      if (next) next.start();
      else if (--held.running === 0) lanes.delete(name);
    };
    if (held.running < places) {
      held.running++;
      return leave;
    }
    if (held.waiting.length >= queueLength) throw busy(queueMs);
    return queued(held, leave);
  }

  function checkRate(serverId: string): void {
    if (options.callsPerSecond === 0) return;
    const now = options.clock();
    const interval = 1000 / options.callsPerSecond;
    const due = Math.max(now, arrivals.get(serverId) ?? 0);
    if (due - now > burstMs) throw busy(due - now - burstMs);
    arrivals.set(serverId, due + interval);
    if (arrivals.size > 10_000) forgetIdle(arrivals, now);
  }

  return {
    async enter(serverId, keyId) {
      checkRate(serverId);
      // The key comes first: its calls wait for each other without keeping places of the server from other keys.
      const leaveKey = keyId === undefined ? () => undefined : await take(`key ${keyId}`, options.concurrentPerKey);
      try {
        const leaveServer = await take(`server ${serverId}`, options.concurrentPerServer);
        return () => {
          leaveServer();
          leaveKey();
        };
      } catch (error) {
        leaveKey();
        throw error;
      }
    },
  };
}

/** A place in the queue of a lane, given up after a while. */
function queued(lane: Lane, leave: () => void): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const waiting: Waiting = {
      start: () => {
        clearTimeout(timer);
        resolve(leave);
      },
    };
    const timer = setTimeout(() => {
      lane.waiting.splice(lane.waiting.indexOf(waiting), 1);
      reject(busy(queueMs));
    }, queueMs);
    lane.waiting.push(waiting);
  });
}

function forgetIdle(arrivals: Map<string, number>, now: number): void {
  for (const [serverId, due] of arrivals) if (due < now) arrivals.delete(serverId);
}

function busy(waitMs: number): AppError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  return new AppError('tooMany', `too many calls at once; try again in ${seconds} s`, { retryAfterS: seconds });
}
