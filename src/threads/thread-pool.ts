import { FairQueue, type QueueLimits } from '../domain/work/fair-queue.ts';
import { JobError } from '../errors.ts';
import type { HeldMemory } from '../outbound/exchange.ts';
import { JobThread } from './job-thread.ts';
import type { JobInput, JobKind, JobOutput } from './jobs.ts';

export type JobRequest<Kind extends JobKind> = {
  kind: Kind;
  input: JobInput<Kind>;
  /** The owner of the job: workspaces take turns. */
  workspaceId: string;
  /** Longest time that it may run, in ms; its thread is ended then. */
  limitMs: number;
  /** Memory of the input that is transferred, and no longer usable here. */
  transfer?: readonly ArrayBuffer[];
  /** The memory that counts the input already, if any does; otherwise the pool counts it, from here to the end of the job. */
  held?: HeldMemory | undefined;
  /** Gets a function that cancels the job. */
  onGone?: ((cancel: () => void) => void) | undefined;
};

export const jobOutcomes = ['done', 'failed', 'timeout', 'memory', 'refused', 'cancelled'] as const;
export type JobOutcome = (typeof jobOutcomes)[number];

export type ThreadPoolOptions = {
  threads: number;
  queue: QueueLimits;
  /** Longest that a job waits for a thread, in ms. */
  waitMs: number;
  /** How long an idle thread is kept, in ms. */
  idleMs: number;
  /** Most bytes of the values of a thread. */
  threadBytes: number;
  /** Memory for inputs that nobody else counts; not counted when absent. */
  memory?: { hold(workspaceId: string): HeldMemory };
  /** Monotonic ms in which this process ran. */
  clock: () => number;
};

type Job = JobRequest<JobKind> & {
  since: number;
  thread: JobThread | undefined;
  /** The memory of the pool that counts the input. */
  own: HeldMemory | undefined;
  resolve: (output: never) => void;
  reject: (error: unknown) => void;
};

/** Time that a cancelled job still gets: ending a thread costs more than a short rest of its work. */
const graceMs = 100;

