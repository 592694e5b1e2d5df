import { performance } from 'node:perf_hooks';

/** Something that ends when its time is over, unless it is removed first. The fields belong to `Deadlines`. */
export type Deadline = {
  /** In ms of the deadline clock, which omits pauses. */
  expiresAt: number;
  /** Index in the array of pending deadlines; −1 if it is not pending. */
  deadlineIndex: number;
  /** Total time that the process had been paused when the deadline was added, in ms. */
  pausedMsAtStart: number;
  expire(): void;
};

/** Interval of the deadline timer. A passed deadline expires at the second tick after it. */
const tickMs = 20;
/** Timer delay above which the process counts as paused. */
const pauseThresholdMs = 500;

/**
 * Deadlines on one shared timer, which runs only while there are some. A timer per call costs more than the rest of its
 * bookkeeping. Time in which the process was paused (SIGSTOP, a machine without CPU time, a long garbage collection)
 * does not count: the upstream may have responded, but the process could not read it.
 */
export class Deadlines {
  /**
   * An array, because the tables that a Set discards as it grows still refer to its items and to the next table. Nearly
   * every call would survive into the old generation, and the whole heap would be collected several times as often.
   */
  readonly #pending: Deadline[] = [];
  #timer: NodeJS.Timeout | undefined;
  #lastTickAt = 0;
  #pausedMs = 0;

  /** Adds a deadline that expires after `ms`. */
  add(deadline: Deadline, ms: number): void {
    const now = performance.now();
    if (this.#timer === undefined) {
      this.#lastTickAt = now;
      this.#timer = setInterval(() => this.#tick(), tickMs);
    }
    this.#recordPause(now);
    deadline.expiresAt = now - this.#pausedMs + ms;
    deadline.pausedMsAtStart = this.#pausedMs;
    deadline.deadlineIndex = this.#pending.push(deadline) - 1;
  }

  remove(deadline: Deadline): void {
    const index = deadline.deadlineIndex;
    if (index < 0) return;
    deadline.deadlineIndex = -1;
    const lastDeadline = this.#pending.pop() as Deadline;
    if (lastDeadline === deadline) return;
    this.#pending[index] = lastDeadline;
    lastDeadline.deadlineIndex = index;
  }

  /** Returns true if the process was paused since a deadline was added. */
  wasPausedSince({ pausedMsAtStart }: Deadline): boolean {
    this.#recordPause(performance.now());
    return this.#pausedMs > pausedMsAtStart;
  }

  #recordPause(now: number): void {
    if (this.#timer === undefined || now - this.#lastTickAt <= pauseThresholdMs) return;
    // Subtracts a normal tick, so that time advances even if one pause follows another.
    this.#pausedMs += now - this.#lastTickAt - tickMs;
    this.#lastTickAt = now;
  }

  #tick(): void {
    // A deadline that passed since the last tick waits for the next one, so that bytes that arrived in time while the
    // process was busy are read first.
    const previousTick = this.#lastTickAt - this.#pausedMs;
    const now = performance.now();
    this.#recordPause(now);
    this.#lastTickAt = now;
    for (const deadline of this.#pending.filter(({ expiresAt }) => expiresAt <= previousTick)) {
      this.remove(deadline);
      deadline.expire();
    }
    if (this.#pending.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
