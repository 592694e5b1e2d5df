import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const program = join(import.meta.dirname, 'wrong-clock.mjs');

/** The clock of a machine, which a test sets for all processes with `env`; they see it within 50 ms. */
export type MachineClock = { env: Record<string, string>; set(aheadMs: number): void };

/** Keeps the setting in a file. */
export function settableClock(file: string): MachineClock {
  const set = (aheadMs: number) => {
    writeFileSync(`${file}.new`, String(aheadMs));
    renameSync(`${file}.new`, file);
  };
  set(0);
  return { env: { NODE_OPTIONS: `--import=${program}`, WRONG_CLOCK_FILE: file }, set };
}
