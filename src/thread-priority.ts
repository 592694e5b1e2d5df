import { setPriority } from 'node:os';

/** Half of what Linux knows between usual and least. */
const nice = 10;

/**
 * Makes the calling thread give way where it and the thread that serves calls want the same core. Linux only: there a
 * priority belongs to a thread, elsewhere to the whole process.
 */
export function yieldToCalls(): void {
  if (process.platform === 'linux') setPriority(0, nice);
}
