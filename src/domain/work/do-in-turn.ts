import type { Party } from '../visit.ts';
import type { MaybePromise } from './maybe-promise.ts';
import { isTurnSpent, nextTurn, shortTurn } from './next-turn.ts';
import { TooMuchWork } from './steps.ts';

/** Work in so many steps, a quarter of a millisecond, is done at once. */
const promptSteps = 5000;

/** Work in more steps, 5 to 10 ms, is too long for the event loop. */
const longSteps = 200_000;

/**
 * Does work on untrusted input that counts its steps. Work that is not known to be long is tried at once, with few steps;
 * when they do not suffice, it is done again in a turn of the event loop that is not shared with other requests. So it
 * must have no effects. Where others have spent the turn in which it comes, it waits.
 * `party` is whose work it is, when that is not known from the request.
 * @throws TooMuchWork in its promise, when the work is too long for the event loop
 */
export function doInTurn<Result>(
  isLong: boolean,
  work: (mostSteps: number) => MaybePromise<Result>,
  party?: Party,
): MaybePromise<Result> {
  const again = () => nextTurn(party).then(() => work(longSteps));
  if (isLong) return again();
  const attempt = () => {
    try {
      return work(promptSteps);
    } catch (error) {
      if (!(error instanceof TooMuchWork)) throw error;
      return again();
    }
  };
  return isTurnSpent() ? shortTurn(party).then(attempt) : attempt();
}

/** Whether work that may take so many steps is done again when they do not suffice. */
export function isDoneAgain(mostSteps: number): boolean {
  return mostSteps <= promptSteps;
}
