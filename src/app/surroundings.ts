import type { Resolve } from '../outbound/connector.ts';
import type { EgressAllow } from '../outbound/egress.ts';
import type { ProcessClocks } from '../store/changes/database-clock.ts';
import type { LoopLag } from './observability/loop-lag.ts';

/** What a process may bring of its own; tests bring their name server, their clocks and their patience. */
export type Surroundings = {
  resolve: Resolve;
  /** What counts as the public internet besides it where a stranger names the URL: nothing, but for tests, which have no public address. */
  publicAddresses: EgressAllow;
  /** How long the headers and the whole of a request may take to come, in ms. */
  headersMs: number;
  requestMs: number;
  /** How long a client may take to read an answer of the MCP endpoints, in ms. */
  slowReaderMs: number;
  /**
   * How long nothing may move on a connection, in ms: longer than any call takes, and than the idle time of the usual load
   * balancers, so that they close first.
   */
  silentMs: number;
  /** How long a call waits for a place. */
  queueMs: number;
  /** Epoch ms. It decides nothing that another process relies on: `DatabaseClock` does. */
  now: () => number;
  /** Monotonic ms. */
  clock: () => number;
  /** The share of the time that the reports of one workspace may take. */
  reportShare: number;
  startLoopLag: (clock: () => number) => LoopLag;
};

/** The clocks of a real process. */
export const processClocks: ProcessClocks = { now: Date.now, clock: () => performance.now() };
