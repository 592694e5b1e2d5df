import { performance } from 'node:perf_hooks';
import { runningNow } from '../domain/work/running-time.ts';
import type { Resolve } from '../outbound/connector.ts';
import type { EgressAllow } from '../outbound/egress.ts';
import type { LookupLimits } from '../outbound/lookups.ts';
import type { ProcessClocks } from '../store/changes/follow-changes.ts';
import type { PostgresLimits } from '../store/engine/postgres.ts';
import type { LoopLag } from './observability/loop-lag.ts';
import type { ProcessMemory } from './process-memory.ts';

/** External dependencies and time limits of a process; tests set their own. */
export type Surroundings = {
  resolve: Resolve;
  lookups: LookupLimits;
  /** Addresses that the address guard also takes for public where a stranger chooses the URL. Empty except in tests. */
  publicAddresses: EgressAllow;
  /** How long the headers and the whole of a request may take to arrive, in ms. */
  headersMs: number;
  requestMs: number;
  /** How long a client may take to read each 2 MiB of an answer, in ms. */
  slowReaderMs: number;
  /**
   * How long a connection may be idle, in ms. Longer than any call, and longer than the idle timeout of the usual load
   * balancers, so that they close first.
   */
  silentMs: number;
  /** Connections of clients at once; for a process that no proxy stands before. */
  mostConnections: number;
  /** How long a call waits for a slot under the limits, in ms. */
  queueMs: number;
  /** Epoch ms. Decisions that other processes rely on use `DatabaseClock` instead. */
  now: () => number;
  /** Monotonic ms. */
  clock: () => number;
  /** Monotonic ms in which this process ran. Who is slow is told by this clock, because a stopped process cannot see it. */
  runningClock: () => number;
  /** The share of time that the reports of one workspace may take, from 0 to 1. */
  reportShare: number;
  /** How long work at PostgreSQL may take; undefined: the usual limits. */
  postgresLimits?: PostgresLimits | undefined;
  /** Time between two looks whether this process should do the work that one of all does, in ms. */
  electedLookMs: number;
  /** Divides the memory of this process, which is one of so many workers. */
  memory: (workers: number) => ProcessMemory;
  createLoopLag: (clock: () => number) => LoopLag;
};

/** The clocks of a real process. */
export const processClocks = {
  now: Date.now,
  clock: performance.now.bind(performance),
  runningClock: runningNow,
} satisfies ProcessClocks & Pick<Surroundings, 'runningClock'>;
