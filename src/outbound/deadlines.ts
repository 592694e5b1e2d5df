import { performance } from 'node:perf_hooks';

/** A function to run when its time is over, unless it is removed before. */
export type Deadline = {
  /** In ms of `now`. */
  until: number;
  expire: () => void;
  /** Index in the array of pending deadlines; −1 when it is not pending. */
  index: number;
  /** Total time that the process had been stopped when the deadline was added, in ms. */
  stoppedMs: number;
};

/** A passed deadline expires at the second look after it. */
const tickMs = 20;
/** A delay of the timer beyond this means that the process was stopped. */
const stopMs = 500;

/**
 * Deadlines on one shared timer, which runs only while there are some: a timer for each call costs more than the rest of
 * its bookkeeping. Time in which the process was stopped (SIGSTOP, a machine without processor time, a long garbage
 * collection) does not count: the upstream may have answered, and the process could not read it.
 */
export class Deadlines {
  /**
   * An array, because the tables that a Set discards as it grows still refer to its items and to the next table: nearly
   * every call would survive into the old generation, and the whole heap would be collected several times as often.
   */
  readonly #pending: Deadline[] = [];
  #timer: NodeJS.Timeout | undefined;
  #lookedAt = 0;
  #stoppedMs = 0;

  add(ms: number, expire: () => void): Deadline {
    const at = performance.now();
    if (this.#timer === undefined) {
      this.#lookedAt = at;
      this.#timer = setInterval(() => this.#look(), tickMs);
    }
    this.#noteStop(at);
    const until = at - this.#stoppedMs + ms;
    const deadline = { until, expire, index: this.#pending.length, stoppedMs: this.#stoppedMs };
    this.#pending.push(deadline);
    return deadline;
  }

  remove(deadline: Deadline): void {
    if (deadline.index < 0) return;
    const last = this.#pending.pop() as Deadline;
    if (last !== deadline) {
      this.#pending[deadline.index] = last;
      last.index = deadline.index;
    }
    deadline.index = -1;
  }

  /** Whether the process was stopped for a while since a pending deadline was added. */
  wasStoppedSince({ stoppedMs }: Deadline): boolean {
    this.#noteStop(performance.now());
    return this.#stoppedMs > stoppedMs;
  }

  #noteStop(at: number): void {
    if (this.#timer === undefined || at - this.#lookedAt <= stopMs) return;
    // The usual time between two looks counts, so that time goes on where one stop follows the other.
    this.#stoppedMs += at - this.#lookedAt - tickMs;
    this.#lookedAt = at;
  }

  #look(): void {
    // One that has passed since the last look waits for the next: what came in time while the process was busy is read first.
    const passed = this.#lookedAt - this.#stoppedMs;
    const at = performance.now();
    this.#noteStop(at);
    this.#lookedAt = at;
    for (const deadline of this.#pending.filter(({ until }) => until <= passed)) {
      this.remove(deadline);
      deadline.expire();
    }
    if (this.#pending.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
