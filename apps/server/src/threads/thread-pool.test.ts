import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { JobError } from '@toolhost/errors/errors';
import { setRunningTimeout } from '@toolhost/limits/running-time';
import { eventually } from '../../../../test/support/eventually.ts';
import { createHangingJob, type HangingJob, hangingJobOptions } from '../../../../test/support/hanging-job.ts';
import { type JobRequest, ThreadPool, type ThreadPoolOptions } from './thread-pool.ts';

const subschemas = Array.from({ length: 1900 }, (_, i) => ({ maximum: i + 10 }));
const schema = JSON.stringify({ type: 'object', properties: { a: { items: { allOf: subschemas } } } });
const makeArgs = (count: number) => JSON.stringify({ a: Array(count).fill(1) });
/** Job with the maximum number of steps, which takes a few tenths of a second. */
const longJob = { schema, args: makeArgs(50_000) };
const shortJob = { schema, args: makeArgs(1) };
/** Time limit above which the pool counts a job as long. */
const longJobMs = 60_000;
/** Time limits of a job that no test reaches. */
const times = { limitMs: 60_000, queueTimeoutMs: 60_000 };

describe('thread pool', () => {
  let pool: ThreadPool | undefined;
  afterEach(() => pool?.close());

  const startPool = (options: Partial<ThreadPoolOptions> = {}): ThreadPool => {
    pool = new ThreadPool({
      threadBytes: 512 * 1024 * 1024,
      threads: 2,
      queue: { perTenant: 10, total: 20 },
      longJobMs,
      idleMs: 60_000,
      after: setRunningTimeout,
      ...options,
    });
    return pool;
  };
  type CheckRequest = JobRequest<'check-arguments'>;
  const checkJob = (input: typeof longJob, more: Partial<CheckRequest> = {}): CheckRequest => ({
    ...{ kind: 'check-arguments', input, ownerId: 'one', times },
    ...more,
  });
  const getFailureReason = async (running: Promise<unknown>): Promise<string> => {
    try {
      await running;
      return 'none';
    } catch (error) {
      assert.ok(error instanceof JobError, String(error));
      return error.reason;
    }
  };

  /** Returns manual timers for the pool, which expire when the test says so. */
  const manualTimers = () => {
    const timers = new Set<{ ms: number; expire: () => void }>();
    return {
      after(ms: number, expire: () => void) {
        const timer = { ms, expire };
        timers.add(timer);
        return () => void timers.delete(timer);
      },
      /** Expires the only timer of `ms`. */
      expire(ms: number) {
        const [wait, ...others] = [...timers].filter((one) => one.ms === ms);
        assert.deepEqual([wait?.ms, others], [ms, []]);
        wait?.expire();
      },
    };
  };

  it('[find A2] ends a job and its thread after the time limit and starts another thread for the next job', async () => {
    const threads = startPool();
    const running = threads.run(checkJob(longJob, { times: { ...times, limitMs: 1 } }));
    assert.equal(await getFailureReason(running), 'timeout');
    assert.equal((await threads.run(checkJob(shortJob))).failure, undefined);
    const outcomes = { done: 1, failed: 0, timeout: 1, memory: 0, refused: 0, cancelled: 0 };
    assert.deepEqual(threads.getCounts(), { running: 0, waiting: 0, outcomes });
  });

  it('[find A2] alternates between workspaces so that none occupies all threads', async () => {
    const threads = startPool();
    const completed: string[] = [];
    const run = (ownerId: string, input: typeof longJob) =>
      threads.run(checkJob(input, { ownerId })).then(() => completed.push(ownerId));
    const many = Array.from({ length: 6 }, () => run('many', longJob));
    const few = Array.from({ length: 3 }, () => run('few', shortJob));
    assert.equal(threads.getCounts().running, 2);
    await Promise.all([...many, ...few]);
    assert.equal(completed.at(-1), 'many', 'later, shorter jobs do not wait for all jobs of another workspace');
  });

  it('[find A2] rejects jobs immediately when the queue of the workspace or of the pool is full', async () => {
    const threads = startPool({ queue: { perTenant: 2, total: 3 } });
    const runJob = (ownerId: string) => getFailureReason(threads.run(checkJob(longJob, { ownerId })));
    const first = [runJob('a'), runJob('a'), runJob('a')];
    assert.equal(await runJob('a'), 'refused');
    const others = [runJob('b'), runJob('b')];
    assert.equal(await runJob('c'), 'refused');
    assert.deepEqual(await Promise.all([...first, ...others]), Array(5).fill('none'));
  });

  it('[find A2] [imp 1] leaves a thread to calls while several workspaces import', async () => {
    const threads = startPool();
    const rules = { managementSlug: 'manage', egressAllow: '', ownBase: 'own.example', acceptsFormPost: true };
    const document = `openapi: 3.0.0\nx: [${'{a: 1}, '.repeat(500_000)}]\n`;
    const cancels: (() => void)[] = [];
    const importJob = {
      kind: 'plan-import' as const,
      input: { document, choices: {}, report: 'none' as const, rules },
      times: { ...times, limitMs: longJobMs + 1 },
      registerCancel: (cancel: () => void) => void cancels.push(cancel),
    };
    const imports = ['a', 'b', 'c'].map((ownerId) => getFailureReason(threads.run({ ...importJob, ownerId })));
    for (const ownerId of ['d', 'e', 'f'])
      assert.equal((await threads.run(checkJob(shortJob, { ownerId }))).failure, undefined);
    const { running, waiting } = threads.getCounts();
    assert.deepEqual([running, waiting], [1, 2], 'one import runs and the others wait');
    for (const cancel of cancels) cancel();
    assert.deepEqual(await Promise.all(imports), ['cancelled', 'cancelled', 'cancelled']);
  });

  it('[find A2] does not start a job after its queue timeout', async () => {
    const { after, expire } = manualTimers();
    const threads = startPool({ after });
    const running = getFailureReason(threads.run(checkJob(longJob)));
    const waiting = getFailureReason(threads.run(checkJob(longJob, { times: { ...times, queueTimeoutMs: 10 } })));
    expire(10);
    assert.equal(await waiting, 'refused');
    assert.equal(await running, 'none');
  });

  it('[find A2] cancels a waiting or running job when the client disconnects', async () => {
    const threads = startPool();
    const cancels: (() => void)[] = [];
    const registerCancel = (cancel: () => void) => void cancels.push(cancel);
    const endless = { schema, args: makeArgs(60_000) };
    const running = getFailureReason(threads.run(checkJob(endless, { registerCancel })));
    const waiting = getFailureReason(threads.run(checkJob(longJob, { registerCancel })));
    for (const cancel of cancels) cancel();
    assert.equal(await waiting, 'cancelled');
    assert.match(await running, /^(cancelled|none)$/);
    assert.equal((await threads.run(checkJob(shortJob))).failure, undefined);
  });

  it('[find A2] ends running and waiting jobs when the pool closes', async () => {
    const threads = startPool();
    // A workspace gets all threads but one, so the second job waits.
    const jobs = [1, 2].map(() => getFailureReason(threads.run(checkJob(longJob))));
    await threads.close();
    assert.deepEqual(await Promise.all(jobs), ['failed', 'refused']);
    assert.equal(await getFailureReason(threads.run(checkJob(shortJob))), 'refused');
  });

  describe('with jobs in native code that cannot be interrupted', () => {
    const { NODE_OPTIONS: originalNodeOptions } = process.env;
    let hanging: HangingJob[] = [];
    before(() => {
      process.env.NODE_OPTIONS = `${originalNodeOptions ?? ''} ${hangingJobOptions}`;
    });
    after(() => {
      if (originalNodeOptions === undefined) delete process.env.NODE_OPTIONS;
      else process.env.NODE_OPTIONS = originalNodeOptions;
    });
    afterEach(() => release());

    const release = async () => {
      await Promise.all(hanging.map((job) => job.release()));
      hanging = [];
      await eventually(() => assert.equal(pool?.getStates().ending, 0));
    };
    /** Starts a job that hangs and cancels it. */
    const startAndCancelHangingJob = async (threads: ThreadPool, ownerId: string) => {
      const job = createHangingJob();
      hanging.push(job);
      let cancel = (): void => assert.fail('the job cannot be cancelled');
      const registerCancel = (cancelJob: () => void) => {
        cancel = cancelJob;
      };
      const input = { body: Buffer.from(job.body()), coding: 'gzip' as const, limitBytes: 1024 * 1024 };
      const reason = getFailureReason(threads.run({ kind: 'decode-body', input, ownerId, times, registerCancel }));
      await job.waitUntilHanging();
      cancel();
      assert.equal(await reason, 'cancelled');
    };

    it('[find A2] replaces a thread that does not end', async () => {
      const threads = startPool();
      for (const ownerId of ['a', 'b']) await startAndCancelHangingJob(threads, ownerId);
      assert.deepEqual(threads.getStates(), { idle: 0, busy: 0, ending: 2 });
      assert.equal((await threads.run(checkJob(shortJob))).failure, undefined);
      assert.deepEqual(threads.getStates(), { idle: 1, busy: 0, ending: 2 });
      await release();
      assert.deepEqual(threads.getStates(), { idle: 1, busy: 0, ending: 0 });
    });
  });
});
