import { performance } from 'node:perf_hooks';
import { getRunningTimeMs } from '@toolhost/limits/running-time';
import type { Resolve } from '@toolhost/safe-http/connector';
import type { EgressAllow } from '@toolhost/safe-http/egress';
import type { LookupLimits } from '@toolhost/safe-http/lookups';
import type { ProcessClocks } from '../store/changes/follow-changes.ts';
import type { PostgresLimits } from '../store/engine/postgres.ts';
import type { LoopLag } from './observability/loop-lag.ts';
import type { ProcessMemory } from './process-memory.ts';

/** External dependencies and time limits of a process. Tests set their own. */
export type RuntimeOptions = {
  resolve: Resolve;
  dnsLimits: LookupLimits;
  /** Addresses that the address guard also allows in URLs that an unverified caller chooses. Empty except in tests. */
  extraPublicAddresses: EgressAllow;
  /** Maximum times in which the headers and the whole request must arrive, in ms. */
  headersTimeoutMs: number;
  requestTimeoutMs: number;
  /** Maximum time for a client to read each 2 MiB of a response, in ms. */
  slowReaderMs: number;
  /**
   * Maximum idle time of a connection, in ms. Longer than any call, and longer than the idle timeout of common load
   * balancers, so that they close first.
   */
  idleTimeoutMs: number;
  /** Maximum number of concurrent client connections, for a process without a proxy in front. */
  maxConnections: number;
  /** Maximum time that a call waits for a slot under the limits, in ms. */
  queueMs: number;
  /** Returns epoch ms. Decisions that other processes rely on use `DatabaseClock` instead. */
  now: () => number;
  /** Monotonic ms. */
  clock: () => number;
  /**
   * Monotonic ms in which this process ran. Slow clients are detected with this clock, because a stopped process
   * cannot observe them.
   */
  runningClock: () => number;
  /** Share of time that the reports of one workspace may use, from 0 to 1. */
  reportShare: number;
  /** Time limits of PostgreSQL work; undefined uses the defaults. */
  postgresLimits?: PostgresLimits | undefined;
  /** Time between two polls for the lease of a leader job, in ms. */
  leaderPollIntervalMs: number;
  /** Divides the memory of this process, given the number of workers. */
  divideMemory: (workers: number) => ProcessMemory;
  createLoopLag: (clock: () => number) => LoopLag;
};

/** Clocks of a real process. */
export const processClocks = {
  now: Date.now,
  clock: performance.now.bind(performance),
  runningClock: getRunningTimeMs,
} satisfies ProcessClocks & Pick<RuntimeOptions, 'runningClock'>;
