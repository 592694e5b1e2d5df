import type { ToolCall } from '../../domain/mcp.ts';
import type { Held } from '../../domain/work/memory-budget.ts';
import { AppError } from '../../errors.ts';
import type { Caller } from '../callers/caller.ts';
import type { Limited } from './lanes.ts';
import type { Limits, Slots } from './limits.ts';

/** What a call that asks for its slots has. */
type Entering = {
  server: Limited;
  caller: Caller;
  held: Held;
  asked: Pick<ToolCall, 'bytesIn'>;
  onGone: ToolCall['onGone'] | undefined;
};

/** Shorter requests, in bytes, are not counted: their number is limited, too. */
const countedBytes = 4 * 1024;
/** How many bytes a byte of a request takes while its call runs: many short names take most. */
const bytesOfByte = 8;

/**
 * Counts the arguments of a call and takes its slots; returns a promise if it has to wait. A call with counted arguments
 * gives up its place in the queue when others need the memory.
 * @throws AppError tooMany or unavailable, ToolFailure cancelled
 */
export function enterLimits(call: Entering, limits: Limits): Slots | Promise<Slots> {
  const { server, caller, held, asked, onGone } = call;
  if (asked.bytesIn > countedBytes && !held.add(asked.bytesIn * bytesOfByte)) throw noMemory();
  if (held.bytes === 0) return limits.enter(server, caller, onGone);
  const askedAt = performance.now();
  let isGivenUp = false;
  const onWaiting = (leave: () => void) => {
    onGone?.(leave);
    const giveUp = () => {
      isGivenUp = true;
      leave();
    };
    held.ending = { giveUp };
  };
  const entered = limits.enter(server, caller, onWaiting);
  if (!(entered instanceof Promise)) return entered;
  return entered.then(
    (slots) => {
      held.ending = undefined;
      if (!isGivenUp) return slots;
      // The slot came in the same moment.
      limits.leave(slots, caller, performance.now() - askedAt);
      throw noMemory();
    },
    (error: unknown) => {
      throw isGivenUp ? noMemory() : error;
    },
  );
}

function noMemory(): AppError {
  return new AppError(
    'unavailable',
    'the service has no memory left for the arguments of this call, and this workspace uses most of it; this call was not made, try again in 5 s, with fewer large calls at a time',
    { retryAfterS: 5 },
  );
}
