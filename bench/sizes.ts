/** Amount of work in each mode. */
export type Size = {
  /** Rounds of each row, and seconds of load in a round. */
  rounds: number;
  seconds: number;
  /** Calls to each contestant before its first round. V8 is still compiling the service until about 110,000. */
  warmUpCalls: number;
  /** Share of calls that may fail: a service without processor time for a moment refuses some. */
  maxFailures: number;
  /** Time after the warm-up during which rounds wait for a quiet machine. */
  patientMs: number;
  /** Servers that are created one after the other, and starts that are timed. */
  creations: number;
  starts: number;
  /** Servers in the store of `many-servers.ts`, and how many of them are called. */
  servers: number;
  calledServers: number;
  /**
   * In a round of `--against` both services are started, and each row is measured so many times, with patience anew. After
   * `minRounds` there are more as long as they end within `budgetMs` after the start of the bench.
   */
  against: { minRounds: number; budgetMs: number; measurements: number; seconds: number; patientMs: number };
  soak: { minutes: number; workspaces: number; serversEach: number; phaseSeconds: number; coolDownMs: number };
  /** A scale of 1 is a million calls. */
  reports: { scale: number; maxRequestsOfOperation: number; rounds: number; seconds: number };
  imports: { rounds: number; seconds: number };
};

export const wholeSize: Size = {
  rounds: 5,
  seconds: 2,
  warmUpCalls: 110_000,
  maxFailures: 0.01,
  patientMs: 200_000,
  creations: 50,
  starts: 5,
  servers: 100_000,
  calledServers: 3000,
  against: { minRounds: 3, budgetMs: 540_000, measurements: 2, seconds: 1, patientMs: 20_000 },
  // Connections to upstreams are kept for less than the 15 s at the end.
  soak: { minutes: 10, workspaces: 10, serversEach: 100, phaseSeconds: 10, coolDownMs: 15_000 },
  reports: { scale: 1, maxRequestsOfOperation: Number.POSITIVE_INFINITY, rounds: 6, seconds: 3 },
  imports: { rounds: 5, seconds: 6 },
};

export const quickSize: Size = {
  ...wholeSize,
  rounds: 3,
  seconds: 1,
  warmUpCalls: 20_000,
  patientMs: 15_000,
  creations: 15,
  starts: 2,
  servers: 2000,
};

/** Shows that a mode ends with its report, also on a busy machine. Its figures mean nothing. */
export const smallestSize: Size = {
  rounds: 1,
  seconds: 0.5,
  warmUpCalls: 1,
  maxFailures: 1,
  patientMs: 0,
  creations: 1,
  starts: 1,
  servers: 20,
  calledServers: 20,
  against: { minRounds: 2, budgetMs: 0, measurements: 1, seconds: 0.5, patientMs: 0 },
  soak: { minutes: 0.01, workspaces: 2, serversEach: 10, phaseSeconds: 1, coolDownMs: 0 },
  reports: { scale: 0.00001, maxRequestsOfOperation: 1, rounds: 1, seconds: 0.5 },
  imports: { rounds: 1, seconds: 0.5 },
};
