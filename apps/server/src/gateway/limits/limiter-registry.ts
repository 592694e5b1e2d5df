import { getTenantId } from '@toolhost/credentials/ids';
import {
  type CallLimits,
  getProcessShare,
  type KeyLimits,
  type LimitedKey,
  type Processes,
} from '@toolhost/limits/call-limits';
import { setRunningTimeout } from '@toolhost/limits/running-time';
import { type Caller, verifiedTtlMs } from '../callers/caller.ts';
import type { QuotaReservation } from './call-quotas.ts';
import { getRecentTotal, type RecentCount } from './circuit-breakers.ts';

/** The called server, as limits see it. */
export type LimitedServer = {
  id: string;
  workspaceId: string;
  limits: { server: CallLimits; workspace: CallLimits };
};

/** The caller of a server, as limits see it. */
export type LimitedCaller = Pick<Caller, 'id' | 'keyId' | 'network' | 'isVerified' | 'limitedKeys'>;

/**
 * Scopes of limiters: the calls of one credential, of one address, of all unverified callers of a server or workspace,
 * or of one server or workspace.
 */
export const limiterKinds = ['key', 'address', 'unverified', 'server', 'workspace'] as const;
export type LimiterKind = (typeof limiterKinds)[number];

/** One limit in use: the calls that run under it, and those that wait for a slot. */
export type Limiter = {
  kind: LimiterKind;
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
  inFlight: number;
  /** Functions that start the waiting calls, first come, first served. */
  queue: (() => void)[];
  /** Theoretical arrival time of the next call (generic cell rate algorithm), in monotonic ms. */
  nextAllowedAt: number;
  /** Network and time of the last verified call, and time of the last one from another network, in monotonic ms. */
  verifiedNetwork: string | undefined;
  verifiedAt: number;
  otherVerifiedAt: number;
  /** Calls refused in the last minute. Undefined before the first refusal. */
  recentRefusals: RecentCount | undefined;
  /** Maximum number of calls in a minute and in a day; 0 means no quota. They may change at any time. */
  perMinute: number;
  perDay: number;
  /** The configured limits that were last applied, and for how many processes. Undefined for a derived half limiter. */
  appliedLimits: KeyLimits | undefined;
  processes: number;
  /** This process's reservations from the quotas. Undefined before the first call under a quota. */
  minute: QuotaReservation | undefined;
  day: QuotaReservation | undefined;
};

export const maxQueueLength = 50;
/**
 * Number of limiters above which unused ones are removed. They are removed in occasional sweeps, not after each call.
 */
const sweepThreshold = 10_000;

export type LimiterRegistryOptions = {
  /** Maximum number of concurrent calls with one credential; 0 means no limit. */
  concurrentPerKey: number;
  /** Returns monotonic ms. */
  clock: () => number;
  /** Number of processes, each of which gets a share of every limit. One if absent. */
  processes?: Processes;
};

/** The limiters of one kind in use, by id. */
type LimiterGroup = { kind: LimiterKind; byId: Map<string, Limiter>; sweepAt: number };

const createGroup = (kind: LimiterKind): LimiterGroup => ({ kind, byId: new Map(), sweepAt: sweepThreshold });
const noLimits: KeyLimits = {};
const noKeys: readonly LimitedKey[] = [];

/**
 * Finds the limiters of calls. A call takes a slot of its credential, its server, and its workspace, and counts in the
 * limits of its API key and of each key from which that key was created. All unverified callers of one address count as
 * one credential. While verified callers use a server or workspace, all unverified callers together get half of it.
 * While there are verified callers from other addresses, all callers of one address without an API key or login also
 * get half of it.
 */
export class LimiterRegistry {
  readonly #options: LimiterRegistryOptions;
  readonly #keys = createGroup('key');
  readonly #limitedKeys = createGroup('key');
  readonly #addresses = createGroup('address');
  readonly #addressHalves = createGroup('address');
  readonly #unverifiedHalves = createGroup('unverified');
  readonly #servers = createGroup('server');
  readonly #workspaces = createGroup('workspace');

