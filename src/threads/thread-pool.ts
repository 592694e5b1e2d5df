import { FairQueue, type QueueLimits, type WorkParty } from '../domain/work/fair-queue.ts';
import type { Held, MemoryBudget } from '../domain/work/memory-budget.ts';
import { JobError } from '../errors.ts';
import type { HeldMemory } from '../outbound/exchange.ts';
import { JobThread } from './job-thread.ts';
import type { JobInput, JobKind, JobOutput } from './jobs.ts';

export type JobRequest<Kind extends JobKind> = {
  kind: Kind;
  input: JobInput<Kind>;
  /** The owner of the job: workspaces take turns. */
  workspaceId: string;
  /** Whom it is for in the workspace; undefined for the workspace itself. */
  party?: WorkParty | undefined;
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
  memory?: Pick<MemoryBudget, 'hold'>;
  /** Runs `expire` when this process has run for `ms`. Returns a function that cancels it. */
  after: (ms: number, expire: () => void) => () => void;
};

type Job = JobRequest<JobKind> & {
  isLong: boolean;
  thread: JobThread | undefined;
  /** Of its input, before that is transferred. */
  bytes: number;
  /** The memory of the pool that counts the input. */
  own: Held | undefined;
  stopWaiting: (() => void) | undefined;
  resolve: (output: never) => void;
  reject: (error: unknown) => void;
};

/** Time that a cancelled job still gets: ending a thread costs more than a short rest of its work. */
const graceMs = 100;
/** How long the pool waits for the end of its threads when it is closed. */
const lastMs = 1000;

/**
 * Threads for work that would block the event loop too long. They are started on demand. Native functions of V8 cannot be
 * interrupted, so a thread may end hours after it was told to. Another one takes its place, and no one waits for it.
 */
export class ThreadPool {
  readonly #options: ThreadPoolOptions;
  readonly #queue: FairQueue<Job>;
  readonly #threads = new Set<JobThread>();
  readonly #running = new JobCounts();
  /** Jobs that were given up, whose threads have not ended yet. */
  readonly #unended = new JobCounts();
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
      const { memory, waitMs, after } = this.#options;
      const own = request.held ? undefined : memory?.hold(request.workspaceId);
      const bytes = memory ? bytesOf(request.input) : 0;
      const isLong = longKinds.has(request.kind);
      const job = { ...request, isLong, thread: undefined, bytes, own, stopWaiting: undefined, resolve, reject } as Job;
      if (this.#isClosed) this.#refuse(job, 'refused', stopping);
      else if (own && !own.add(bytes)) this.#refuse(job, 'refused', noMemory);
      else if (!this.#queue.add(job.workspaceId, job, job.party))
        this.#refuse(job, 'refused', 'too much of the kind is waiting');
      else {
        request.onGone?.(() => this.#cancel(job));
        this.#startNext();
        const patience = patientKinds.has(job.kind) ? longWaits : 1;
        if (!job.thread) job.stopWaiting = after(waitMs * patience, () => this.#giveUp(job, waitedTooLong));
      }
    });
  }

  counts(): { running: number; waiting: number; outcomes: Readonly<Record<JobOutcome, number>> } {
    return { running: this.#running.all, waiting: this.#queue.size, outcomes: this.#outcomes };
  }

  /** Numbers of threads. An idle one ends when it is told to; a busy or ending one may be in native code. */
  states(): { idle: number; busy: number; ending: number } {
    const numbers = { idle: 0, busy: 0, ending: 0 };
    for (const thread of this.#threads) numbers[thread.isEnding ? 'ending' : thread.isBusy ? 'busy' : 'idle']++;
    return numbers;
  }

  /** Ends all jobs and threads. A thread in native code is not waited for. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const job of this.#queue.clear()) this.#refuse(job, 'refused', stopping);
    for (const thread of this.#threads) thread.end();
    const { promise: isLate, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.after(lastMs, resolve);
    await Promise.race([isLate, Promise.all([...this.#threads].map(({ ended }) => ended))]);
    cancel();
  }

  #startNext(): void {
    while (this.#queue.size > 0 && !this.#isClosed) {
      const idle = [...this.#threads].find((thread) => !thread.isBusy && !thread.isEnding);
      const job = idle || this.#hasPlace() ? this.#queue.next((...next) => this.#mayRun(...next)) : undefined;
      if (!job) return;
      void this.#runOn(idle ?? this.#startThread(), job);
    }
  }

  /** Threads that end take no place of others, up to as many as may work. */
  #hasPlace(): boolean {
    const { threads: most } = this.#options;
    const all = this.#threads.size;
    return all - this.states().ending < most && all < 2 * most;
  }

  /**
   * With several threads, neither one workspace nor long jobs ever occupy all of them, nor all that may be ending; nor do
   * strangers all that their workspace may.
   */
  #mayRun(workspaceId: string, { isLong, party }: Job): boolean {
    const most = Math.max(1, this.#options.threads - 1);
    const [running, unended] = [this.#running, this.#unended];
    if (!isFree(running.of(workspaceId), unended.of(workspaceId), most)) return false;
    if (isLong && !isFree(running.long, unended.long, most)) return false;
    if (!party?.isStranger) return true;
    const ofStrangers = [running.ofStrangers(workspaceId), unended.ofStrangers(workspaceId)] as const;
    return isFree(...ofStrangers, Math.max(1, most - 1), 2 * most - 1);
  }

  #startThread(): JobThread {
    const thread = new JobThread(this.#options);
    this.#threads.add(thread);
    void thread.ended.then(() => {
      this.#threads.delete(thread);
      this.#startNext();
    });
    return thread;
  }

  async #runOn(thread: JobThread, job: Job): Promise<void> {
    job.thread = thread;
    job.stopWaiting?.();
    this.#running.add(job);
    try {
      const output = await thread.run(job);
      this.#outcomes.done++;
      job.resolve(output as never);
    } catch (error) {
      this.#outcomes[error instanceof JobError ? error.reason : 'failed']++;
      job.reject(error);
    }
    this.#running.remove(job);
    if (thread.isEnding) void this.#countUntilEnded(thread, job);
    else job.own?.end();
    this.#startNext();
  }

  /** Counts a job that was given up, and its input, while its thread may still be in native code. */
  async #countUntilEnded(thread: JobThread, job: Job): Promise<void> {
    const kept = job.own ?? this.#options.memory?.hold(job.workspaceId);
    // The caller no longer counts the input.
    if (!job.own) kept?.keep(job.bytes);
    this.#unended.add(job);
    await thread.ended;
    this.#unended.remove(job);
    kept?.end();
    this.#startNext();
  }

  #cancel(job: Job): void {
    if (this.#queue.remove(job.workspaceId, job, job.party)) this.#refuse(job, 'cancelled', 'the caller went away');
    else job.thread?.cancel(job, graceMs);
  }

  #giveUp(job: Job, why: string): void {
    if (this.#queue.remove(job.workspaceId, job, job.party)) this.#refuse(job, 'refused', why);
  }

  #refuse(job: Job, reason: 'refused' | 'cancelled', message: string): void {
    job.stopWaiting?.();
    job.own?.end();
    this.#outcomes[reason]++;
    job.reject(new JobError(reason, message));
  }
}

