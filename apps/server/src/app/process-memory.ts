import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';

/** Division of a process's memory, in bytes. */
export type ProcessMemory = {
  /** Budget for bodies, results, call arguments, job inputs, and configurations in use. */
  work: number;
  /** Budget for the inputs of queued operations. */
  queuedInputs: number;
  /** Budget for the values of one job thread. */
  thread: number;
};

const megabyte = 1024 * 1024;

/**
 * Minimum work budget, half of which one tenant may use. The largest API description has 32 MiB, and takes twice as
 * much while its chunks are joined.
 */
export const minWorkBytes = 128 * megabyte;
const minThreadBytes = 128 * megabyte;
/**
 * Maximum for one thread. Enough for the values of 10 MB of JSON made of small objects. Above it, the thread ends,
 * not the process.
 */
const maxThreadBytes = 512 * megabyte;

/**
 * Divides the memory that this process may use: the memory of its container or machine, divided by the number of
 * workers. V8 uses half of that for JavaScript values, or its configured heap size. A process with a small configured
 * heap is meant to be small.
 */
export function divideProcessMemory(workers: number): ProcessMemory {
  const constrained = process.constrainedMemory();
  const machineBytes = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  const availableBytes = Math.min(machineBytes / workers, 2 * getHeapStatistics().heap_size_limit);
  return {
    work: Math.max(minWorkBytes, availableBytes / 4),
    queuedInputs: availableBytes / 8,
    thread: Math.min(maxThreadBytes, Math.max(minThreadBytes, availableBytes / 4)),
  };
}
