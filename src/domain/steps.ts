/** Thrown when a piece of work needs more steps than it may take. */
export class TooMuchWork extends Error {
  constructor() {
    super('takes more steps than allowed');
    this.name = 'TooMuchWork';
  }
}

/**
 * How much work may still be done. Whatever takes time in proportion to somebody's input takes a step for each thing that
 * it looks at, about 25 to 50 ns, so what it costs is known while it runs, whatever the input looks like.
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

/** How many steps looking at every character of a text takes. */
export function stepsOfText(text: string): number {
  return text.length >> 5;
}
