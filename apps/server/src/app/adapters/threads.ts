import { AppError, JobError } from '@toolhost/errors/errors';
import { repairJsonParse } from '@toolhost/json/json-reader';
import type { MemoryBudget } from '@toolhost/limits/memory-budget';
import { setRunningTimeout } from '@toolhost/limits/running-time';
import type { DecodeOnThread } from '@toolhost/safe-http/decode';
import type { ThreadWork } from '../../gateway/call/thread-work.ts';
import type { CheckConfigOnThread } from '../../operations/check-config.ts';
import type { RuleSource } from '../../operations/operation.ts';
import { createCounterSource, createGauge, type Source } from '../../telemetry/metric.ts';
import { type JobTimes, ThreadPool } from '../../threads/thread-pool.ts';

/**
 * Number of job threads. Two, so that neither one tenant nor imports ever occupy all of them. Each takes 15 to 20 MB.
 */
export const maxThreads = 2;

/** Maximum number of queued jobs before more are rejected. A job takes about 50 ms. */
export const jobQueue = { perTenant: 100, total: 400 };
const idleTimeoutMs = 10_000;

/**
 * Time limits of jobs, in ms. They are many times the duration for the largest input, because a thread has a lower
 * priority than calls and may wait long for a processor. No call waits for an import.
 */
export const jobTimes: JobTimes = { limitMs: 30_000, queueTimeoutMs: 20_000 };
export const importTimes: JobTimes = { limitMs: 45_000, queueTimeoutMs: 60_000 };

/** Starts the job threads, and prepares this thread and the job threads to parse client input. */
export function startThreads(memory: MemoryBudget, threadBytes: number): ThreadPool {
  repairJsonParse();
  return new ThreadPool({
    threads: maxThreads,
    queue: jobQueue,
    longJobMs: jobTimes.limitMs,
    idleMs: idleTimeoutMs,
    after: setRunningTimeout,
    memory,
    threadBytes,
  });
}

/** Returns the jobs that the gateway runs on threads. */
export function createThreadWork(threads: ThreadPool): ThreadWork {
  return {
    checkArguments(input, { ownerId, registerCancel, reservation }) {
      const kind = 'check-arguments';
      return threads.run({ kind, input, times: jobTimes, ownerId, registerCancel, reservation });
    },
    readResponse(input, { ownerId, registerCancel, reservation }) {
      const kind = 'read-response';
      const transfer = toTransferable(input.body);
      return threads.run({ kind, input, times: jobTimes, transfer, ownerId, registerCancel, reservation });
    },
    writeCapture(input, { ownerId, registerCancel, reservation }) {
      const kind = 'write-capture';
      return threads.run({ kind, input, times: jobTimes, ownerId, registerCancel, reservation });
    },
  };
}

/** Returns the buffer of `bytes` for a transfer to the thread, only if no other view shares it. */
export function toTransferable({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}

/** Creates a function that throws the error of a job that ended without a result. @throws AppError tooMany, tooLarge */
export function createThrowJobError(subject: string, advice: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof JobError) || error.reason === 'failed') throw error;
    if (error.reason === 'refused')
      throw new AppError('tooMany', `${subject}: ${error.message}; try again`, { retryAfterS: 5 });
    throw new AppError('tooLarge', `${subject}: ${error.message}; ${advice}`);
  };
}

/** Returns a function that checks configurations on threads. */
export function createCheckConfigOnThread(threads: ThreadPool, rules: RuleSource): CheckConfigOnThread {
  return (input, workspaceId) => {
    const kind = 'check-configuration';
    return threads.run({ kind, input: { ...input, rules }, times: jobTimes, ownerId: workspaceId });
  };
}

/** Returns a function that decodes compressed upstream responses on threads. */
export function createDecodeOnThread(threads: ThreadPool): DecodeOnThread {
  return (input, { workspaceId, registerCancel, reservation }) => {
    const kind = 'decode-body';
    const transfer = toTransferable(input.body);
    return threads.run({ kind, input, ownerId: workspaceId, registerCancel, reservation, times: jobTimes, transfer });
  };
}

export function createThreadMetrics(threads: ThreadPool): Source[] {
  return [
    createGauge(
      'toolhost_jobs',
      'Jobs on threads (long or compressed responses, large arguments, bodies and configurations, imports): running, and waiting for a thread.',
      () => {
        const { running, waiting } = threads.getCounts();
        return { running, waiting };
      },
      { label: 'state' },
    ),
    createCounterSource('toolhost_jobs_total', 'Jobs on threads by outcome.', () => threads.getCounts().outcomes, {
      label: 'outcome',
    }),
    createGauge(
      'toolhost_job_threads',
      'Job threads: idle, busy, and ending. A thread remains in state ending until its native code returns.',
      () => threads.getStates(),
      { label: 'state' },
    ),
  ];
}