/** Whether another job may run beside these; `most` at a time, and `mostThreads` with those that end. */
function isFree(running: number, unended: number, most: number, mostThreads = 2 * most): boolean {
  return running < most && running + unended < mostThreads;
}

/** Jobs of half a minute; no call waits for one. */
const longKinds: ReadonlySet<JobKind> = new Set(['plan-import', 'import-again']);
/** Jobs that wait longer than others: those of half a minute, and the reading of a body for one of them. */
const patientKinds: ReadonlySet<JobKind> = new Set([...longKinds, 'read-body']);
/** How many times as long as others such a job waits. */
const longWaits = 3;

const stopping = 'the service is stopping';
const waitedTooLong = 'it waited too long for a thread';
const noMemory = 'the service has no memory left for it, and this workspace uses its share of it';

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

type Counted = { workspaceId: string; party?: WorkParty | undefined; isLong: boolean };

/** Numbers of jobs, of each workspace, of the strangers of each, and of those that take long. */
class JobCounts {
  readonly #ofWorkspace = new Map<string, number>();
  readonly #ofStrangers = new Map<string, number>();
  #long = 0;

  add(job: Counted): void {
    this.#count(job, 1);
  }

  remove(job: Counted): void {
    this.#count(job, -1);
  }

  of(workspaceId: string): number {
    return this.#ofWorkspace.get(workspaceId) ?? 0;
  }

  /** Of the strangers of a workspace. */
  ofStrangers(workspaceId: string): number {
    return this.#ofStrangers.get(workspaceId) ?? 0;
  }

  get long(): number {
    return this.#long;
  }

  get all(): number {
    return [...this.#ofWorkspace.values()].reduce((sum, count) => sum + count, 0);
  }

  #count({ workspaceId, party, isLong }: Counted, change: number): void {
    changeBy(this.#ofWorkspace, workspaceId, change);
    if (party?.isStranger) changeBy(this.#ofStrangers, workspaceId, change);
    if (isLong) this.#long += change;
  }
}

function changeBy(counts: Map<string, number>, id: string, change: number): void {
  const count = (counts.get(id) ?? 0) + change;
  if (count > 0) counts.set(id, count);
  else counts.delete(id);
}
