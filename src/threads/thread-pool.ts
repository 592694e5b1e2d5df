import { Worker } from 'node:worker_threads';
import { tenantOf } from '../domain/ids.ts';
import type { MemoryBudget } from '../domain/work/memory-budget.ts';
import { JobError } from '../errors.ts';
import type { JobInput, JobKind, JobOutput } from './jobs.ts';
import type { JobAnswer, JobQuestion } from './thread.ts';

export type JobRequest<Kind extends JobKind> = {
  kind: Kind;
  input: JobInput<Kind>;
  /** Workspace that owns the job, or the network of an unverified caller. Tenants take turns. */
  workspaceId: string;
  /** Maximum running time, in ms in which this process ran. The thread is terminated after that. */
  limitMs: number;
  /** Maximum time in the queue, in ms. */
  waitMs: number;
  /** Buffers of the input that are transferred, and then no longer usable here. */
  transfer?: readonly ArrayBuffer[];
  /**
   * Memory reservation that already counts the input. If absent, the pool reserves memory for it until the end of the
   * job.
   */
  held?: object | undefined;
  /** Receives a function that cancels the job. */
  onGone?: ((cancel: () => void) => void) | undefined;
};

export const jobOutcomes = ['done', 'failed', 'timeout', 'memory', 'refused', 'cancelled'] as const;
export type JobOutcome = (typeof jobOutcomes)[number];

export type ThreadPoolOptions = {
  threads: number;
  queue: QueueLimits;
  /** Time limit, in ms, above which a job counts as long. Long jobs together leave one thread to other jobs. */
  longMs: number;
  /** Time after which an idle thread is terminated, in ms. */
  idleMs: number;
  /** Maximum heap bytes of a thread. Beyond it the thread ends, not the process. */
  threadBytes: number;
  /** Memory budget for inputs without a reservation. If absent, they are not counted. */
  memory?: Pick<MemoryBudget, 'hold'>;
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

/** A thread. `job` is the job that it runs. `isEnding` is true after it was told to end, when it takes no more jobs. */
type Thread = { worker: Worker; job: Job | undefined; isEnding: boolean; stopIdle: () => void; ended: Promise<void> };

/** Maximum MB of a thread's young generation. */
const maxYoungGenerationSizeMb = 32;
const megabyte = 1024 * 1024;
/** Time that a canceled job may still run. Terminating a thread costs more than finishing a little work. */
const graceMs = 100;
/** Time that the pool waits for the end of its threads when it closes. */
const lastMs = 1000;

const stopping = 'the service is stopping';
const cancelled = () => new JobError('cancelled', 'the client disconnected');

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

  /** @throws JobError when there is no result */
  run<Kind extends JobKind>(request: JobRequest<Kind>): Promise<JobOutput<Kind>> {
    return new Promise((resolve, reject) => {
      const { memory, after } = this.#options;
      const own = request.held ? undefined : memory?.hold(request.workspaceId);
      const settle: Job['settle'] = (outcome, result) => {
        job.stopTimer();
        job.settle = () => undefined;
        own?.end();
        this.#outcomes[outcome]++;
        if (outcome === 'done') resolve(result as JobOutput<Kind>);
        else reject(result);
      };
      const job: Job = {
        ...request,
        tenant: tenantOf(request.workspaceId),
        thread: undefined,
        stopTimer: () => undefined,
        settle,
      };
      if (this.#isClosed) refuse(job, stopping);
      else if (own && !own.add(bytesOf(request.input))) refuse(job, noMemory);
      else if (!this.#queue.add(job.tenant, job)) refuse(job, 'too many jobs of this kind are queued');
      else {
        request.onGone?.(() => this.#cancel(job));
        job.stopTimer = after(job.waitMs, () => {
          if (this.#queue.remove(job.tenant, job)) refuse(job, 'it was queued too long for a thread');
        });
        this.#startNext();
      }
    });
  }

  counts(): { running: number; waiting: number; outcomes: Readonly<Record<JobOutcome, number>> } {
    return { running: this.states().busy, waiting: this.#queue.size, outcomes: this.#outcomes };
  }

  /**
   * Returns the numbers of threads. An idle one ends as soon as it is told to; a busy or ending one may be in native
   * code.
   */
  states(): { idle: number; busy: number; ending: number } {
    const numbers = { idle: 0, busy: 0, ending: 0 };
    for (const { isEnding, job } of this.#threads) numbers[isEnding ? 'ending' : job ? 'busy' : 'idle']++;
    return numbers;
  }

  /** Ends all jobs and threads. Does not wait for threads in native code. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const job of this.#queue.clear()) refuse(job, stopping);
    for (const thread of this.#threads) this.#end(thread, 'failed', new JobError('failed', stopping));
    const { promise: isLate, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.after(lastMs, resolve);
    await Promise.race([isLate, Promise.all([...this.#threads].map(({ ended }) => ended))]);
    cancel();
  }

  #startNext(): void {
    while (this.#queue.size > 0 && !this.#isClosed) {
      const idle = [...this.#threads].find(({ job, isEnding }) => !job && !isEnding);
      const job = idle || this.#hasPlace() ? this.#queue.next((...next) => this.#mayRun(...next)) : undefined;
      if (!job) return;
      this.#runOn(idle ?? this.#startThread(), job);
    }
  }

  /** Returns true if a thread may be started. Ending threads do not count, up to the number of working threads. */
  #hasPlace(): boolean {
    const { threads: most } = this.#options;
    return this.#threads.size - this.states().ending < most && this.#threads.size < 2 * most;
  }

  /** Returns true if a job may run. With several threads, neither one tenant nor long jobs ever occupy all of them. */
  #mayRun(tenant: string, { limitMs }: Job): boolean {
    const { threads, longMs } = this.#options;
    const most = Math.max(1, threads - 1);
    const jobs = [...this.#threads].flatMap(({ job, isEnding }) => (job && !isEnding ? [job] : []));
    if (jobs.filter((job) => job.tenant === tenant).length >= most) return false;
    return limitMs <= longMs || jobs.filter((job) => job.limitMs > longMs).length < most;
  }

  #startThread(): Thread {
    const { threadBytes } = this.#options;
    const worker = new Worker(new URL('./thread.ts', import.meta.url), {
      // Flags such as --input-type apply only to the main program.
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: Math.floor(threadBytes / megabyte), maxYoungGenerationSizeMb },
    });
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const thread: Thread = { worker, job: undefined, isEnding: false, stopIdle: () => undefined, ended };
    worker.on('message', (answer: JobAnswer) => {
      const { job } = thread;
      this.#rest(thread);
      if ('failure' in answer) job?.settle('failed', answer.failure);
      else job?.settle('done', answer.output);
      this.#startNext();
    });
    worker.on('error', (error: Error & { code?: string }) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY')
        thread.job?.settle('memory', new JobError('memory', 'it needs more memory than a job may use'));
      else thread.job?.settle('failed', error);
    });
    worker.on('exit', () => {
      thread.stopIdle();
      thread.job?.settle('failed', new JobError('failed', 'the thread has ended'));
      this.#threads.delete(thread);
      resolve();
      this.#startNext();
    });
    this.#threads.add(thread);
    return thread;
  }

  #runOn(thread: Thread, job: Job): void {
    const { kind, input, limitMs, transfer = [] } = job;
    job.stopTimer();
    thread.stopIdle();
    thread.job = job;
    job.thread = thread;
    // The process must not exit while a result is pending.
    thread.worker.ref();
    job.stopTimer = this.#options.after(limitMs, () =>
      this.#end(thread, 'timeout', new JobError('timeout', `it took longer than ${limitMs / 1000} s`)),
    );
    try {
      thread.worker.postMessage({ kind, input } satisfies JobQuestion, [...transfer]);
    } catch (error) {
      this.#rest(thread);
      job.settle('failed', error);
    }
  }

  /** Marks the thread as idle. */
  #rest(thread: Thread): void {
    thread.job = undefined;
    thread.worker.unref();
    thread.stopIdle = this.#options.after(this.#options.idleMs, () => this.#end(thread));
  }

  /** Tells a thread to end. Its job ends immediately. */
  #end(thread: Thread, outcome: JobOutcome = 'failed', why?: unknown): void {
    const { job } = thread;
    thread.isEnding = true;
    thread.job = undefined;
    thread.worker.unref();
    void thread.worker.terminate();
    job?.settle(outcome, why);
    this.#startNext();
  }

  #cancel(job: Job): void {
    const { thread } = job;
    if (this.#queue.remove(job.tenant, job)) job.settle('cancelled', cancelled());
    else if (thread?.job === job) {
      job.stopTimer();
      job.stopTimer = this.#options.after(graceMs, () => this.#end(thread, 'cancelled', cancelled()));
    }
  }
}

