import { getProcessShare, type Processes } from '@toolhost/limits/call-limits';
import { coalesceRuns } from '../../store/changes/follow-changes.ts';
import { DatabaseError } from '../../store/engine/database-errors.ts';
import type { QuotaGrant, QuotaPeriod, QuotaRequest } from '../../store/workspaces.ts';
import type { Limiter, LimiterKind } from './limiter-registry.ts';

/** The part of a quota that this process has reserved in one minute or day. */
export type QuotaReservation = QuotaPeriod & {
  readonly endsAt: number;
  /** The quota as of the last call. */
  quota: number;
  /** Number of calls that were reserved from the quota and not made yet. */
  availableCalls: number;
  /** Number of calls to reserve next. It doubles each time, up to the limit of `#limitStep`. */
  step: number;
  /** True if a call was made since the last settlement, which reports unsettled calls to the database. */
  isUsed: boolean;
  /** Number of calls to add to the use in the database, or to return to it (negative). */
  unsettledCalls: number;
  /** Number of calls that were made without a reservation, because the database was unavailable. */
  offlineCalls: number;
  /** Time until which the quota counts as exhausted, in epoch ms. */
  exhaustedUntil: number;
};

/**
 * An exhausted quota: its limiter kind, its period, the number of calls that it allows, and the time until it resets.
 */
type ExhaustedQuota = { kind: LimiterKind; span: QuotaPeriod['span']; limit: number; waitMs: number };

export type QuotaCounterOptions = {
  /** Reserves calls. @throws database errors */
  reserve: (requests: readonly QuotaRequest[]) => Promise<QuotaGrant[]>;
  /** Adds calls to the stored use of quotas, or returns them if the number is negative. @throws database errors */
  settle: (uses: readonly (QuotaPeriod & { calls: number })[]) => Promise<void>;
  processes: Processes;
  /** Returns epoch ms. */
  now: () => number;
  onError: (error: unknown) => void;
  onSuccess: () => void;
};

/** Length of each period, in ms. */
const spans = { minute: 60_000, day: 86_400_000 };
/** Time after which unused calls are returned, in ms. */
const settleMs = 5000;
/**
 * Time after which an exhausted quota is requested again, in ms, because another process may have returned some calls.
 */
const retryExhaustedMs = 1000;
/** Number of calls in the first reservation of a period. */
const initialStep = 8;
/** Maximum number of reservations in one query. */
const maxBatchSize = 500;

/**
 * Counts calls in quotas per minute and per day (UTC), which all processes share through the database. A process
 * reserves several calls at a time, uses them, and returns unused ones within five seconds.
 */
export class QuotaCounter {
  readonly #options: QuotaCounterOptions;
  /** Reservations with available or unsettled calls. */
  readonly #active = new Set<QuotaReservation>();
  readonly #pendingReservations = new Set<QuotaReservation>();
  readonly #requestPending = coalesceRuns(() => this.#requestAll());
  #timer: NodeJS.Timeout | undefined;
  /** True if the last database query failed. Calls then do not wait for the database. */
  #isDatabaseDown = false;

  constructor(options: QuotaCounterOptions) {
    this.#options = options;
  }

