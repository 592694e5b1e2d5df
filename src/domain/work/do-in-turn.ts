import type { MaybePromise } from './maybe-promise.ts';
import { nextTurn } from './next-turn.ts';
import { TooMuchWork } from './steps.ts';

/** Work in so many steps, a quarter of a millisecond, is done at once. */
export const promptSteps = 5000;

/** Work in more steps, 5 to 10 ms, is too long for the event loop. */
const mostSteps = 200_000;

/**
 * Does work on untrusted input that counts its steps: at once when there are few, and otherwise again in a turn of the
 * event loop that is not shared with the work of other requests.
 * @throws TooMuchWork in its promise, when the work is too long for the event loop
 */
export function doInTurn<Result>(work: (mostSteps: number) => Result): MaybePromise<Result> {
  try {
    return work(promptSteps);
  } catch (error) {
    if (!(error instanceof TooMuchWork)) throw error;
    return nextTurn().then(() => work(mostSteps));
  }
}