function refuse(job: Job, message: string): void {
  job.settle('refused', new JobError('refused', message));
}

const noMemory = 'the service has no memory left for it, and the workspaces of this owner have used their share';

/**
 * Returns the bytes of the texts and buffers in an input, at any depth that job inputs have. Everything else in it is
 * small.
 */
function bytesOf(input: unknown, depth = 0): number {
  if (typeof input === 'string') return input.length;
  if (input instanceof Uint8Array) return input.byteLength;
  if (typeof input !== 'object' || input === null || depth > mostDepth) return 0;
  let bytes = 0;
  for (const value of Object.values(input)) bytes += bytesOf(value, depth + 1);
  return bytes;
}
const mostDepth = 2;

/** Maximum queued items of one tenant, and in total. */
type QueueLimits = { ofTenant: number; ofAll: number };

/**
 * A queue that serves tenants in round-robin order, and the items of one tenant first in, first out. A tenant may use
 * at most half of the free slots, so that a few tenants that queue as much as they can leave some to the others.
 */
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

  /** Returns false if the queue is full. */
  add(tenant: string, item: Item): boolean {
    const items = this.#waiting.get(tenant) ?? [];
    const free = this.#limits.ofAll - this.#size;
    if (free <= 0 || items.length * 2 > free || items.length >= this.#limits.ofTenant) return false;
    items.push(item);
    this.#waiting.set(tenant, items);
    this.#size++;
    return true;
  }

  /** Removes and returns the next item that may run, of the next tenant that has one. */
  next(mayRun: (tenant: string, item: Item) => boolean): Item | undefined {
    for (const [tenant, items] of this.#waiting) {
      const item = items.find((one) => mayRun(tenant, one));
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
