import type { LimitUse } from '../../domain/limits.ts';
import { runningNow } from '../../domain/work/running-time.ts';
import { AppError, plainFailure } from '../../errors.ts';
import type { QuotaCounter } from './call-quotas.ts';
import { countAt, createRecentCount, recentTotal } from './circuits.ts';
import {
  giveBack,
  hasSlot,
  type Lane,
  LaneBook,
  type LaneBookOptions,
  type LaneOf,
  type Limited,
  type LimitedCaller,
  laneKinds,
  noteKnown,
  queueLength,
  waitForSlot,
} from './lanes.ts';

export type LimitOptions = LaneBookOptions & {
  /** Event loop delay, in ms. */
  lag: { readonly ms: number };
  /** Maximum total time that a call waits for its slots, in ms, excluding time in which this process was paused. */
  queueMs: number;
  /** Maximum number of calls in the process, including waiting ones. */
  capacity?: number;
  quotas?: QuotaCounter;
};

/** The slots of one call, one in each of its limiters. Released with `leave`. */
export type Slots = readonly Lane[];

export type LimitsSnapshot = {
  running: number;
  waiting: number;
  /** Number of refusals since the start, by the limit that refused. */
  refused: Record<RefusedBy, number>;
};

/** Limits that refuse calls, as named in metrics. */
const refusals = [
  ...laneKinds.flatMap((of) => (['rate', 'concurrency', 'quota'] as const).map((kind) => `${of}_${kind}` as const)),
  'fair_share' as const,
  'overload' as const,
];
type RefusedBy = (typeof refusals)[number];

/** Registers a function to run when the client disconnects. */
type OnGone = (cancel: () => void) => void;

export const shedAboveMs = 200;
export const usualCapacity = 4000;
const minuteMs = 60_000;
/** Time whose rate an idle limiter may use in a burst, in ms. */
export const burstMs = 1000;

/** Admits calls, queues them briefly, or refuses them. */
export class Limits {
  readonly #options: LimitOptions;
  readonly #book: LaneBook;
  readonly #refused = Object.fromEntries(refusals.map((by) => [by, 0])) as Record<RefusedBy, number>;
  /** Number of calls in the process, by tenant and in total. */
  readonly #insideOf = new Map<string, number>();
  #inside = 0;
  #running = 0;

  constructor(options: LimitOptions) {
    this.#options = options;
    this.#book = new LaneBook(options);
  }

  /**
   * Takes the slots of a call. Returns a promise if it has to wait. `onGone` ends the wait early.
   * @throws AppError tooMany or unavailable, with the seconds to wait; ToolFailure cancelled
   */
  enter(server: Limited, caller: LimitedCaller, onGone?: OnGone): Slots | Promise<Slots> {
    const now = this.#options.clock();
    const lanes = this.#book.lanesOf(server, caller, now);
    const refused = this.#refusedNow(lanes, now);
    if (refused) throw this.#refusal(lanes, refused);
    const { tenant } = lanes.at(-1) as Lane;
    this.#insideOf.set(tenant, (this.#insideOf.get(tenant) ?? 0) + 1);
    this.#inside++;
    let mustWait = false;
    for (const lane of lanes) {
      lane.inside++;
      if (lane.rate !== 0) lane.dueAt = Math.max(now, lane.dueAt) + 1000 / lane.rate;
      if (lane.perMinute > 0 || lane.perDay > 0 || !hasSlot(lane)) mustWait = true;
    }
    if (mustWait) return this.#enterLater(lanes, onGone);
    for (const lane of lanes) lane.running++;
    this.#running++;
    return lanes;
  }

  /** Returns the reason why a call is refused immediately. A refused call does not count toward any rate. */
  #refusedNow(lanes: Slots, now: number): Refused | undefined {
    const { lag, capacity = usualCapacity } = this.#options;
    if (lag.ms > shedAboveMs) return { by: 'overload' };
    // A tenant may use at most as much capacity as is still free, so other tenants always find some.
    const ofTenant = this.#insideOf.get((lanes.at(-1) as Lane).tenant) ?? 0;
    if (ofTenant >= capacity - this.#inside) return { by: 'fair_share' };
    for (const lane of lanes) {
      const { of, rate: limit, slots } = lane;
      // Time until the next call is allowed by the rate (GCRA).
      const waitMs = limit === 0 ? 0 : lane.dueAt - now - burstMs;
      if (waitMs > 0) return { of, kind: 'rate', limit, waitMs };
      // Unverified callers wait in queues of many addresses, which share one bound.
      if (of === 'strangers' && slots !== 0 && lane.inside >= slots + queueLength) return this.#tooManyAtOnce(lane);
    }
    return undefined;
  }

