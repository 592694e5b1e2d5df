import { type Processes, shareOf } from '../../domain/limits.ts';
import { oneAtATime } from '../../store/changes/follow-changes.ts';
import { StoreFault } from '../../store/engine/faults.ts';
import type { QuotaGrant, QuotaPeriod, QuotaWish } from '../../store/workspaces.ts';
import type { Lane, LaneOf } from './lanes.ts';

/** The part of a quota that this process has reserved in one minute or day. */
export type Reserve = QuotaPeriod & {
  readonly endsAt: number;
  /** The quota as of the last call. */
  quota: number;
  /** Number of calls that were reserved from the quota and not made yet. */
  held: number;
  /** Number of calls to reserve next. It doubles each time, up to a fraction of the remaining quota. */
  step: number;
  /** True if a call was made since the last settlement. */
  isUsed: boolean;
  /** Number of calls to add in the database, or to return to it (negative). */
  owed: number;
  /** Number of calls that were made without a reservation, because the database was unavailable. */
  unasked: number;
  /** Time until which the quota counts as exhausted, in epoch ms. */
  usedUpUntil: number;
};

/**
 * An exhausted quota: its limiter kind, its period, the number of calls that it allows, and the time until it resets.
 */
type UsedUp = { of: LaneOf; kind: QuotaPeriod['span']; limit: number; waitMs: number };

export type QuotaCounterOptions = {
  /** Reserves calls. @throws database errors */
  take: (wishes: readonly QuotaWish[]) => Promise<QuotaGrant[]>;
  /** Settles calls. @throws database errors */
  settle: (uses: readonly (QuotaPeriod & { calls: number })[]) => Promise<void>;
  processes: Processes;
  /** Returns epoch ms. */
  now: () => number;
  onError: (error: unknown) => void;
  onSuccess: () => void;
};

const spans = { minute: 60_000, day: 86_400_000 };
const settleMs = 5000;
/**
 * Time after which an exhausted quota is requested again, in ms, because another process may have returned some calls.
 */
const againMs = 1000;
const firstStep = 8;
const mostAtOnce = 500;

/**
 * Counts calls in quotas per minute and per day (UTC), which all processes share through the database. A process
 * reserves several calls at a time, uses them, and returns unused ones within five seconds.
 */
export class QuotaCounter {
  readonly #options: QuotaCounterOptions;
  /** Reservations with available or unsettled calls. */
  readonly #kept = new Set<Reserve>();
  readonly #asking = new Set<Reserve>();
  readonly #askSoon = oneAtATime(() => this.#askForAll());
  #timer: NodeJS.Timeout | undefined;
  /** True if the last database query failed. Calls then do not wait for the database. */
  #isDown = false;

  constructor(options: QuotaCounterOptions) {
    this.#options = options;
  }

