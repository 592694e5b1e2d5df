import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { whenCalm } from '../domain/work/when-calm.ts';
import { JobError } from '../errors.ts';
import type { JobAnswer, JobQuestion } from './thread.ts';

/** A job as the thread receives it. */
export type ThreadJob = JobQuestion & { limitMs: number; transfer?: readonly ArrayBuffer[] };

type Running = {
  job: ThreadJob;
  /** Of its limit; undefined until the thread has the job. */
  timer: NodeJS.Timeout | undefined;
  /** Processor time of the thread before the job, in ms. */
  spentBefore: Promise<number | undefined> | undefined;
  /** Processor time of the process before the job. */
  processBefore: NodeJS.CpuUsage | undefined;
  /** How often its limit was prolonged, because other programs had the processor. */
  prolonged: number;
  isCancelled: boolean;
  resolve: (output: unknown) => void;
  reject: (error: unknown) => void;
};

/** Most MB of young values in a thread. */
const maxYoungGenerationSizeMb = 32;
const megabyte = 1024 * 1024;

type JobThreadOptions = {
  /** How long an idle thread is kept, in ms. */
  idleMs: number;
  /** Most bytes of its values; beyond it the thread ends, not the process. */
  threadBytes: number;
};

/** How often the limit of a job is prolonged on a busy machine. A silent thread delays each look by `answerMs`. */
const mostProlonged = 5;
/**
 * How long the thread may take to say how much processor time it has used. In native code, or without a processor, it says
 * nothing.
 */
const answerMs = 2000;
const tooBusy = 'the machine was too busy to give it enough processor time';

/** One thread. It ends with its process, after some idle time, or when a job exceeds its limit. */
export class JobThread {
  readonly #worker: Worker;
  readonly #idle: NodeJS.Timeout;
  readonly #ended = Promise.withResolvers<void>();
  #running: Running | undefined;
  #isEnding = false;
  #failure: unknown = new JobError('failed', 'the thread has ended');

  constructor({ idleMs, threadBytes }: JobThreadOptions) {
    this.#worker = new Worker(new URL('./thread.ts', import.meta.url), {
      // Flags such as --input-type are meant only for the main program.
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: Math.floor(threadBytes / megabyte), maxYoungGenerationSizeMb },
    });
    this.#worker.on('message', (answer: JobAnswer) => this.#answered(answer));
    this.#worker.on('error', (error: Error & { code?: string }) => {
      this.#failure =
        error.code === 'ERR_WORKER_OUT_OF_MEMORY'
          ? new JobError('memory', 'it needs more memory than a job may')
          : error;
    });
    this.#worker.on('exit', () => {
      clearTimeout(this.#idle);
      this.#take()?.reject(this.#failure);
      this.#ended.resolve();
    });
    this.#worker.unref();
    this.#idle = setTimeout(() => this.#rest(), idleMs).unref();
  }

  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  /** True from the moment in which it was told to end; it takes no job any more. Native code of V8 may go on for hours. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Resolves when the thread has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** @throws JobError timeout, memory, cancelled, refused */
  run(job: ThreadJob): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const rest = {
        timer: undefined,
        spentBefore: undefined,
        processBefore: undefined,
        prolonged: 0,
        isCancelled: false,
      };
      this.#running = { job, resolve, reject, ...rest };
      // The process must not exit while a result is due.
      this.#worker.ref();
      this.#send(this.#running).catch((error: unknown) => this.#take()?.reject(error));
    });
  }

  async #send(running: Running): Promise<void> {
    await whenCalm();
    if (this.#running !== running) return;
    const { kind, input, limitMs, transfer = [] } = running.job;
    running.timer = setTimeout(() => void this.#endIfSpent(), limitMs).unref();
    running.spentBefore = this.#spentMs();
    running.processBefore = process.cpuUsage();
    this.#worker.postMessage({ kind, input } satisfies JobQuestion, [...transfer]);
  }

  /** Shortens the time limit of a job whose result is no longer wanted. */
  cancel(job: unknown, graceMs: number): void {
    const running = this.#running;
    if (!running || running.job !== job) return;
    const cancelled = new JobError('cancelled', 'the caller went away');
    if (!running.timer) {
      this.#take()?.reject(cancelled);
      return;
    }
    clearTimeout(running.timer);
    running.isCancelled = true;
    running.timer = setTimeout(() => this.#giveUp(cancelled), graceMs).unref();
  }

  /** Tells the thread to end. Its job ends at once. */
  end(): void {
    this.#isEnding = true;
    this.#take()?.reject(this.#failure);
    void this.#worker.terminate();
  }

  #rest(): void {
    if (this.#running) this.#idle.refresh();
    else this.end();
  }

  /**
   * Ends a job that has used its limit of processor time. One that had to wait for a processor gets the rest of it. If it
   * waits again and again, it is refused, not called too large.
   */
  async #endIfSpent(): Promise<void> {
    const running = this.#running;
    if (!running) return;
    const { limitMs } = running.job;
    const left = limitMs - (await this.#spentBy(running));
    if (this.#running !== running || running.isCancelled) return;
    if (left < 1) return this.#giveUp(new JobError('timeout', `it took longer than ${limitMs / 1000} s`));
    if (++running.prolonged > mostProlonged) return this.#giveUp(new JobError('refused', tooBusy));
    running.timer = setTimeout(() => void this.#endIfSpent(), left).unref();
  }

  /**
   * Processor time of a job, in ms. A thread that says nothing may be in native code or wait for a processor; it has used
   * no more than the whole process.
   */
  async #spentBy({ spentBefore, processBefore }: Running): Promise<number> {
    const both = Promise.all([this.#spentMs(), spentBefore]);
    const [after, before = 0] = (await Promise.race([both, delay(answerMs, undefined, { ref: false })])) ?? [];
    return after === undefined ? msOf(process.cpuUsage(processBefore)) : after - before;
  }

  /** Processor time of the thread; undefined before it has started, and before Node 24. */
  async #spentMs(): Promise<number | undefined> {
    const { cpuUsage } = this.#worker as Partial<Pick<Worker, 'cpuUsage'>>;
    const usage = await cpuUsage?.call(this.#worker).catch(() => undefined);
    return usage && msOf(usage);
  }

  #giveUp(failure: JobError): void {
    // Native code such as JSON.parse cannot be interrupted; the pool does not wait for it.
    this.#take()?.reject(failure);
    this.end();
  }

  #answered(answer: JobAnswer): void {
    const running = this.#take();
    this.#idle.refresh();
    if ('failure' in answer) running?.reject(answer.failure);
    else running?.resolve(answer.output);
  }

  #take(): Running | undefined {
    const running = this.#running;
    this.#running = undefined;
    this.#worker.unref();
    clearTimeout(running?.timer);
    return running;
  }
}

function msOf({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1000;
}
