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
  /** How late the event loop is, in ms. */
  lag: { readonly ms: number };
  /** How long a call waits for all its slots together, in ms in which this process ran. */
  queueMs: number;
  /** Calls that may be in the process at once, including those that wait. */
  capacity?: number;
  quotas?: QuotaCounter;
};

/** The slots of one call, one in each of its lanes; released with `leave`. */
export type Slots = readonly Lane[];

export type LimitsSnapshot = {
  running: number;
  waiting: number;
  /** Refusals since the start, by the limit that refused. */
  refused: Record<RefusedBy, number>;
};

/** Limits that refuse calls, as metrics name them. */
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
/** Time whose worth of its rate an idle lane may use at once. */
export const burstMs = 1000;

/** Admits calls, lets them wait for a moment, or refuses them. */
export class Limits {
  readonly #options: LimitOptions;
  readonly #book: LaneBook;
  readonly #refused = Object.fromEntries(refusals.map((by) => [by, 0])) as Record<RefusedBy, number>;
  /** Calls in the process, by tenant and in all. */
  readonly #insideOf = new Map<string, number>();
  #inside = 0;
  #running = 0;

  constructor(options: LimitOptions) {
    this.#options = options;
    this.#book = new LaneBook(options);
  }

  /**
   * Takes the slots of a call; returns a promise if it has to wait. `onGone` ends the waiting early.
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

  /** Why a call is refused at once; it then counts in no rate. */
  #refusedNow(lanes: Slots, now: number): Refused | undefined {
    const { lag, capacity = usualCapacity } = this.#options;
    if (lag.ms > shedAboveMs) return { by: 'overload' };
    // A tenant may use at most as much as is still free, so another tenant always finds capacity.
    const ofTenant = this.#insideOf.get((lanes.at(-1) as Lane).tenant) ?? 0;
    if (ofTenant >= capacity - this.#inside) return { by: 'fair_share' };
    for (const lane of lanes) {
      const { of, rate: limit, slots } = lane;
      // How long until the next call is due under the rate (GCRA).
      const waitMs = limit === 0 ? 0 : lane.dueAt - now - burstMs;
      if (waitMs > 0) return { of, kind: 'rate', limit, waitMs };
      // Strangers wait in queues of many addresses, which are bounded together.
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
   * Takes the slots lane by lane. A call that waits for its key holds no slot of the server, and one that waits for its
   * server holds none of the workspace.
   */
  async #takeSlots(lanes: Slots, taken: Lane[], onGone: OnGone | undefined): Promise<void> {
    const until = runningNow() + this.#options.queueMs;
    for (const lane of lanes) {
      if (hasSlot(lane)) lane.running++;
      else {
        const isFull = lane.waiting.length >= queueLength;
        const how = isFull ? 'late' : await waitForSlot(lane, Math.max(0, until - runningNow()), onGone);
        if (how === 'gone') throw plainFailure('cancelled', 'the caller went away');
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

  /** Takes the slots that are missing behind the first `taken`, and then leaves with all. */
  #giveUp(lanes: Slots, taken: number): void {
    for (const lane of lanes.slice(taken)) lane.running++;
    this.#running++;
    this.leave(lanes);
  }

  #tooManyAtOnce({ of, slots }: Lane): Refused {
    return { of, kind: 'concurrency', limit: slots, waitMs: this.#options.queueMs };
  }

  /** Counts a refusal for the server and the workspace, which are the last two lanes. */
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

  /** Counters of the whole process, for metrics. */
  snapshot(): LimitsSnapshot {
    return { running: this.#running, waiting: this.#inside - this.#running, refused: { ...this.#refused } };
  }
}

function presentUse(lane: Lane | undefined, clock: () => number): LimitUse {
  if (!lane) return { running: 0, waiting: 0, refused: 0 };
  const refused = lane.refused ? recentTotal(lane.refused, clock()) : 0;
  return { running: lane.running, waiting: lane.inside - lane.running, refused };
}

/** Why a call is refused: the process is too busy, or a limit of one of its lanes is reached. */
type Refused =
  | { by: 'fair_share' | 'overload' }
  | { of: LaneOf; limit: number; waitMs: number; kind: 'rate' | 'concurrency' | 'minute' | 'day' };

function refusedBy(refused: Refused): RefusedBy {
  if ('by' in refused) return refused.by;
  const { of, kind } = refused;
  return `${of}_${kind === 'minute' || kind === 'day' ? 'quota' : kind}`;
}

/** The subject of the sentence about a limit, and the ending of its verb. */
const subjects: Record<LaneOf, [subject: string, ending: '' | 's']> = {
  server: ['this server', 's'],
  workspace: ['the servers of this workspace together', ''],
  key: ['one credential', 's'],
  address: ['credentials that are not known to be good, sent from one address,', ''],
  strangers: ['credentials that are not known to be good, beside others that are in use,', ''],
};

/** Only API keys have limits other than that of concurrent calls. */
const keySubject = ['an API key and the keys made with it together', ''] as const;

/** An error that says to an agent which limit it was, that nothing happened, and what to do. */
function refusal(refused: Refused, processes: number): AppError {
  const waitMs = 'by' in refused ? 1000 : refused.waitMs;
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const isUsedUp = 'kind' in refused && (refused.kind === 'minute' || refused.kind === 'day');
  const advice = 'by' in refused || isUsedUp ? '' : ', with fewer calls at a time';
  const message = `${reasonOf(refused, processes)}; this call was not made, try again in ${seconds} s${advice}`;
  return new AppError('by' in refused ? 'unavailable' : 'tooMany', message, { retryAfterS: seconds });
}

function reasonOf(refused: Refused, processes: number): string {
  if ('by' in refused) {
    return refused.by === 'overload'
      ? 'the service is overloaded for the moment'
      : 'the service is busy, and this workspace and the others of its creator have their share of it under way';
  }
  const isLimitOfKey = refused.of === 'key' && refused.kind !== 'concurrency';
  const [subject, ending] = isLimitOfKey ? keySubject : subjects[refused.of];
  // Quotas are counted for all processes together; each process has its share of the other limits.
  const each = processes > 1 ? ` in each of ${processes} processes` : '';
  const limit = `${Math.round(refused.limit * 100) / 100}`;
  switch (refused.kind) {
    case 'concurrency':
      return `too many calls at once: ${subject} run${ending} ${limit} at a time${each}`;
    case 'rate':
      return `too many calls: ${subject} take${ending} ${limit} a second${each}`;
    default:
      return `too many calls: ${subject} take${ending} ${limit} a ${refused.kind}, and they are used up`;
  }
}
