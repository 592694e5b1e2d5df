import { AppError, recordableFailure } from '@toolhost/errors/errors';
import type { LimitUse } from '@toolhost/limits/call-limits';
import { getFairShare } from '@toolhost/limits/concurrency-limiter';
import { getRunningTimeMs } from '@toolhost/limits/running-time';
import type { QuotaCounter } from './call-quotas.ts';
import { countEvent, createRecentCount, getRecentTotal } from './circuit-breakers.ts';
import {
  type LimitedCaller,
  type LimitedServer,
  type Limiter,
  type LimiterKind,
  LimiterRegistry,
  type LimiterRegistryOptions,
  limiterKinds,
  maxQueueLength,
  recordVerifiedCall,
} from './limiter-registry.ts';

export type LimitOptions = LimiterRegistryOptions & {
  /** Event loop delay, in ms. */
  lag: { readonly ms: number };
  /** Maximum total time that a call waits for its slots, in ms, excluding time in which this process was paused. */
  queueMs: number;
  /** Maximum number of calls in the process, including waiting ones. */
  capacity?: number;
  quotas?: QuotaCounter;
};

/** The slots of one call, one in each of its limiters. Released with `leave`. */
export type Slots = readonly Limiter[];

export type LimitsSnapshot = {
  running: number;
  waiting: number;
  /** Number of refusals since the start, by the limit that refused. */
  refused: Record<RefusingLimit, number>;
};

/** Limits that refuse calls, as named in metrics. */
const refusingLimits = [
  ...limiterKinds.flatMap((limiterKind) =>
    (['rate', 'concurrency', 'quota'] as const).map((kind) => `${limiterKind}_${kind}` as const),
  ),
  'fair_share' as const,
  'overload' as const,
];
type RefusingLimit = (typeof refusingLimits)[number];

/** Registers a function to run when the client disconnects. */
type OnDisconnect = (cancel: () => void) => void;

/** Event loop delay above which all calls are refused, in ms. */
export const shedAboveMs = 200;
export const defaultCapacity = 4000;
const minuteMs = 60_000;
/** Number of slots in which the refusals of a minute are counted. */
const refusalSlots = 12;
/** Time whose rate an idle limiter may use in a burst, in ms. */
export const burstMs = 1000;

/** Admits calls, queues them briefly, or refuses them. */
export class Limits {
  readonly #options: LimitOptions;
  readonly #registry: LimiterRegistry;
  readonly #refused = Object.fromEntries(refusingLimits.map((limitName) => [limitName, 0])) as Record<
    RefusingLimit,
    number
  >;
  /** Number of calls in the process, by tenant and in total. */
  readonly #inFlightByTenant = new Map<string, number>();
  #inFlight = 0;
  #running = 0;

  constructor(options: LimitOptions) {
    this.#options = options;
    this.#registry = new LimiterRegistry(options);
  }

  /**
   * Takes the slots of a call. Returns a promise if it has to wait. `onDisconnect` ends the wait early.
   * @throws AppError tooMany or unavailable, with the seconds to wait; ToolFailure cancelled
   */
  enter(server: LimitedServer, caller: LimitedCaller, onDisconnect?: OnDisconnect): Slots | Promise<Slots> {
    const now = this.#options.clock();
    const limiters = this.#registry.getLimiters(server, caller, now);
    const refusal = this.#getImmediateRefusal(limiters, now);
    if (refusal) throw this.#createRefusal(limiters, refusal);
    const { tenant } = limiters.at(-1) as Limiter;
    this.#inFlightByTenant.set(tenant, (this.#inFlightByTenant.get(tenant) ?? 0) + 1);
    this.#inFlight++;
    let hasToWait = false;
    for (const limiter of limiters) {
      limiter.inFlight++;
      if (limiter.rate !== 0) limiter.nextAllowedAt = Math.max(now, limiter.nextAllowedAt) + 1000 / limiter.rate;
      if (limiter.perMinute > 0 || limiter.perDay > 0 || !limiter.hasSlot()) hasToWait = true;
    }
    if (hasToWait) return this.#enterAfterWait(limiters, onDisconnect);
    for (const limiter of limiters) limiter.running++;
    this.#running++;
    return limiters;
  }

