import { tenantOf } from '../../domain/ids.ts';
import { type CallLimits, type KeyLimits, type LimitedKey, type Processes, shareOf } from '../../domain/limits.ts';
import { afterRunning } from '../../domain/work/running-time.ts';
import { type Caller, knownMs } from '../callers/caller.ts';
import type { Reserve } from './call-quotas.ts';
import { type RecentCount, recentTotal } from './circuits.ts';

/** The called server, as limits see it. */
export type Limited = {
  id: string;
  workspaceId: string;
  limits: { server: CallLimits; workspace: CallLimits };
};

/** The caller of a server, as limits see it. */
export type LimitedCaller = Pick<Caller, 'id' | 'keyId' | 'network' | 'isKnown' | 'limits'>;

/**
 * Scopes of limiters: the calls of one credential, of one address, of all unverified callers of a server or workspace,
 * or of one server or workspace.
 */
export const laneKinds = ['key', 'address', 'strangers', 'server', 'workspace'] as const;
export type LaneOf = (typeof laneKinds)[number];

/** One limit in use: the calls that run under it, and those that wait for a slot. */
export type Lane = {
  of: LaneOf;
  /** Key under which its quotas are counted. */
  id: string;
  /** Tenant of the workspace. Empty for all other limiters. */
  tenant: string;
  /** Maximum number of concurrent calls; 0 means no limit. It may change at any time. */
  slots: number;
  /** Maximum number of calls per second; 0 means no limit. It may change at any time. */
  rate: number;
  running: number;
  /** Number of calls that run, wait here, or wait elsewhere and will come here. */
  inside: number;
  /** Functions that start the waiting calls, first come, first served. */
  waiting: (() => void)[];
  /** Theoretical arrival time of the next call (GCRA), in monotonic ms. */
  dueAt: number;
  /**
   * Network of the last verified caller, time of its call, and time of the last call of a verified caller from another
   * network, in monotonic ms.
   */
  knownFrom: string | undefined;
  knownAt: number;
  otherAt: number;
  /** Calls refused in the last minute. Undefined before the first refusal. */
  refused: RecentCount | undefined;
  /** Maximum number of calls in a minute and in a day; 0 means no quota. They may change at any time. */
  perMinute: number;
  perDay: number;
  /** The configured limits that were last applied, and for how many processes. Undefined for a derived half limiter. */
  fitted: KeyLimits | undefined;
  processes: number;
  /** This process's reservations from the quotas. Undefined before the first call under a quota. */
  minute: Reserve | undefined;
  day: Reserve | undefined;
};

export const queueLength = 50;
/**
 * Number of limiters above which unused ones are removed. They are removed in occasional sweeps, not after each call.
 */
const sweepAbove = 10_000;

export type LaneBookOptions = {
  /** Maximum number of concurrent calls with one credential; 0 means no limit. */
  concurrentPerKey: number;
  /** Returns monotonic ms. */
  clock: () => number;
  /** Number of processes, each of which gets a share of every limit. One if absent. */
  processes?: Processes;
};

/** The limiters of one kind in use, by id. */
type Lanes = { of: LaneOf; byId: Map<string, Lane>; most: number };

const lanes = (of: LaneOf): Lanes => ({ of, byId: new Map(), most: sweepAbove });
const noLimits: KeyLimits = {};
const noKeys: readonly LimitedKey[] = [];

/**
 * Finds the limiters of calls. A call takes a slot of its credential, its server, and its workspace, and counts in the
 * limits of its API key and of each key from which that key was created. All unverified callers of one address count as
 * one credential. While verified callers use a server or workspace, all unverified callers together get half of it.
 * While there are verified callers from other addresses, all callers of one address without an API key or login also
 * get half of it.
 */
export class LaneBook {
  readonly #options: LaneBookOptions;
  readonly #keys = lanes('key');
  readonly #limitedKeys = lanes('key');
  readonly #addresses = lanes('address');
  readonly #halvesOfAddress = lanes('address');
  readonly #halvesOfStrangers = lanes('strangers');
  readonly #servers = lanes('server');
  readonly #workspaces = lanes('workspace');

  constructor(options: LaneBookOptions) {
    this.#options = options;
  }

