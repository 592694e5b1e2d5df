/** Thrown when a piece of work needs more steps than it may take. */
export class TooMuchWork extends Error {
  constructor() {
    super('takes more steps than allowed');
    this.name = 'TooMuchWork';
  }
}

/**
 * A budget of work. Code whose time grows with untrusted input takes a step for each thing that it reads, about 25 to
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

/** Number of steps for reading every character of a text. */
export function stepsOfText(text: string): number {
  return text.length >> 5;
}

/** Steps that a piece of work may take on the event loop, a millisecond or two. One that needs more is done by a thread. */
export const stepsOnLoop = 50_000;
