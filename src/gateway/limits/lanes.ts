import { type CallLimits, type KeyLimits, shareOf } from '../../domain/limits.ts';
import { afterRunning } from '../../domain/work/running-time.ts';
import type { Caller } from '../callers/caller.ts';
import { knownMs } from '../callers/caller.ts';
import type { Reserve } from './quota-reserves.ts';
import { type RecentCount, recentTotal } from './recent-count.ts';

/** The server that is called, as limits see it. */
export type Limited = {
  id: string;
  workspaceId: string;
  limits: { server: CallLimits; workspace: CallLimits };
};

/** The caller of a server, as limits see it. */
export type LimitedCaller = Pick<Caller, 'id' | 'keyId' | 'network' | 'isKnown' | 'limits'>;

/**
 * Whose calls a lane holds: those with one credential, those of one address, the strangers at a server or workspace, or
 * all of one.
 */
export const laneKinds = ['key', 'address', 'strangers', 'server', 'workspace'] as const;
export type LaneOf = (typeof laneKinds)[number];

/** One limit in use: the calls that run under it, and those that wait for a slot. */
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
  /** Where the last known caller came from, when, and when the last one from elsewhere came, in monotonic ms. */
  knownFrom: string | undefined;
  knownAt: number;
  otherAt: number;
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

export type LaneBookOptions = {
  /** Calls with one credential at once; 0 is no limit. */
  concurrentPerKey: number;
  /** Monotonic milliseconds. */
  clock: () => number;
  /** How many processes serve; each takes a share of every limit. One when absent. */
  processCount?: () => number;
};

/** Finds the lanes of a call and updates their limits. */
export type LaneBook = {
  /** In the order in which the call takes slots; the last two are those of the server and of the workspace. */
  lanesOf(server: Limited, caller: LimitedCaller, now: number): Lane[];
  findServer(id: string): Lane | undefined;
  findWorkspace(id: string): Lane | undefined;
};

const noLimits: KeyLimits = {};

/**
 * A call takes a slot of its credential, of its server and of its workspace. Strangers of one address count as one
 * credential. While known callers use a server or workspace, strangers together get half of it, and so do all callers of
 * one address that no key and no login vouches for, while there are known callers from elsewhere.
 */
export function createLaneBook({ concurrentPerKey, clock, processCount = () => 1 }: LaneBookOptions): LaneBook {
  const keys = createLanes('key', clock);
  const addresses = createLanes('address', clock);
  const halvesOfAddress = createLanes('address', clock);
  const halvesOfStrangers = createLanes('strangers', clock);
  const servers = createLanes('server', clock);
  const workspaces = createLanes('workspace', clock);

  function fit(lane: Lane, limits: KeyLimits, concurrentCalls: number): Lane {
    const { callsPerSecond = 0, callsPerMinute = 0, callsPerDay = 0 } = limits;
    const processes = processCount();
    lane.slots = shareOf(concurrentCalls, processes);
    lane.rate = callsPerSecond === 0 ? 0 : Math.max(Math.min(1, callsPerSecond), callsPerSecond / processes);
    lane.perMinute = callsPerMinute;
    lane.perDay = callsPerDay;
    return lane;
  }

  /** Undefined where any credential is accepted, and where nothing limits one. */
  function ownLane(serverId: string, { id, network, isKnown, limits = noLimits }: LimitedCaller): Lane | undefined {
    if (id === undefined || (concurrentPerKey === 0 && limits === noLimits)) return undefined;
    const lane = isKnown ? keys.laneOf(id) : addresses.laneOf(`${serverId} ${network}`);
    return fit(lane, limits, concurrentPerKey);
  }

  function addHalves(lanes: Lane[], whole: Lane, { network = '', isKnown }: LimitedCaller, now: number): void {
    if (now - (whole.knownFrom === network ? whole.otherAt : whole.knownAt) < knownMs)
      lanes.push(halfOf(halvesOfAddress.laneOf(`${whole.id} ${network}`), whole));
    if (isKnown || now - whole.knownAt >= knownMs) return;
    const strangers = halfOf(halvesOfStrangers.laneOf(whole.id), whole);
    // An address has no quotas: they are counted in the database, which stores none.
    strangers.perMinute = half(whole.perMinute);
    strangers.perDay = half(whole.perDay);
    lanes.push(strangers);
  }

  return {
    lanesOf({ id, workspaceId, limits }, caller, now) {
      const server = fit(servers.laneOf(id), limits.server, limits.server.concurrentCalls);
      const workspace = fit(workspaces.laneOf(workspaceId), limits.workspace, limits.workspace.concurrentCalls);
      const own = ownLane(id, caller);
      const lanes = own ? [own] : [];
      if (caller.keyId === undefined) {
        addHalves(lanes, server, caller, now);
        addHalves(lanes, workspace, caller, now);
      }
      lanes.push(server, workspace);
      return lanes;
    },
    findServer: servers.find,
    findWorkspace: workspaces.find,
  };
}

/** Notes a call of a known caller at its server and its workspace, which are the last two lanes. */
export function noteKnown(lanes: readonly Lane[], { keyId, network }: LimitedCaller, now: number): void {
  const from = keyId === undefined ? network : undefined;
  for (const lane of lanes.slice(-2)) {
    if (lane.knownFrom !== from) lane.otherAt = lane.knownAt;
    lane.knownFrom = from;
    lane.knownAt = now;
  }
}

function halfOf(lane: Lane, whole: Lane): Lane {
  lane.slots = half(whole.slots);
  lane.rate = whole.rate / 2;
  return lane;
}

/** Half of a limit; 0 means no limit and stays 0. */
function half(slots: number): number {
  return slots === 0 ? 0 : Math.max(1, Math.floor(slots / 2));
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

function createLane(of: LaneOf, id: string): Lane {
  const limits = { slots: 0, rate: 0, perMinute: 0, perDay: 0 };
  const use = { running: 0, inside: 0, waiting: [], dueAt: 0, refused: undefined, minute: undefined, day: undefined };
  const never = Number.NEGATIVE_INFINITY;
  return { of, id, ...limits, ...use, knownFrom: undefined, knownAt: never, otherAt: never };
}

/** The lanes in use, by id. Unused lanes are dropped in occasional sweeps, not after each call. */
function createLanes(of: LaneOf, clock: () => number) {
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