  /**
   * Returns the limiters in the order in which the call takes slots. The last two are those of the server and of the
   * workspace.
   */
  lanesOf({ id, workspaceId, limits: of }: Limited, caller: LimitedCaller, now: number): Lane[] {
    const { concurrentPerKey, processes: { count } = { count: 1 } } = this.#options;
    const server = laneOf(this.#servers, id, now);
    if (server.fitted !== of.server || server.processes !== count)
      fit(server, of.server, of.server.concurrentCalls, count);
    const workspace = laneOf(this.#workspaces, workspaceId, now);
    if (workspace.tenant === '') workspace.tenant = tenantOf(workspaceId);
    if (workspace.fitted !== of.workspace || workspace.processes !== count)
      fit(workspace, of.workspace, of.workspace.concurrentCalls, count);
    const found: Lane[] = [];
    const { limits: limitedKeys = noKeys, network } = caller;
    // If any credential is accepted, a caller has no id.
    if (caller.id !== undefined && concurrentPerKey !== 0) {
      const own = caller.isKnown
        ? laneOf(this.#keys, caller.id, now)
        : laneOf(this.#addresses, `${id} ${network}`, now);
      if (own.fitted !== noLimits || own.processes !== count) fit(own, noLimits, concurrentPerKey, count);
      found.push(own);
    }
    for (const { id: key, limits } of limitedKeys) {
      const limited = laneOf(this.#limitedKeys, key, now);
      if (limited.fitted !== limits || limited.processes !== count) fit(limited, limits, 0, count);
      found.push(limited);
    }
    if (caller.keyId === undefined) {
      this.#addHalves(found, server, caller, now);
      this.#addHalves(found, workspace, caller, now);
    }
    found.push(server, workspace);
    return found;
  }

  #addHalves(found: Lane[], whole: Lane, { network = '', isKnown }: LimitedCaller, now: number): void {
    if (now - (whole.knownFrom === network ? whole.otherAt : whole.knownAt) < knownMs)
      found.push(halfOf(laneOf(this.#halvesOfAddress, `${whole.id} ${network}`, now), whole));
    if (isKnown || now - whole.knownAt >= knownMs) return;
    const strangers = halfOf(laneOf(this.#halvesOfStrangers, whole.id, now), whole);
    // An address has no quotas. They are counted in the database, which stores no addresses.
    strangers.perMinute = half(whole.perMinute);
    strangers.perDay = half(whole.perDay);
    found.push(strangers);
  }

  findServer(id: string): Lane | undefined {
    return this.#servers.byId.get(id);
  }

  findWorkspace(id: string): Lane | undefined {
    return this.#workspaces.byId.get(id);
  }
}

function laneOf(kind: Lanes, id: string, now: number): Lane {
  const { of, byId } = kind;
  const known = byId.get(id);
  if (known) return known;
  if (byId.size >= kind.most) {
    for (const [old, lane] of byId) if (isIdle(lane, now)) byId.delete(old);
    kind.most = Math.max(sweepAbove, byId.size * 2);
  }
  const limits = { slots: 0, rate: 0, perMinute: 0, perDay: 0, fitted: undefined, processes: 0 };
  const use = { running: 0, inside: 0, waiting: [], dueAt: 0, refused: undefined, minute: undefined, day: undefined };
  const never = Number.NEGATIVE_INFINITY;
  const lane: Lane = { of, id, tenant: '', ...limits, ...use, knownFrom: undefined, knownAt: never, otherAt: never };
  byId.set(id, lane);
  return lane;
}

function isIdle(lane: Lane, now: number): boolean {
  return lane.inside === 0 && lane.dueAt <= now && !(lane.refused && recentTotal(lane.refused, now) > 0);
}

/** Applies limits to a limiter, with a share for this process. */
function fit(lane: Lane, limits: KeyLimits, concurrentCalls: number, processes: number): void {
  lane.fitted = limits;
  lane.processes = processes;
  const { callsPerSecond = 0, callsPerMinute = 0, callsPerDay = 0 } = limits;
  lane.slots = shareOf(concurrentCalls, processes);
  lane.rate = callsPerSecond === 0 ? 0 : Math.max(Math.min(1, callsPerSecond), callsPerSecond / processes);
  lane.perMinute = callsPerMinute;
  lane.perDay = callsPerDay;
}

function halfOf(lane: Lane, whole: Lane): Lane {
  lane.slots = half(whole.slots);
  lane.rate = whole.rate / 2;
  return lane;
}

/** Returns half of a limit; 0 means no limit and stays 0. */
function half(slots: number): number {
  return slots === 0 ? 0 : Math.max(1, Math.floor(slots / 2));
}

/** Records a call of a verified caller in the limiters of its server and its workspace, which are the last two. */
export function noteKnown(lanes: readonly Lane[], { keyId, network }: LimitedCaller, now: number): void {
  const from = keyId === undefined ? network : undefined;
  for (const lane of lanes.slice(-2)) {
    if (lane.knownFrom !== from) lane.otherAt = lane.knownAt;
    lane.knownFrom = from;
    lane.knownAt = now;
  }
}

/** Returns true if a call may run immediately, without overtaking a waiting one. */
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
    lane.waiting.shift()?.();
  }
}

/**
 * Waits in the queue of a limiter, first come, first served. Resolves with `started` when the slot is taken, with
 * `late` after `forMs` (excluding time in which this process was paused), and with `gone` when the client disconnects.
 */
export function waitForSlot(
  lane: Lane,
  forMs: number,
  onGone: ((cancel: () => void) => void) | undefined,
): Promise<'started' | 'late' | 'gone'> {
  return new Promise((resolve) => {
    const start = () => {
      cancel();
      resolve('started');
    };
    const giveUp = (how: 'late' | 'gone') => {
      const at = lane.waiting.indexOf(start);
      if (at < 0) return;
      lane.waiting.splice(at, 1);
      cancel();
      resolve(how);
    };
    const cancel = afterRunning(forMs, () => giveUp('late'));
    lane.waiting.push(start);
    onGone?.(() => giveUp('gone'));
    // The limit may have been raised since the other calls started to wait.
    advance(lane);
  });
}