  /** Returns the reason why a call is refused immediately. A refused call does not count toward any rate. */
  #getImmediateRefusal(limiters: readonly Limiter[], now: number): Refusal | undefined {
    const { lag, capacity = defaultCapacity } = this.#options;
    if (lag.ms > shedAboveMs) return { by: 'overload' };
    // While less than half of the capacity is used, each tenant has less than its share.
    if (this.#inFlight * 2 >= capacity && this.#hasUsedShare(limiters, capacity)) return { by: 'fair_share' };
    for (const limiter of limiters) {
      const { kind, rate: limit, slots } = limiter;
      // Time until the rate allows the next call.
      const waitMs = limit === 0 ? 0 : limiter.nextAllowedAt - now - burstMs;
      if (waitMs > 0) return { kind, span: 'rate', limit, waitMs };
      // Unverified callers wait in queues of many addresses, which share one bound.
      if (kind === 'unverified' && slots !== 0 && limiter.inFlight >= slots + maxQueueLength)
        return this.#toConcurrencyRefusal(limiter);
    }
    return undefined;
  }

  #hasUsedShare(limiters: readonly Limiter[], capacity: number): boolean {
    const tenantInFlight = this.#inFlightByTenant.get((limiters.at(-1) as Limiter).tenant) ?? 0;
    return tenantInFlight >= getFairShare(capacity - this.#inFlight, tenantInFlight);
  }