  constructor(options: LimiterRegistryOptions) {
    this.#options = options;
  }

  /**
   * Returns the limiters in the order in which the call takes slots. The last two are those of the server and of the
   * workspace.
   */
  getLimiters(
    { id, workspaceId, limits: configuredLimits }: LimitedServer,
    caller: LimitedCaller,
    now: number,
  ): Limiter[] {
    const { concurrentPerKey, processes } = this.#options;
    const count = processes?.count ?? 1;
    const server = getLimiter(this.#servers, id, now);
    if (server.appliedLimits !== configuredLimits.server || server.processes !== count)
      applyLimits(server, configuredLimits.server, configuredLimits.server.concurrentCalls, count);
    const workspace = getLimiter(this.#workspaces, workspaceId, now);
    if (workspace.tenant === '') workspace.tenant = getTenantId(workspaceId);
    if (workspace.appliedLimits !== configuredLimits.workspace || workspace.processes !== count)
      applyLimits(workspace, configuredLimits.workspace, configuredLimits.workspace.concurrentCalls, count);
    const limiters: Limiter[] = [];
    const { limitedKeys = noKeys, network } = caller;
    // If any credential is accepted, a caller has no id.
    if (caller.id !== undefined && concurrentPerKey !== 0) {
      const callerLimiter = caller.isVerified
        ? getLimiter(this.#keys, caller.id, now)
        : getLimiter(this.#addresses, `${id} ${network}`, now);
      if (callerLimiter.appliedLimits !== noLimits || callerLimiter.processes !== count)
        applyLimits(callerLimiter, noLimits, concurrentPerKey, count);
      limiters.push(callerLimiter);
    }
    for (const { id: key, limits } of limitedKeys) {
      const keyLimiter = getLimiter(this.#limitedKeys, key, now);
      if (keyLimiter.appliedLimits !== limits || keyLimiter.processes !== count)
        applyLimits(keyLimiter, limits, 0, count);
      limiters.push(keyLimiter);
    }
    if (caller.keyId === undefined) {
      this.#addHalfLimiters(limiters, server, caller, now);
      this.#addHalfLimiters(limiters, workspace, caller, now);
    }
    limiters.push(server, workspace);
    return limiters;
  }

  /** Adds the limiters that give a caller half of the server or workspace with the limiter `base`. */
  #addHalfLimiters(limiters: Limiter[], base: Limiter, { network = '', isVerified }: LimitedCaller, now: number): void {
    const otherVerifiedAt = base.verifiedNetwork === network ? base.otherVerifiedAt : base.verifiedAt;
    if (now - otherVerifiedAt < verifiedTtlMs)
      limiters.push(applyHalf(getLimiter(this.#addressHalves, `${base.id} ${network}`, now), base));
    if (isVerified || now - base.verifiedAt >= verifiedTtlMs) return;
    const unverifiedHalf = applyHalf(getLimiter(this.#unverifiedHalves, base.id, now), base);
    // An address has no quotas. They are counted in the database, which stores no addresses.
    unverifiedHalf.perMinute = toHalf(base.perMinute);
    unverifiedHalf.perDay = toHalf(base.perDay);
    limiters.push(unverifiedHalf);
  }

  findServer(id: string): Limiter | undefined {
    return this.#servers.byId.get(id);
  }

  findWorkspace(id: string): Limiter | undefined {
    return this.#workspaces.byId.get(id);
  }
}

function getLimiter(group: LimiterGroup, id: string, now: number): Limiter {
  const { kind, byId } = group;
  const existing = byId.get(id);
  if (existing) return existing;
  if (byId.size >= group.sweepAt) {
    for (const [idleId, limiter] of byId) if (isIdle(limiter, now)) byId.delete(idleId);
    group.sweepAt = Math.max(sweepThreshold, byId.size * 2);
  }
  const limits = { slots: 0, rate: 0, perMinute: 0, perDay: 0, appliedLimits: undefined, processes: 0 };
  const usage = {
    running: 0,
    inFlight: 0,
    queue: [],
    nextAllowedAt: 0,
    recentRefusals: undefined,
    minute: undefined,
    day: undefined,
  };
  const never = Number.NEGATIVE_INFINITY;
  const newLimiter: Limiter = {
    kind,
    id,
    tenant: '',
    ...limits,
    ...usage,
    verifiedNetwork: undefined,
    verifiedAt: never,
    otherVerifiedAt: never,
  };
  byId.set(id, newLimiter);
  return newLimiter;
}

function isIdle(limiter: Limiter, now: number): boolean {
  return (
    limiter.inFlight === 0 &&
    limiter.nextAllowedAt <= now &&
    !(limiter.recentRefusals && getRecentTotal(limiter.recentRefusals, now) > 0)
  );
}

/** Applies limits to a limiter, with a share for this process. */
function applyLimits(limiter: Limiter, limits: KeyLimits, concurrentCalls: number, processes: number): void {
  limiter.appliedLimits = limits;
  limiter.processes = processes;
  const { callsPerSecond = 0, callsPerMinute = 0, callsPerDay = 0 } = limits;
  limiter.slots = getProcessShare(concurrentCalls, processes);
  limiter.rate = callsPerSecond === 0 ? 0 : Math.max(Math.min(1, callsPerSecond), callsPerSecond / processes);
  limiter.perMinute = callsPerMinute;
  limiter.perDay = callsPerDay;
}

function applyHalf(limiter: Limiter, base: Limiter): Limiter {
  limiter.slots = toHalf(base.slots);
  limiter.rate = base.rate / 2;
  return limiter;
}

/** Returns half of a limit; 0 means no limit and stays 0. */
function toHalf(slots: number): number {
  return slots === 0 ? 0 : Math.max(1, Math.floor(slots / 2));
}

/** Records a call of a verified caller in the limiters of its server and its workspace, which are the last two. */
export function recordVerifiedCall(limiters: readonly Limiter[], { keyId, network }: LimitedCaller, now: number): void {
  const callerNetwork = keyId === undefined ? network : undefined;
  for (const limiter of limiters.slice(-2)) {
    if (limiter.verifiedNetwork !== callerNetwork) limiter.otherVerifiedAt = limiter.verifiedAt;
    limiter.verifiedNetwork = callerNetwork;
    limiter.verifiedAt = now;
  }
}

/** Returns true if a call may run immediately, without overtaking a waiting one. */
export function hasSlot(limiter: Limiter): boolean {
  return limiter.slots === 0 || (limiter.running < limiter.slots && limiter.queue.length === 0);
}

export function releaseSlot(limiter: Limiter): void {
  limiter.running--;
  if (limiter.queue.length > 0) startWaiting(limiter);
}

function startWaiting(limiter: Limiter): void {
  while (limiter.queue.length > 0 && (limiter.slots === 0 || limiter.running < limiter.slots)) {
    limiter.running++;
    limiter.queue.shift()?.();
  }
}

/**
 * Waits in the queue of a limiter, first come, first served. Resolves with `started` when the slot is taken, with
 * `late` after `timeoutMs` (excluding pauses of this process), and with `gone` when the client disconnects.
 */
export function waitForSlot(
  limiter: Limiter,
  timeoutMs: number,
  onDisconnect: ((cancel: () => void) => void) | undefined,
): Promise<'started' | 'late' | 'gone'> {
  return new Promise((resolve) => {
    const start = () => {
      cancel();
      resolve('started');
    };
    const leaveQueue = (reason: 'late' | 'gone') => {
      const index = limiter.queue.indexOf(start);
      if (index < 0) return;
      limiter.queue.splice(index, 1);
      cancel();
      resolve(reason);
    };
    const cancel = setRunningTimeout(timeoutMs, () => leaveQueue('late'));
    limiter.queue.push(start);
    onDisconnect?.(() => leaveQueue('gone'));
    // The limit may have been raised since the other calls started to wait.
    startWaiting(limiter);
  });
}
