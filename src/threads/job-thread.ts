import { Worker } from 'node:worker_threads';
import { JobError } from '../errors.ts';
import type { JobAnswer, JobQuestion } from './thread.ts';

/** A job as a thread sees it. */
export type ThreadJob = JobQuestion & { limitMs: number; transfer?: readonly ArrayBuffer[] };

type Running = {
  job: ThreadJob;
  timer: NodeJS.Timeout;
  resolve: (output: unknown) => void;
  reject: (error: unknown) => void;
};

/** Enough for the values of 10 MB of JSON that is all small objects; beyond it the thread ends, and not the process. */
const memory = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32 };

/** One thread. It ends with its process, when it has had nothing to do for a while, and when a job passes its limit. */
export class JobThread {
  readonly #worker: Worker;
  readonly #idle: NodeJS.Timeout;
  #running: Running | undefined;
  #isEnding = false;
  #failure: unknown = new JobError('failed', 'the thread has ended');

  /** `onEnd` is told when the thread is gone. */
  constructor(idleMs: number, onEnd: () => void) {
    this.#worker = new Worker(new URL('./thread.ts', import.meta.url), {
      // Flags such as --input-type are meant for the program only.
      execArgv: [],
      resourceLimits: memory,
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
      onEnd();
    });
    this.#worker.unref();
    this.#idle = setTimeout(() => this.#rest(), idleMs).unref();
  }

  get isBusy(): boolean {
    return this.#isEnding || this.#running !== undefined;
  }

  /** @throws JobError timeout, memory, cancelled */
  run(job: ThreadJob): Promise<unknown> {
    const { kind, input, limitMs, transfer = [] } = job;
    return new Promise((resolve, reject) => {
      const timer = this.#endsAfter(limitMs, new JobError('timeout', `it took longer than ${limitMs / 1000} s`));
      this.#running = { job, timer, resolve, reject };
      // A process may not end while a result is due.
      this.#worker.ref();
      this.#worker.postMessage({ kind, input } satisfies JobQuestion, [...transfer]);
    });
  }

  /** Lets a job run for so much longer only, because nobody waits for it. */
  cancel(job: unknown, graceMs: number): void {
    const running = this.#running;
    if (!running || running.job !== job) return;
    clearTimeout(running.timer);
    running.timer = this.#endsAfter(graceMs, new JobError('cancelled', 'the caller went away'));
  }

  async close(): Promise<void> {
    this.#isEnding = true;
    await this.#worker.terminate();
  }

  #rest(): void {
    if (this.#running) this.#idle.refresh();
    else void this.close();
  }

  #endsAfter(ms: number, failure: JobError): NodeJS.Timeout {
    return setTimeout(() => {
      // What is not JavaScript, such as JSON.parse, ends when it ends; nobody waits for that.
      this.#take()?.reject(failure);
      void this.close();
    }, ms).unref();
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