  /** Counts the call in its quotas, and waits for its slots. */
  async #enterAfterWait(limiters: readonly Limiter[], onDisconnect: OnDisconnect | undefined): Promise<Slots> {
    const { clock, quotas } = this.#options;
    const countedAt = clock();
    const exhausted = await quotas?.count(limiters);
    if (exhausted) {
      this.#abandon(limiters, 0);
      throw this.#createRefusal(limiters, exhausted);
    }
    const takenSlots: Limiter[] = [];
    try {
      await this.#takeSlots(limiters, takenSlots, onDisconnect);
    } catch (error) {
      this.#abandon(limiters, takenSlots.length);
      quotas?.refund(limiters, clock() - countedAt);
      throw error;
    }
    this.#running++;
    return limiters;
  }

  /**
   * Takes the slots one limiter after the other. A call that waits for its key has no slot of the server, and one that
   * waits for its server has no slot of the workspace.
   */
  async #takeSlots(
    limiters: readonly Limiter[],
    takenSlots: Limiter[],
    onDisconnect: OnDisconnect | undefined,
  ): Promise<void> {
    const deadline = getRunningTimeMs() + this.#options.queueMs;
    for (const limiter of limiters) {
      if (limiter.hasSlot()) limiter.running++;
      else {
        const isQueueFull = limiter.queue.length >= maxQueueLength;
        const waitResult = isQueueFull
          ? 'late'
          : await limiter.waitForSlot(Math.max(0, deadline - getRunningTimeMs()), onDisconnect);
        if (waitResult === 'gone') throw recordableFailure('cancelled', 'the client disconnected');
        if (waitResult === 'late') throw this.#createRefusal(limiters, this.#toConcurrencyRefusal(limiter));
      }
      takenSlots.push(limiter);
    }
  }

  leave(slots: Slots, caller?: LimitedCaller): void {
    const { clock } = this.#options;
    if (caller?.isVerified) recordVerifiedCall(slots, caller, clock());
    const { tenant } = slots.at(-1) as Limiter;
    const remaining = (this.#inFlightByTenant.get(tenant) ?? 1) - 1;
    if (remaining > 0) this.#inFlightByTenant.set(tenant, remaining);
    else this.#inFlightByTenant.delete(tenant);
    this.#running--;
    this.#inFlight--;
    for (let index = slots.length - 1; index >= 0; index--) {
      const limiter = slots[index] as Limiter;
      limiter.inFlight--;
      limiter.releaseSlot();
    }
  }

  /** Takes the slots that are missing after the first `takenCount`, and then releases all of them. */
  #abandon(limiters: readonly Limiter[], takenCount: number): void {
    for (const limiter of limiters.slice(takenCount)) limiter.running++;
    this.#running++;
    this.leave(limiters);
  }

  #toConcurrencyRefusal({ kind, slots }: Limiter): Refusal {
    return { kind, span: 'concurrency', limit: slots, waitMs: this.#options.queueMs };
  }

  /** Creates the error of a refusal, and counts it for the server and workspace, which are the last two limiters. */
  #createRefusal(limiters: readonly Limiter[], refusal: Refusal): AppError {
    const { clock, processes } = this.#options;
    this.#refused[toRefusingLimit(refusal)]++;
    for (const limiter of limiters.slice(-2)) {
      limiter.recentRefusals ??= createRecentCount(minuteMs, refusalSlots);
      countEvent(limiter.recentRefusals, clock());
    }
    return createRefusalError(refusal, processes?.count ?? 1);
  }

  getServerUsage(id: string): LimitUse {
    return toUsage(this.#registry.findServer(id), this.#options.clock);
  }

  getWorkspaceUsage(id: string): LimitUse {
    return toUsage(this.#registry.findWorkspace(id), this.#options.clock);
  }

  /** Returns the counters of the whole process, for metrics. */
  snapshot(): LimitsSnapshot {
    return { running: this.#running, waiting: this.#inFlight - this.#running, refused: { ...this.#refused } };
  }
}

function toUsage(limiter: Limiter | undefined, clock: () => number): LimitUse {
  if (!limiter) return { running: 0, waiting: 0, refused: 0 };
  const recentRefusals = limiter.recentRefusals ? getRecentTotal(limiter.recentRefusals, clock()) : 0;
  return { running: limiter.running, waiting: limiter.inFlight - limiter.running, refused: recentRefusals };
}

/** Reason for refusing a call: the process is too busy, or the call has reached a limit. */
type Refusal =
  | { by: 'fair_share' | 'overload' }
  | { kind: LimiterKind; limit: number; waitMs: number; span: 'rate' | 'concurrency' | 'minute' | 'day' };

function toRefusingLimit(refusal: Refusal): RefusingLimit {
  if ('by' in refusal) return refusal.by;
  const { kind: limiterKind, span } = refusal;
  return `${limiterKind}_${span === 'minute' || span === 'day' ? 'quota' : span}`;
}

/** Subject of the sentence about a limit, and the ending of its verb. */
const subjects: Record<LimiterKind, [subject: string, ending: '' | 's']> = {
  server: ['this server', 's'],
  workspace: ['all servers of this workspace together', ''],
  key: ['one credential', 's'],
  address: ['unverified callers from one address', ''],
  unverified: ['unverified callers, while verified callers use the server,', ''],
};

/** Only API keys have limits other than the number of concurrent calls. */
const keySubject = ['an API key and the keys created with it together', ''] as const;

/** Creates an error that tells an agent which limit was reached, that nothing happened, and what to do. */
function createRefusalError(refusal: Refusal, processes: number): AppError {
  const waitMs = 'by' in refusal ? 1000 : refusal.waitMs;
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const isExhausted = 'kind' in refusal && (refusal.span === 'minute' || refusal.span === 'day');
  const advice = 'by' in refusal || isExhausted ? '' : ' with fewer parallel calls';
  const message = `${formatReason(refusal, processes)}. The call was not made; retry in ${seconds} s${advice}.`;
  return new AppError('by' in refusal ? 'unavailable' : 'tooMany', message, { retryAfterS: seconds });
}

function formatReason(refusal: Refusal, processes: number): string {
  if ('by' in refusal) {
    return refusal.by === 'overload'
      ? 'The service is overloaded'
      : 'The service is busy, and the workspaces of this owner have used their share';
  }
  const isKeyLimit = refusal.kind === 'key' && refusal.span !== 'concurrency';
  const [subject, ending] = isKeyLimit ? keySubject : subjects[refusal.kind];
  // Quotas are counted for all processes together; each process has its share of the other limits.
  const processesText = processes > 1 ? ` in each of ${processes} processes` : '';
  const limit = `${Math.round(refusal.limit * 100) / 100}`;
  switch (refusal.span) {
    case 'concurrency':
      return `Too many parallel calls: ${subject} run${ending} at most ${limit} at a time${processesText}`;
    case 'rate':
      return `Too many calls: ${subject} get${ending} at most ${limit} per second${processesText}`;
    default:
      return `Too many calls: ${subject} get${ending} at most ${limit} per ${refusal.span}, and all of them were used`;
  }
}
