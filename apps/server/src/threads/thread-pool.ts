import { Worker } from 'node:worker_threads';
import { getTenantId } from '@toolhost/credentials/ids';
import { JobError } from '@toolhost/errors/errors';
import { getFairShare } from '@toolhost/limits/concurrency-limiter';
import type { MemoryBudget } from '@toolhost/limits/memory-budget';
import type { JobInput, JobKind, JobOutput } from './jobs.ts';
import type { JobMessage, JobResult } from './thread.ts';

export type JobTimes = {
  /** Maximum running time, in ms in which this process ran. The thread is terminated after that. */
  limitMs: number;
  /** Maximum time in the queue, in ms. */
  queueTimeoutMs: number;
};

export type JobRequest<Kind extends JobKind> = {
  kind: Kind;
  input: JobInput<Kind>;
  /** Workspace that owns the job, or the network of an unverified caller. Tenants take turns. */
  ownerId: string;
  times: JobTimes;
  /** Buffers of the input that are transferred, and then no longer usable here. */
  transfer?: readonly ArrayBuffer[];
  /**
   * Memory reservation that already counts the input. If absent, the pool reserves memory for it until the end of the
   * job.
   */
  reservation?: object | undefined;
  /** Receives a function that cancels the job. */
  registerCancel?: ((cancel: () => void) => void) | undefined;
};

export const jobOutcomes = ['done', 'failed', 'timeout', 'memory', 'refused', 'cancelled'] as const;
export type JobOutcome = (typeof jobOutcomes)[number];

export type ThreadPoolOptions = {
  threads: number;
  queue: QueueLimits;
  /** Time limit, in ms, above which a job counts as long. Long jobs together leave one thread to other jobs. */
  longJobMs: number;
  /** Time after which an idle thread is terminated, in ms. */
  idleMs: number;
  /** Maximum heap bytes of a thread. Beyond it the thread ends, not the process. */
  threadBytes: number;
  /** Memory budget for inputs without a reservation. If absent, they are not counted. */
  memory?: Pick<MemoryBudget, 'reserve'>;
  /** Runs `expire` when this process has run for `ms`. Returns a function that cancels it. */
  after: (ms: number, expire: () => void) => () => void;
};

type Job = JobRequest<JobKind> & {
  tenant: string;
  thread: Thread | undefined;
  /** Cancels the queue timer or the run timer. */
  stopTimer: () => void;
  settle: (outcome: JobOutcome, result: unknown) => void;
};

/** A thread, and the job that it runs. `isEnding` is true after it was told to end. Then it takes no more jobs. */
type Thread = {
  worker: Worker;
  job: Job | undefined;
  isEnding: boolean;
  stopIdleTimer: () => void;
  exited: Promise<void>;
};

/** Maximum MB of a thread's young generation. */
const maxYoungGenerationSizeMb = 12;
const megabyte = 1024 * 1024;
/** Time that a canceled job may still run, in ms. Terminating a thread costs more than finishing a little work. */
const graceMs = 100;
/** Time that the pool waits for the end of its threads when it closes, in ms. */
const closeTimeoutMs = 1000;

const stoppingMessage = 'the service is stopping';
const createCancelledError = () => new JobError('cancelled', 'the client disconnected');

/**
 * Runs work in threads that would block the event loop for too long. Threads are started on demand. Native V8 functions
 * cannot be interrupted, so a thread may end long after it was told to. Another thread replaces it, and nothing waits
 * for it.
 */
export class ThreadPool {
  readonly #options: ThreadPoolOptions;
  readonly #queue: FairQueue<Job>;
  readonly #threads = new Set<Thread>();
  readonly #outcomes = Object.fromEntries(jobOutcomes.map((outcome) => [outcome, 0])) as Record<JobOutcome, number>;
  #isClosed = false;

  constructor(options: ThreadPoolOptions) {
    this.#options = options;
    this.#queue = new FairQueue(options.queue);
  }

