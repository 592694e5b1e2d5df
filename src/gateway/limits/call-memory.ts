import type { ToolCall } from '../../domain/mcp.ts';
import { type Held, uncountedBytes } from '../../domain/work/memory-budget.ts';
import { AppError } from '../../errors.ts';

/** How many bytes a byte of a request takes while its call runs: many short names take most. */
const bytesOfByte = 8;

/** Counts the arguments of a call. @throws AppError unavailable */
export function holdArguments({ held, asked }: { held: Held; asked: Pick<ToolCall, 'bytesIn'> }): void {
  if (asked.bytesIn > uncountedBytes && !held.add(asked.bytesIn * bytesOfByte)) throw noMemory();
}

function noMemory(): AppError {
  return new AppError(
    'unavailable',
    'the service has no memory left for the arguments of this call, and this workspace uses its share of it; this call was not made, try again in 5 s, with fewer large calls at a time',
    { retryAfterS: 5 },
  );
}