  /**
   * Counts a call in the quotas of its limiters. Returns the exhausted quota, if there is one, and counts the call in
   * none.
   */
  async count(limiters: readonly Limiter[]): Promise<ExhaustedQuota | undefined> {
    const quotas: { kind: LimiterKind; reservation: QuotaReservation }[] = [];
    for (const limiter of limiters) {
      const { kind, perMinute, perDay } = limiter;
      if (perMinute > 0) quotas.push({ kind, reservation: this.#getReservation(limiter, 'minute', perMinute) });
      if (perDay > 0) quotas.push({ kind, reservation: this.#getReservation(limiter, 'day', perDay) });
    }
    const countedReservations: QuotaReservation[] = [];
    for (const { kind, reservation } of quotas) {
      // Other calls may use up the reserved calls while this one waits.
      while (reservation.availableCalls === 0) {
        const now = this.#options.now();
        if (now < reservation.exhaustedUntil) {
          for (const earlier of countedReservations) earlier.availableCalls++;
          const { span, quota, endsAt } = reservation;
          return { kind, span, limit: quota, waitMs: Math.max(0, endsAt - now) };
        }
        await this.#requestMore(reservation);
      }
      reservation.availableCalls--;
      reservation.isUsed = true;
      countedReservations.push(reservation);
    }
    return undefined;
  }

  /** Reverts the count of a call that was not made. It was counted `agoMs` ago. */
  refund(limiters: readonly Limiter[], agoMs: number): void {
    const countedAt = this.#options.now() - agoMs;
    for (const { minute, day, perMinute, perDay } of limiters) {
      if (perMinute > 0 && minute && minute.startsAt <= countedAt) minute.availableCalls++;
      if (perDay > 0 && day && day.startsAt <= countedAt) day.availableCalls++;
    }
  }

  /** Returns all unused calls. */
  async stop(): Promise<void> {
    if (this.#pendingReservations.size > 0) await this.#requestPending();
    clearTimeout(this.#timer);
    for (const reservation of this.#active) this.#returnUnused(reservation);
    await this.#settleUnsettled();
  }

  #getReservation(limiter: Limiter, span: QuotaPeriod['span'], quota: number): QuotaReservation {
    const now = this.#options.now();
    const current = limiter[span];
    if (current && now < current.endsAt) {
      if (current.quota !== quota) {
        current.quota = quota;
        current.exhaustedUntil = 0;
        this.#returnUnused(current);
        this.#track(current);
      }
      return current;
    }
    const startsAt = now - (now % spans[span]);
    const period = { kind: limiter.kind, ref: limiter.id, span, startsAt, endsAt: startsAt + spans[span], quota };
    const newReservation = {
      ...period,
      availableCalls: 0,
      step: initialStep,
      isUsed: false,
      unsettledCalls: 0,
      offlineCalls: 0,
      exhaustedUntil: 0,
    };
    this.#limitStep(newReservation, quota);
    limiter[span] = newReservation;
    return newReservation;
  }

  /** Limits the step to a quarter of this process's share of the remainder, which leaves enough for other processes. */
  #limitStep(reservation: QuotaReservation, remaining: number): void {
    reservation.step = Math.max(
      1,
      Math.min(reservation.step, Math.floor(remaining / (4 * this.#options.processes.count))),
    );
  }

  /** Reserves more calls. Afterwards some are available, or the quota counts as exhausted for now. Never throws. */
  async #requestMore(reservation: QuotaReservation): Promise<void> {
    if (this.#isDatabaseDown) {
      this.#takeOffline(reservation);
      return;
    }
    this.#pendingReservations.add(reservation);
    await this.#requestPending();
  }

  async #requestAll(): Promise<void> {
    const reservations = [...this.#pendingReservations];
    this.#pendingReservations.clear();
    for (let offset = 0; offset < reservations.length; offset += maxBatchSize)
      await this.#requestBatch(reservations.slice(offset, offset + maxBatchSize));
  }

  async #requestBatch(reservations: readonly QuotaReservation[]): Promise<void> {
    const requests = reservations.map(({ kind, ref, span, startsAt, quota, step }) => {
      return { kind, ref, span, startsAt, quota, calls: step };
    });
    try {
      const grants = await this.#options.reserve(requests);
      this.#options.onSuccess();
      for (const [index, reservation] of reservations.entries()) {
        const { granted, taken } = grants[index] as QuotaGrant;
        this.#addAvailable(reservation, granted);
        reservation.step *= 2;
        this.#limitStep(reservation, reservation.quota - taken);
      }
    } catch (error) {
      this.#options.onError(error);
      this.#isDatabaseDown = true;
      for (const reservation of reservations) this.#takeOffline(reservation);
    }
  }

  /** Takes calls without the database. While it is down, a process may use its own share of the quota. */
  #takeOffline(reservation: QuotaReservation): void {
    const share = getProcessShare(reservation.quota, this.#options.processes.count);
    const calls = Math.max(0, Math.min(reservation.step, share - reservation.offlineCalls));
    reservation.offlineCalls += calls;
    reservation.unsettledCalls += calls;
    this.#addAvailable(reservation, calls);
  }

  #addAvailable(reservation: QuotaReservation, calls: number): void {
    reservation.availableCalls += calls;
    if (calls > 0) this.#track(reservation);
    else reservation.exhaustedUntil = this.#options.now() + retryExhaustedMs;
  }

  #track(reservation: QuotaReservation): void {
    this.#active.add(reservation);
    this.#timer ??= setTimeout(() => void this.#settle(), settleMs).unref();
  }

  #returnUnused(reservation: QuotaReservation): void {
    reservation.unsettledCalls -= reservation.availableCalls;
    reservation.availableCalls = 0;
    reservation.step = initialStep;
    this.#limitStep(reservation, reservation.quota);
  }

  /** Returns calls that were not needed since the last time, and reports calls that the database does not know of. */
  async #settle(): Promise<void> {
    this.#timer = undefined;
    const endedAt = this.#options.now();
    for (const reservation of this.#active) {
      if (!reservation.isUsed) this.#returnUnused(reservation);
      reservation.isUsed = false;
      if (reservation.endsAt <= endedAt) this.#active.delete(reservation);
    }
    await this.#settleUnsettled();
    for (const reservation of this.#active) {
      if (reservation.availableCalls === 0 && reservation.unsettledCalls === 0) this.#active.delete(reservation);
      else this.#track(reservation);
    }
  }

  async #settleUnsettled(): Promise<void> {
    const unsettled = [...this.#active].filter(({ unsettledCalls }) => unsettledCalls !== 0);
    for (let offset = 0; offset < unsettled.length; offset += maxBatchSize)
      await this.#settleBatch(unsettled.slice(offset, offset + maxBatchSize));
  }

  async #settleBatch(reservations: readonly QuotaReservation[]): Promise<void> {
    const uses = reservations.map(({ kind, ref, span, startsAt, unsettledCalls }) => ({
      kind,
      ref,
      span,
      startsAt,
      calls: unsettledCalls,
    }));
    for (const reservation of reservations) reservation.unsettledCalls = 0;
    try {
      await this.#options.settle(uses);
      this.#isDatabaseDown = false;
      this.#options.onSuccess();
      for (const reservation of reservations) reservation.offlineCalls = 0;
    } catch (error) {
      this.#options.onError(error);
      // Calls whose return may have succeeded are not returned again, because the quota would otherwise be exceeded.
      const minCalls = error instanceof DatabaseError && error.isOutcomeUnknown ? 0 : Number.NEGATIVE_INFINITY;
      for (const [index, reservation] of reservations.entries())
        reservation.unsettledCalls += Math.max(minCalls, uses[index]?.calls ?? 0);
    }
  }
}