  /** Runs a job in a thread. @throws JobError when there is no result */
  run<Kind extends JobKind>(request: JobRequest<Kind>): Promise<JobOutput<Kind>> {
    return new Promise((resolve, reject) => {
      const { memory, after } = this.#options;
      const inputReservation = request.reservation ? undefined : memory?.reserve(request.ownerId);
      const settle: Job['settle'] = (outcome, result) => {
        job.stopTimer();
        job.settle = () => undefined;
        inputReservation?.release();
        this.#outcomes[outcome]++;
        if (outcome === 'done') resolve(result as JobOutput<Kind>);
        else reject(result);
      };
      const job: Job = {
        ...request,
        tenant: getTenantId(request.ownerId),
        thread: undefined,
        stopTimer: () => undefined,
        settle,
      };
      if (this.#isClosed) refuse(job, stoppingMessage);
      else if (inputReservation && !inputReservation.grow(getBytes(request.input))) refuse(job, noMemoryMessage);
      else if (!this.#queue.add(job.tenant, job)) refuse(job, 'too many jobs of this kind are queued');
      else {
        request.registerCancel?.(() => this.#cancel(job));
        job.stopTimer = after(job.times.queueTimeoutMs, () => {
          if (this.#queue.remove(job.tenant, job)) refuse(job, 'it was queued too long for a thread');
        });
        this.#startNext();
      }
    });
  }

  getCounts(): { running: number; waiting: number; outcomes: Readonly<Record<JobOutcome, number>> } {
    return { running: this.getStates().busy, waiting: this.#queue.size, outcomes: this.#outcomes };
  }

  /**
   * Returns the numbers of threads. An idle one ends as soon as it is told to; a busy or ending one may be in native
   * code.
   */
  getStates(): { idle: number; busy: number; ending: number } {
    const stateCounts = { idle: 0, busy: 0, ending: 0 };
    for (const { isEnding, job } of this.#threads) stateCounts[isEnding ? 'ending' : job ? 'busy' : 'idle']++;
    return stateCounts;
  }

  /** Ends all jobs and threads. Does not wait for threads in native code. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const job of this.#queue.clear()) refuse(job, stoppingMessage);
    for (const thread of this.#threads) this.#endThread(thread, 'failed', new JobError('failed', stoppingMessage));
    const { promise: isLate, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.after(closeTimeoutMs, resolve);
    await Promise.race([isLate, Promise.all([...this.#threads].map(({ exited }) => exited))]);
    cancel();
  }

  #startNext(): void {
    while (this.#queue.size > 0 && !this.#isClosed) {
      const idle = [...this.#threads].find(({ job, isEnding }) => !job && !isEnding);
      const job = idle || this.#canStartThread() ? this.#queue.next((...args) => this.#canRun(...args)) : undefined;
      if (!job) return;
      this.#runOn(idle ?? this.#startThread(), job);
    }
  }

  /** Returns true if a thread may be started. Up to `maxThreads` ending threads do not count. */
  #canStartThread(): boolean {
    const { threads: maxThreads } = this.#options;
    return this.#threads.size - this.getStates().ending < maxThreads && this.#threads.size < 2 * maxThreads;
  }

  /** Returns true if a job may run. With several threads, neither one tenant nor long jobs ever occupy all of them. */
  #canRun(tenant: string, { times }: Job): boolean {
    const { threads, longJobMs } = this.#options;
    const maxShare = Math.max(1, threads - 1);
    const jobs = [...this.#threads].flatMap(({ job, isEnding }) => (job && !isEnding ? [job] : []));
    if (jobs.filter((job) => job.tenant === tenant).length >= maxShare) return false;
    return times.limitMs <= longJobMs || jobs.filter((job) => job.times.limitMs > longJobMs).length < maxShare;
  }

  #startThread(): Thread {
    const { threadBytes } = this.#options;
    const worker = new Worker(new URL('./thread.ts', import.meta.url), {
      // Flags such as --input-type apply only to the main program.
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: Math.floor(threadBytes / megabyte), maxYoungGenerationSizeMb },
    });
    const { promise: exited, resolve } = Promise.withResolvers<void>();
    const thread: Thread = { worker, job: undefined, isEnding: false, stopIdleTimer: () => undefined, exited };
    worker.on('message', (result: JobResult) => {
      const { job } = thread;
      this.#markIdle(thread);
      if ('failure' in result) job?.settle('failed', result.failure);
      else job?.settle('done', result.output);
      this.#startNext();
    });
    worker.on('error', (error: Error & { code?: string }) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY')
        thread.job?.settle('memory', new JobError('memory', 'it needs more memory than a job may use'));
      else thread.job?.settle('failed', error);
    });
    worker.on('exit', () => {
      thread.stopIdleTimer();
      thread.job?.settle('failed', new JobError('failed', 'the thread has ended'));
      this.#threads.delete(thread);
      resolve();
      this.#startNext();
    });
    this.#threads.add(thread);
    return thread;
  }

  #runOn(thread: Thread, job: Job): void {
    const { kind, input, transfer = [] } = job;
    const { limitMs } = job.times;
    job.stopTimer();
    thread.stopIdleTimer();
    thread.job = job;
    job.thread = thread;
    // The process must not exit while a result is pending.
    thread.worker.ref();
    job.stopTimer = this.#options.after(limitMs, () =>
      this.#endThread(thread, 'timeout', new JobError('timeout', `it took longer than ${limitMs / 1000} s`)),
    );
    try {
      thread.worker.postMessage({ kind, input } satisfies JobMessage, [...transfer]);
    } catch (error) {
      this.#markIdle(thread);
      job.settle('failed', error);
    }
  }

