/** Thrown when work needs more steps than its budget allows. */
export class StepLimitExceeded extends Error {
  constructor() {
    super('takes more steps than allowed');
    this.name = 'StepLimitExceeded';
  }
}

/**
 * A budget of steps. Code whose time grows with untrusted input takes one step for each item that it reads, about 25 to
 * 50 ns, so its cost is known while it runs, for any input.
 */
export class StepBudget {
  #remaining: number;

  constructor(maxSteps: number) {
    this.#remaining = maxSteps;
  }

  /** @throws StepLimitExceeded */
  consume(count: number): void {
    this.#remaining -= count;
    if (this.#remaining < 0) throw new StepLimitExceeded();
  }
}

/** Returns the number of steps for reading every character of a text. */
export function countTextSteps(text: string): number {
  return text.length >> 5;
}

/**
 * Number of steps that work may take on the event loop, one or two milliseconds. Work that needs more runs on a thread.
 */
export const maxEventLoopSteps = 50_000;
