/** Thrown when work needs more steps than its budget allows. */
export class TooMuchWork extends Error {
  constructor() {
    super('takes more steps than allowed');
    this.name = 'TooMuchWork';
  }
}

/**
 * A budget of steps. Code whose time grows with untrusted input takes one step for each item that it reads, about 25 to
 * 50 ns, so its cost is known while it runs, for any input.
 */
export class Steps {
  #left: number;

  constructor(most: number) {
    this.#left = most;
  }

  /** @throws TooMuchWork */
  take(count: number): void {
    this.#left -= count;
    if (this.#left < 0) throw new TooMuchWork();
  }
}

/** Returns the number of steps for reading every character of a text. */
export function stepsOfText(text: string): number {
  return text.length >> 5;
}

/**
 * Number of steps that work may take on the event loop, one or two milliseconds. Work that needs more runs on a thread.
 */
export const stepsOnLoop = 50_000;
