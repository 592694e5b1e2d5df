import { setPriority } from 'node:os';

/** Nice value, about halfway between the default (0) and the lowest priority (19) of Linux. */
const niceValue = 10;

/**
 * Lowers the priority of the current thread, so that the thread that serves calls gets a contended core first. Linux
 * only, because other systems set the priority of the whole process.
 */
export function lowerThreadPriority(): void {
  if (process.platform === 'linux') setPriority(0, niceValue);
}