  /**
   * Counts a call in the quotas of its limiters. Returns the exhausted quota, if there is one, and counts the call in
   * none.
   */
  async take(lanes: readonly Lane[]): Promise<UsedUp | undefined> {
    const { now } = this.#options;
    const counted: { of: LaneOf; reserve: Reserve }[] = [];
    for (const lane of lanes) {
      const { of, perMinute, perDay } = lane;
      if (perMinute > 0) counted.push({ of, reserve: this.#reserveOf(lane, 'minute', perMinute) });
      if (perDay > 0) counted.push({ of, reserve: this.#reserveOf(lane, 'day', perDay) });
    }
    const taken: Reserve[] = [];
    for (const { of, reserve } of counted) {
      // Other calls may use up the reserved calls while this one waits.
      while (reserve.held === 0) {
        const at = now();
        if (at < reserve.usedUpUntil) {
          for (const other of taken) other.held++;
          const { span, quota, endsAt } = reserve;
          return { of, kind: span, limit: quota, waitMs: Math.max(0, endsAt - at) };
        }
        await this.#ask(reserve);
      }
      reserve.held--;
      reserve.isUsed = true;
      taken.push(reserve);
    }
    return undefined;
  }

  /** Reverts the count of a call that was not made. It was counted `agoMs` ago. */
  giveBack(lanes: readonly Lane[], agoMs: number): void {
    const takenAt = this.#options.now() - agoMs;
    for (const { minute, day, perMinute, perDay } of lanes) {
      if (perMinute > 0 && minute && minute.startsAt <= takenAt) minute.held++;
      if (perDay > 0 && day && day.startsAt <= takenAt) day.held++;
    }
  }

  /** Returns all unused calls. */
  async stop(): Promise<void> {
    if (this.#asking.size > 0) await this.#askSoon();
    clearTimeout(this.#timer);
    for (const reserve of this.#kept) this.#return(reserve);
    await this.#settleOwed();
  }

  #reserveOf(lane: Lane, span: QuotaPeriod['span'], quota: number): Reserve {
    const at = this.#options.now();
    const known = lane[span];
    if (known && at < known.endsAt) {
      if (known.quota !== quota) {
        known.quota = quota;
        known.usedUpUntil = 0;
        this.#return(known);
        this.#keep(known);
      }
      return known;
    }
    const startsAt = at - (at % spans[span]);
    const period = { kind: lane.of, ref: lane.id, span, startsAt, endsAt: startsAt + spans[span], quota };
    const made = { ...period, held: 0, step: firstStep, isUsed: false, owed: 0, unasked: 0, usedUpUntil: 0 };
    this.#fitStep(made, quota);
    lane[span] = made;
    return made;
  }

  /**
   * Limits the step to a fraction of this process's share of the remainder, which leaves enough for the other
   * processes.
   */
  #fitStep(reserve: Reserve, left: number): void {
    reserve.step = Math.max(1, Math.min(reserve.step, Math.floor(left / (4 * this.#options.processes.count))));
  }

  /** Reserves more calls. Afterwards some are available, or the quota counts as exhausted for now. Never throws. */
  async #ask(reserve: Reserve): Promise<void> {
    if (this.#isDown) {
      this.#takeUnasked(reserve);
      return;
    }
    this.#asking.add(reserve);
    await this.#askSoon();
  }

  async #askForAll(): Promise<void> {
    const reserves = [...this.#asking];
    this.#asking.clear();
    for (let at = 0; at < reserves.length; at += mostAtOnce) await this.#askFor(reserves.slice(at, at + mostAtOnce));
  }

  async #askFor(reserves: readonly Reserve[]): Promise<void> {
    const wishes = reserves.map(({ kind, ref, span, startsAt, quota, step }) => {
      return { kind, ref, span, startsAt, quota, calls: step };
    });
    try {
      const grants = await this.#options.take(wishes);
      this.#options.onSuccess();
      for (const [index, reserve] of reserves.entries()) {
        const { granted, taken } = grants[index] as QuotaGrant;
        this.#hold(reserve, granted);
        reserve.step *= 2;
        this.#fitStep(reserve, reserve.quota - taken);
      }
    } catch (error) {
      this.#options.onError(error);
      this.#isDown = true;
      for (const reserve of reserves) this.#takeUnasked(reserve);
    }
  }

  /** Takes calls without the database. While it is down, a process may use its own share of the quota. */
  #takeUnasked(reserve: Reserve): void {
    const share = shareOf(reserve.quota, this.#options.processes.count);
    const calls = Math.max(0, Math.min(reserve.step, share - reserve.unasked));
    reserve.unasked += calls;
    reserve.owed += calls;
    this.#hold(reserve, calls);
  }

  #hold(reserve: Reserve, calls: number): void {
    reserve.held += calls;
    if (calls > 0) this.#keep(reserve);
    else reserve.usedUpUntil = this.#options.now() + againMs;
  }

  #keep(reserve: Reserve): void {
    this.#kept.add(reserve);
    this.#timer ??= setTimeout(() => void this.#settle(), settleMs).unref();
  }

  #return(reserve: Reserve): void {
    reserve.owed -= reserve.held;
    reserve.held = 0;
    reserve.step = firstStep;
    this.#fitStep(reserve, reserve.quota);
  }

  /** Returns calls that were not needed since the last time, and reports calls that the database does not know of. */
  async #settle(): Promise<void> {
    this.#timer = undefined;
    const ended = this.#options.now();
    for (const reserve of this.#kept) {
      if (!reserve.isUsed) this.#return(reserve);
      reserve.isUsed = false;
      if (reserve.endsAt <= ended) this.#kept.delete(reserve);
    }
    await this.#settleOwed();
    for (const reserve of this.#kept) {
      if (reserve.held === 0 && reserve.owed === 0) this.#kept.delete(reserve);
      else this.#keep(reserve);
    }
  }

  async #settleOwed(): Promise<void> {
    const owing = [...this.#kept].filter(({ owed }) => owed !== 0);
    for (let at = 0; at < owing.length; at += mostAtOnce) await this.#settleSome(owing.slice(at, at + mostAtOnce));
  }

  async #settleSome(reserves: readonly Reserve[]): Promise<void> {
    const uses = reserves.map(({ kind, ref, span, startsAt, owed }) => ({ kind, ref, span, startsAt, calls: owed }));
    for (const reserve of reserves) reserve.owed = 0;
    try {
      await this.#options.settle(uses);
      this.#isDown = false;
      this.#options.onSuccess();
      for (const reserve of reserves) reserve.unasked = 0;
    } catch (error) {
      this.#options.onError(error);
      // Calls whose return may have succeeded are not returned again, because the quota would otherwise be exceeded.
      const least = error instanceof StoreFault && error.isOpen ? 0 : Number.NEGATIVE_INFINITY;
      for (const [index, reserve] of reserves.entries()) reserve.owed += Math.max(least, uses[index]?.calls ?? 0);
    }
  }
}