  #markIdle(thread: Thread): void {
    thread.job = undefined;
    thread.worker.unref();
    thread.stopIdleTimer = this.#options.after(this.#options.idleMs, () => this.#endThread(thread));
  }

  /** Tells a thread to end. Its job ends immediately. */
  #endThread(thread: Thread, outcome: JobOutcome = 'failed', reason?: unknown): void {
    const { job } = thread;
    thread.isEnding = true;
    thread.job = undefined;
    thread.worker.unref();
    void thread.worker.terminate();
    job?.settle(outcome, reason);
    this.#startNext();
  }

  #cancel(job: Job): void {
    const { thread } = job;
    if (this.#queue.remove(job.tenant, job)) job.settle('cancelled', createCancelledError());
    else if (thread?.job === job) {
      job.stopTimer();
      job.stopTimer = this.#options.after(graceMs, () => this.#endThread(thread, 'cancelled', createCancelledError()));
    }
  }
}

function refuse(job: Job, message: string): void {
  job.settle('refused', new JobError('refused', message));
}

const noMemoryMessage = 'the service has no memory left for it, and the workspaces of this owner have used their share';

/** Returns the approximate bytes of an input: those of its texts and buffers. Everything else in it is small. */
function getBytes(input: unknown, depth = 0): number {
  if (typeof input === 'string') return input.length;
  if (input instanceof Uint8Array) return input.byteLength;
  if (typeof input !== 'object' || input === null || depth > maxInputDepth) return 0;
  let bytes = 0;
  for (const value of Object.values(input)) bytes += getBytes(value, depth + 1);
  return bytes;
}

/** Maximum nesting of job inputs. */
const maxInputDepth = 2;

/** Maximum queued items of one tenant, and in total. */
type QueueLimits = { perTenant: number; total: number };

/** A queue that serves tenants in round-robin order, and the items of one tenant first in, first out. */
class FairQueue<Item> {
  readonly #limits: QueueLimits;
  /** Tenants in round-robin order. */
  readonly #waiting = new Map<string, Item[]>();
  #size = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns false if the queue is full, or the tenant's share of it. */
  add(tenant: string, item: Item): boolean {
    const items = this.#waiting.get(tenant) ?? [];
    const { perTenant, total } = this.#limits;
    if (items.length >= Math.min(perTenant, getFairShare(total - this.#size, items.length, 3))) return false;
    items.push(item);
    this.#waiting.set(tenant, items);
    this.#size++;
    return true;
  }

  /** Removes and returns the next item that may run, of the next tenant that has one. */
  next(canRun: (tenant: string, item: Item) => boolean): Item | undefined {
    for (const [tenant, items] of this.#waiting) {
      const item = items.find((candidate) => canRun(tenant, candidate));
      if (item === undefined) continue;
      this.remove(tenant, item);
      this.#waiting.delete(tenant);
      if (items.length > 0) this.#waiting.set(tenant, items);
      return item;
    }
    return undefined;
  }

  /** Removes an item that is no longer needed. Returns false if it is not queued. */
  remove(tenant: string, item: Item): boolean {
    const items = this.#waiting.get(tenant) ?? [];
    const index = items.indexOf(item);
    if (index < 0) return false;
    items.splice(index, 1);
    if (items.length === 0) this.#waiting.delete(tenant);
    this.#size--;
    return true;
  }

  /** Removes all items. */
  clear(): Item[] {
    const items = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    this.#size = 0;
    return items;
  }
}