/** Threads for work that would block the event loop too long. They are started on demand. */
export class ThreadPool {
  readonly #options: ThreadPoolOptions;
  readonly #queue: FairQueue<Job>;
  readonly #threads = new Set<JobThread>();
  #runningLong = 0;
  /** Number of running jobs by workspace. */
  readonly #running = new Map<string, number>();
  readonly #outcomes: Record<JobOutcome, number> = {
    done: 0,
    failed: 0,
    timeout: 0,
    memory: 0,
    refused: 0,
    cancelled: 0,
  };
  #isClosed = false;

  constructor(options: ThreadPoolOptions) {
    this.#options = options;
    this.#queue = new FairQueue(options.queue);
  }

  /** @throws JobError when there is no result */
  run<Kind extends JobKind>(request: JobRequest<Kind>): Promise<JobOutput<Kind>> {
    return new Promise((resolve, reject) => {
      const { clock, memory } = this.#options;
      const own = request.held ? undefined : memory?.hold(request.workspaceId);
      const job = { ...request, since: clock(), thread: undefined, own, resolve, reject } as Job;
      if (this.#isClosed) this.#refuse(job, 'refused', stopping);
      else if (own && !own.add(bytesOf(request.input))) this.#refuse(job, 'refused', noMemory);
      else if (!this.#queue.add(job.workspaceId, job)) this.#refuse(job, 'refused', 'too much of the kind is waiting');
      else {
        request.onGone?.(() => this.#cancel(job));
        const held = own ?? request.held;
        if (held) held.ending = { giveUp: () => this.#giveUp(job) };
        this.#startNext();
      }
    });
  }

  counts(): { running: number; waiting: number; outcomes: Readonly<Record<JobOutcome, number>> } {
    const running = [...this.#running.values()].reduce((sum, count) => sum + count, 0);
    return { running, waiting: this.#queue.size, outcomes: this.#outcomes };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const job of this.#queue.clear()) this.#refuse(job, 'refused', stopping);
    await Promise.all([...this.#threads].map((thread) => thread.close()));
  }

  #startNext(): void {
    const { threads, waitMs, clock } = this.#options;
    while (this.#queue.size > 0 && !this.#isClosed) {
      const idle = [...this.#threads].find((thread) => !thread.isBusy);
      const job =
        idle || this.#threads.size < threads ? this.#queue.next((...next) => this.#mayRun(...next)) : undefined;
      if (!job) return;
      if (clock() - job.since > waitMs * (patientKinds.has(job.kind) ? longWaits : 1))
        this.#refuse(job, 'refused', 'it waited too long for a thread');
      else void this.#runOn(idle ?? this.#startThread(), job);
    }
  }

  /** With several threads, neither one workspace nor long jobs ever occupy all of them. */
  #mayRun(workspaceId: string, job: Job): boolean {
    const most = Math.max(1, this.#options.threads - 1);
    return (this.#running.get(workspaceId) ?? 0) < most && !(isLong(job) && this.#runningLong >= most);
  }

  #startThread(): JobThread {
    const thread = new JobThread(this.#options, () => {
      this.#threads.delete(thread);
      this.#startNext();
    });
    this.#threads.add(thread);
    return thread;
  }

  async #runOn(thread: JobThread, job: Job): Promise<void> {
    const { workspaceId } = job;
    job.thread = thread;
    const held = job.own ?? job.held;
    if (held) held.ending = undefined;
    if (isLong(job)) this.#runningLong++;
    this.#running.set(workspaceId, (this.#running.get(workspaceId) ?? 0) + 1);
    try {
      const output = await thread.run(job);
      this.#outcomes.done++;
      job.resolve(output as never);
    } catch (error) {
      this.#outcomes[error instanceof JobError ? error.reason : 'failed']++;
      job.reject(error);
    }
    job.own?.end();
    if (isLong(job)) this.#runningLong--;
    const left = (this.#running.get(workspaceId) ?? 1) - 1;
    if (left > 0) this.#running.set(workspaceId, left);
    else this.#running.delete(workspaceId);
    this.#startNext();
  }

  #cancel(job: Job): void {
    if (this.#queue.remove(job.workspaceId, job)) this.#refuse(job, 'cancelled', 'the caller went away');
    else job.thread?.cancel(job, graceMs);
  }

  #giveUp(job: Job): void {
    if (this.#queue.remove(job.workspaceId, job)) this.#refuse(job, 'refused', noMemory);
  }

  #refuse(job: Job, reason: 'refused' | 'cancelled', message: string): void {
    job.own?.end();
    this.#outcomes[reason]++;
    job.reject(new JobError(reason, message));
  }
}

/** Jobs of half a minute; no call waits for one. */
const longKinds: ReadonlySet<JobKind> = new Set(['plan-import', 'import-again']);
/** Jobs that wait longer than others: those of half a minute, and the reading of a body for one of them. */
const patientKinds: ReadonlySet<JobKind> = new Set([...longKinds, 'read-body']);
/** How many times as long as others such a job waits. */
const longWaits = 3;

function isLong({ kind }: Job): boolean {
  return longKinds.has(kind);
}

const stopping = 'the service is stopping';
const noMemory = 'the service has no memory left for it, and this workspace uses most of it';

/** Bytes of the texts and buffers in an input, at any depth that jobs have; everything else in it is small. */
function bytesOf(input: unknown, depth = 0): number {
  if (typeof input === 'string') return input.length;
  if (input instanceof Uint8Array) return input.byteLength;
  if (typeof input !== 'object' || input === null || depth > mostDepth) return 0;
  let bytes = 0;
  for (const value of Object.values(input)) bytes += bytesOf(value, depth + 1);
  return bytes;
}
const mostDepth = 2;