  /** Counts the call in its quotas, and waits for its slots. */
  async #enterLater(lanes: Slots, onGone: OnGone | undefined): Promise<Slots> {
    const { clock, quotas } = this.#options;
    const askedAt = clock();
    const usedUp = await quotas?.take(lanes);
    if (usedUp) {
      this.#giveUp(lanes, 0);
      throw this.#refusal(lanes, usedUp);
    }
    const taken: Lane[] = [];
    try {
      await this.#takeSlots(lanes, taken, onGone);
    } catch (error) {
      this.#giveUp(lanes, taken.length);
      quotas?.giveBack(lanes, clock() - askedAt);
      throw error;
    }
    this.#running++;
    return lanes;
  }

  /**
   * Takes the slots one limiter after the other. A call that waits for its key has no slot of the server, and one that
   * waits for its server has no slot of the workspace.
   */
  async #takeSlots(lanes: Slots, taken: Lane[], onGone: OnGone | undefined): Promise<void> {
    const until = runningNow() + this.#options.queueMs;
    for (const lane of lanes) {
      if (hasSlot(lane)) lane.running++;
      else {
        const isFull = lane.waiting.length >= queueLength;
        const how = isFull ? 'late' : await waitForSlot(lane, Math.max(0, until - runningNow()), onGone);
        if (how === 'gone') throw plainFailure('cancelled', 'the client disconnected');
        if (how === 'late') throw this.#refusal(lanes, this.#tooManyAtOnce(lane));
      }
      taken.push(lane);
    }
  }

  leave(slots: Slots, caller?: LimitedCaller): void {
    const { clock } = this.#options;
    if (caller?.isKnown) noteKnown(slots, caller, clock());
    const { tenant } = slots.at(-1) as Lane;
    const left = (this.#insideOf.get(tenant) ?? 1) - 1;
    if (left > 0) this.#insideOf.set(tenant, left);
    else this.#insideOf.delete(tenant);
    this.#running--;
    this.#inside--;
    for (let at = slots.length - 1; at >= 0; at--) {
      const lane = slots[at] as Lane;
      lane.inside--;
      giveBack(lane);
    }
  }

  /** Takes the slots that are missing after the first `taken`, and then releases all of them. */
  #giveUp(lanes: Slots, taken: number): void {
    for (const lane of lanes.slice(taken)) lane.running++;
    this.#running++;
    this.leave(lanes);
  }

  #tooManyAtOnce({ of, slots }: Lane): Refused {
    return { of, kind: 'concurrency', limit: slots, waitMs: this.#options.queueMs };
  }

  /** Counts a refusal for the server and the workspace, which are the last two limiters. */
  #refusal(lanes: Slots, why: Refused): AppError {
    const { clock, processes } = this.#options;
    this.#refused[refusedBy(why)]++;
    for (const lane of lanes.slice(-2)) {
      lane.refused ??= createRecentCount(minuteMs, 12);
      countAt(lane.refused, clock());
    }
    return refusal(why, processes?.count ?? 1);
  }

  serverUse(id: string): LimitUse {
    return presentUse(this.#book.findServer(id), this.#options.clock);
  }

  workspaceUse(id: string): LimitUse {
    return presentUse(this.#book.findWorkspace(id), this.#options.clock);
  }

  /** Returns the counters of the whole process, for metrics. */
  snapshot(): LimitsSnapshot {
    return { running: this.#running, waiting: this.#inside - this.#running, refused: { ...this.#refused } };
  }
}

function presentUse(lane: Lane | undefined, clock: () => number): LimitUse {
  if (!lane) return { running: 0, waiting: 0, refused: 0 };
  const refused = lane.refused ? recentTotal(lane.refused, clock()) : 0;
  return { running: lane.running, waiting: lane.inside - lane.running, refused };
}

/** Reason for refusing a call: the process is too busy, or the call has reached a limit. */
type Refused =
  | { by: 'fair_share' | 'overload' }
  | { of: LaneOf; limit: number; waitMs: number; kind: 'rate' | 'concurrency' | 'minute' | 'day' };

function refusedBy(refused: Refused): RefusedBy {
  if ('by' in refused) return refused.by;
  const { of, kind } = refused;
  return `${of}_${kind === 'minute' || kind === 'day' ? 'quota' : kind}`;
}

/** Subject of the sentence about a limit, and the ending of its verb. */
const subjects: Record<LaneOf, [subject: string, ending: '' | 's']> = {
  server: ['this server', 's'],
  workspace: ['all servers of this workspace together', ''],
  key: ['one credential', 's'],
  address: ['unverified callers from one address', ''],
  strangers: ['unverified callers, while verified callers use the server,', ''],
};

/** Only API keys have limits other than the number of concurrent calls. */
const keySubject = ['an API key and the keys created with it together', ''] as const;

/** Creates an error that tells an agent which limit was reached, that nothing happened, and what to do. */
function refusal(refused: Refused, processes: number): AppError {
  const waitMs = 'by' in refused ? 1000 : refused.waitMs;
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const isUsedUp = 'kind' in refused && (refused.kind === 'minute' || refused.kind === 'day');
  const advice = 'by' in refused || isUsedUp ? '' : ' with fewer parallel calls';
  const message = `${reasonOf(refused, processes)}. The call was not made; retry in ${seconds} s${advice}.`;
  return new AppError('by' in refused ? 'unavailable' : 'tooMany', message, { retryAfterS: seconds });
}

function reasonOf(refused: Refused, processes: number): string {
  if ('by' in refused) {
    return refused.by === 'overload'
      ? 'The service is overloaded'
      : 'The service is busy, and the workspaces of this owner have used their share';
  }
  const isLimitOfKey = refused.of === 'key' && refused.kind !== 'concurrency';
  const [subject, ending] = isLimitOfKey ? keySubject : subjects[refused.of];
  // Quotas are counted for all processes together; each process has its share of the other limits.
  const each = processes > 1 ? ` in each of ${processes} processes` : '';
  const limit = `${Math.round(refused.limit * 100) / 100}`;
  switch (refused.kind) {
    case 'concurrency':
      return `Too many parallel calls: ${subject} run${ending} at most ${limit} at a time${each}`;
    case 'rate':
      return `Too many calls: ${subject} get${ending} at most ${limit} per second${each}`;
    default:
      return `Too many calls: ${subject} get${ending} at most ${limit} per ${refused.kind}, and all of them were used`;
  }
}
