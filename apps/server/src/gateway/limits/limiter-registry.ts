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
export class Limiter {
  readonly kind: LimiterKind;
  /** Key under which its quotas are counted. */
  readonly id: string;
  /** Tenant of the workspace. Empty for all other limiters. */
  tenant = '';
  /** Maximum number of concurrent calls, and of calls per second; 0 means no limit. They may change at any time. */
  slots = 0;
  rate = 0;
  /** Maximum number of calls in a minute and in a day; 0 means no quota. They may change at any time. */
  perMinute = 0;
  perDay = 0;
  /** The configured limits that were last applied, and for how many processes. Undefined for a derived half limiter. */
  appliedLimits: KeyLimits | undefined;
  processes = 0;
  running = 0;
  /** Number of calls that run, wait here, or wait elsewhere and will come here. */
  inFlight = 0;
  /** Functions that start the waiting calls, first come, first served. */
  readonly queue: (() => void)[] = [];
  /** Theoretical arrival time of the next call (generic cell rate algorithm), in monotonic ms. */
  nextAllowedAt = 0;
  /** Network and time of the last verified call, and time of the last one from another network, in monotonic ms. */
  verifiedNetwork: string | undefined;
  verifiedAt = Number.NEGATIVE_INFINITY;
  otherVerifiedAt = Number.NEGATIVE_INFINITY;
  /** Calls refused in the last minute. Undefined before the first refusal. */
  recentRefusals: RecentCount | undefined;
  /** This process's reservations from the quotas. Undefined before the first call under a quota. */
  minute: QuotaReservation | undefined;
  day: QuotaReservation | undefined;

  constructor(kind: LimiterKind, id: string) {
    this.kind = kind;
    this.id = id;
  }

  /** Applies limits, with a share for this process. */
  apply(limits: KeyLimits, concurrentCalls: number, processes: number): void {
    this.appliedLimits = limits;
    this.processes = processes;
    const { callsPerSecond = 0, callsPerMinute = 0, callsPerDay = 0 } = limits;
    this.slots = getProcessShare(concurrentCalls, processes);
    this.rate = callsPerSecond === 0 ? 0 : Math.max(Math.min(1, callsPerSecond), callsPerSecond / processes);
    this.perMinute = callsPerMinute;
    this.perDay = callsPerDay;
  }

  applyHalfOf({ slots, rate }: Limiter): void {
    this.slots = toHalf(slots);
    this.rate = rate / 2;
  }

  isIdle(now: number): boolean {
    const hasRefusals = this.recentRefusals !== undefined && getRecentTotal(this.recentRefusals, now) > 0;
    return this.inFlight === 0 && this.nextAllowedAt <= now && !hasRefusals;
  }

  /** Returns true if a call may run immediately, without overtaking a waiting one. */
  hasSlot(): boolean {
    return this.slots === 0 || (this.running < this.slots && this.queue.length === 0);
  }

  releaseSlot(): void {
    this.running--;
    if (this.queue.length > 0) this.#startWaiting();
  }

  #startWaiting(): void {
    while (this.queue.length > 0 && (this.slots === 0 || this.running < this.slots)) {
      this.running++;
      this.queue.shift()?.();
    }
  }

  /**
   * Waits in the queue, first come, first served. Resolves with `started` when the slot is taken, with `late` after
   * `timeoutMs` (excluding pauses of this process), and with `gone` when the client disconnects.
   */
  waitForSlot(
    timeoutMs: number,
    onDisconnect: ((cancel: () => void) => void) | undefined,
  ): Promise<'started' | 'late' | 'gone'> {
    const { promise, resolve } = Promise.withResolvers<'started' | 'late' | 'gone'>();
    const start = () => {
      cancel();
      resolve('started');
    };
    const leaveQueue = (reason: 'late' | 'gone') => {
      const index = this.queue.indexOf(start);
      if (index < 0) return;
      this.queue.splice(index, 1);
      cancel();
      resolve(reason);
    };
    const cancel = setRunningTimeout(timeoutMs, () => leaveQueue('late'));
    this.queue.push(start);
    onDisconnect?.(() => leaveQueue('gone'));
    // The limit may have been raised since the other calls started to wait.
    this.#startWaiting();
    return promise;
  }
}

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
  getLimiters({ id, workspaceId, limits }: LimitedServer, caller: LimitedCaller, now: number): Limiter[] {
    const { concurrentPerKey } = this.#options;
    const server = this.#getLimiter(this.#servers, id, now, limits.server, limits.server.concurrentCalls);
    const workspace = this.#getLimiter(
      this.#workspaces,
      workspaceId,
      now,
      limits.workspace,
      limits.workspace.concurrentCalls,
    );
    if (workspace.tenant === '') workspace.tenant = getTenantId(workspaceId);
    const limiters: Limiter[] = [];
    const { limitedKeys = noKeys, network } = caller;
    // If any credential is accepted, a caller has no id.
    if (caller.id !== undefined && concurrentPerKey !== 0) {
      const group = caller.isVerified ? this.#keys : this.#addresses;
      const key = caller.isVerified ? caller.id : `${id} ${network}`;
      limiters.push(this.#getLimiter(group, key, now, noLimits, concurrentPerKey));
    }
    for (const key of limitedKeys) limiters.push(this.#getLimiter(this.#limitedKeys, key.id, now, key.limits));
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
    if (now - otherVerifiedAt < verifiedTtlMs) {
      const addressHalf = this.#getLimiter(this.#addressHalves, `${base.id} ${network}`, now);
      addressHalf.applyHalfOf(base);
      limiters.push(addressHalf);
    }
    if (isVerified || now - base.verifiedAt >= verifiedTtlMs) return;
    const unverifiedHalf = this.#getLimiter(this.#unverifiedHalves, base.id, now);
    unverifiedHalf.applyHalfOf(base);
    // An address has no quotas. They are counted in the database, which stores no addresses.
    unverifiedHalf.perMinute = toHalf(base.perMinute);
    unverifiedHalf.perDay = toHalf(base.perDay);
    limiters.push(unverifiedHalf);
  }

  /** Returns the limiter of an id, with its limits applied if they or the number of processes changed. */
  #getLimiter(group: LimiterGroup, id: string, now: number, limits?: KeyLimits, concurrentCalls = 0): Limiter {
    const limiter = group.byId.get(id) ?? addLimiter(group, id, now);
    const { count } = this.#options.processes ?? oneProcess;
    if (limits && (limiter.appliedLimits !== limits || limiter.processes !== count))
      limiter.apply(limits, concurrentCalls, count);
    return limiter;
  }

  findServer(id: string): Limiter | undefined {
    return this.#servers.byId.get(id);
  }

  findWorkspace(id: string): Limiter | undefined {
    return this.#workspaces.byId.get(id);
  }
}

const oneProcess: Processes = { count: 1 };

function addLimiter(group: LimiterGroup, id: string, now: number): Limiter {
  const { kind, byId } = group;
  if (byId.size >= group.sweepAt) {
    for (const [otherId, limiter] of byId) if (limiter.isIdle(now)) byId.delete(otherId);
    group.sweepAt = Math.max(sweepThreshold, byId.size * 2);
  }
  const limiter = new Limiter(kind, id);
  byId.set(id, limiter);
  return limiter;
}

/** Returns half of a limit; 0 means no limit and stays 0. */
function toHalf(limit: number): number {
  return limit === 0 ? 0 : Math.max(1, Math.floor(limit / 2));
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
