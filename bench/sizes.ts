/** Amount of work in each mode. */
export type Size = {
  /** Number of rounds per row, and seconds of load per round. */
  rounds: number;
  seconds: number;
  /** Number of calls to each contestant before its first round. V8 compiles the service until about 110,000 calls. */
  warmUpCalls: number;
  /** Maximum share of failed calls. A service that gets no CPU time for a moment rejects some. */
  maxFailures: number;
  /** Time after the warm-up during which rounds wait for a quiet machine. */
  quietWaitMs: number;
  /** Number of servers to create sequentially, and of starts to time. */
  creations: number;
  starts: number;
  /** Number of servers in the store of `many-servers.ts`, and of servers to call. */
  servers: number;
  calledServers: number;
  /**
   * Each round of `--against` starts both services and takes `measurements` of each row, with a new `quietWaitMs`. After
   * `minRounds`, rounds continue as long as they end within `budgetMs` after the start of the bench.
   */
  against: { minRounds: number; budgetMs: number; measurements: number; seconds: number; quietWaitMs: number };
  /** Each round of `--start` starts both programs. Memory is measured after `idleMs`. */
  startComparison: { rounds: number; idleMs: number };
  soak: { minutes: number; workspaces: number; serversPerWorkspace: number; phaseSeconds: number; coolDownMs: number };
  /** A scale of 1 is a million calls. */
  reports: { scale: number; maxRequestsPerOperation: number; rounds: number; seconds: number };
  imports: { rounds: number; seconds: number };
};

export const fullSize: Size = {
  rounds: 5,
  seconds: 2,
  warmUpCalls: 110_000,
  maxFailures: 0.01,
  quietWaitMs: 200_000,
  creations: 50,
  starts: 5,
  servers: 100_000,
  calledServers: 3000,
  against: { minRounds: 3, budgetMs: 540_000, measurements: 2, seconds: 1, quietWaitMs: 20_000 },
  startComparison: { rounds: 12, idleMs: 5000 },
  // The service closes idle upstream connections in less than these 15 s.
  soak: { minutes: 10, workspaces: 10, serversPerWorkspace: 100, phaseSeconds: 10, coolDownMs: 15_000 },
  reports: { scale: 1, maxRequestsPerOperation: Number.POSITIVE_INFINITY, rounds: 6, seconds: 3 },
  imports: { rounds: 5, seconds: 6 },
};

export const quickSize: Size = {
  ...fullSize,
  rounds: 3,
  seconds: 1,
  warmUpCalls: 20_000,
  quietWaitMs: 15_000,
  creations: 15,
  starts: 2,
  servers: 2000,
};

/** Size for tests that only check that a mode ends with its report, even on a busy machine. Its figures mean nothing. */
export const smallestSize: Size = {
  rounds: 1,
  seconds: 0.5,
  warmUpCalls: 1,
  maxFailures: 1,
  quietWaitMs: 0,
  creations: 1,
  starts: 1,
  servers: 20,
  calledServers: 20,
  against: { minRounds: 2, budgetMs: 0, measurements: 1, seconds: 0.5, quietWaitMs: 0 },
  startComparison: { rounds: 2, idleMs: 0 },
  soak: { minutes: 0.01, workspaces: 2, serversPerWorkspace: 10, phaseSeconds: 1, coolDownMs: 0 },
  reports: { scale: 0.00001, maxRequestsPerOperation: 1, rounds: 1, seconds: 0.5 },
  imports: { rounds: 1, seconds: 0.5 },
};
