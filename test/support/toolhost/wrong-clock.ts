import { join } from 'node:path';

/** The environment of a process whose clock is wrong by so many ms. */
export function wrongClock(aheadMs: number): Record<string, string> {
  const program = join(import.meta.dirname, 'wrong-clock.mjs');
  return { NODE_OPTIONS: `--import=${program}`, WRONG_CLOCK_MS: String(aheadMs) };
}
