import { afterRunning } from '../../domain/work/running-time.ts';
import { type Activity, createActivity } from './activity.ts';
import type { Reserve } from './quota-reserves.ts';
import { type RecentCount, recentTotal } from './recent-count.ts';

/**
 * Whose calls a lane holds: those of one caller, of one address, of the strangers at a server or workspace, or all of
 * one.
 */
export type LaneOf = 'key' | 'address' | 'strangers' | 'server' | 'workspace';

/** The calls of a caller, an address, a server or a workspace: those that run, and those that wait for a slot. */
export type Lane = {
  of: LaneOf;
  /** Key under which its quotas are counted. */
  id: string;
  /** How many may run at once; 0 is no limit. It may change at any time. */
  slots: number;
  /** Calls a second; 0 is no limit. It may change at any time. */
  rate: number;
  running: number;
  /** Calls that run, wait here, or wait elsewhere and will come here. */
  inside: number;
  waiting: Waiting[];
  /** Theoretical arrival time of the next call (GCRA), in monotonic ms. */
  dueAt: number;
  activity: Activity;
  /** Calls refused in the last minute; undefined before the first. */
  refused: RecentCount | undefined;
  /** Calls in a minute and in a day; 0 is no quota. They may change at any time. */
  perMinute: number;
  perDay: number;
  /** This process's reserves of the quotas; undefined before the first call under a quota. */
  minute: Reserve | undefined;
  day: Reserve | undefined;
};

type Waiting = { start: () => void };

export type Waited = 'started' | 'late' | 'gone';

export const queueLength = 50;
/** Time whose worth of its rate an idle lane may use at once. */
const burstMs = 1000;
const sweepAbove = 10_000;

function createLane(of: LaneOf, id: string): Lane {
  return {
    of,
    id,
    slots: 0,
    rate: 0,
    running: 0,
    inside: 0,
    waiting: [],
    dueAt: 0,
    activity: createActivity(),
    refused: undefined,
    perMinute: 0,
    perDay: 0,
    minute: undefined,
    day: undefined,
  };
}

/** Whether a call may run at once, without overtaking one that waits. */
export function hasSlot(lane: Lane): boolean {
  return lane.slots === 0 || (lane.running < lane.slots && lane.waiting.length === 0);
}

export function giveBack(lane: Lane): void {
  lane.running--;
  if (lane.waiting.length > 0) advance(lane);
}

function advance(lane: Lane): void {
  while (lane.waiting.length > 0 && (lane.slots === 0 || lane.running < lane.slots)) {
    lane.running++;
    lane.waiting.shift()?.start();
  }
}

/**
 * Waits in the queue of a lane, first come, first served. Resolves with `started` when the slot is taken, with `late`
 * after `forMs` in which this process ran, and with `gone` when the client disconnects.
 */
export function waitForSlot(
  lane: Lane,
  forMs: number,
  onGone: ((cancel: () => void) => void) | undefined,
): Promise<Waited> {
  const { promise, resolve } = Promise.withResolvers<Waited>();
  const end = (how: Waited) => {
    cancel();
    resolve(how);
  };
  const giveUp = (how: Waited) => {
    const at = lane.waiting.indexOf(waiting);
    if (at < 0) return;
    lane.waiting.splice(at, 1);
    end(how);
  };
  const waiting: Waiting = { start: () => end('started') };
  const cancel = afterRunning(forMs, () => giveUp('late'));
  lane.waiting.push(waiting);
  onGone?.(() => giveUp('gone'));
  // The limit may have been raised since the others began to wait.
  advance(lane);
  return promise;
}

/** How long until the next call is due under the rate of a lane (GCRA); 0 when it may come now. */
export function overdueMs(lane: Lane, now: number): number {
  return lane.rate === 0 ? 0 : Math.max(0, lane.dueAt - now - burstMs);
}

export function noteArrival(lane: Lane, now: number): void {
  if (lane.rate !== 0) lane.dueAt = Math.max(now, lane.dueAt) + 1000 / lane.rate;
}

/** The lanes in use, by id. Unused lanes are dropped in occasional sweeps, not after each call. */
export function createLanes(of: LaneOf, clock: () => number) {
  const lanes = new Map<string, Lane>();
  let most = sweepAbove;
  return {
    laneOf(id: string): Lane {
      const known = lanes.get(id);
      if (known) return known;
      if (lanes.size >= most) {
        const now = clock();
        for (const [old, lane] of lanes) if (isIdle(lane, now)) lanes.delete(old);
        most = Math.max(sweepAbove, lanes.size * 2);
      }
      const lane = createLane(of, id);
      lanes.set(id, lane);
      return lane;
    },
    find: (id: string) => lanes.get(id),
  };
}

function isIdle(lane: Lane, now: number): boolean {
  return lane.inside === 0 && lane.dueAt <= now && !(lane.refused && recentTotal(lane.refused, now) > 0);
}
