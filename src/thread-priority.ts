import { setPriority } from 'node:os';

/** About halfway between the default (0) and the lowest priority (19) of Linux. */
const nice = 10;

/**
 * Lowers the priority of the calling thread, so that the thread that serves calls gets a contested core first. Linux only:
 * elsewhere a priority is that of the whole process.
 */
export function yieldToCalls(): void {
  if (process.platform === 'linux') setPriority(0, nice);
}
