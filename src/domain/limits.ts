/** How many calls something takes in a minute and in a day (UTC); absent or 0 is no quota. */
export type CallQuotas = { callsPerMinute?: number; callsPerDay?: number };

/** How often a second, and how many at once, something may be called; 0 is no limit. */
export type CallLimits = CallQuotas & { callsPerSecond: number; concurrentCalls: number };
export type LimitName = keyof CallLimits;
/** What may be set goes from 1 to this. */
export const mostLimit = 100_000;
export const mostCallQuota = 1_000_000_000;

/** What a single key is limited to, besides what holds for every key. */
export type KeyLimits = CallQuotas & { callsPerSecond?: number };

/** What was set; what is absent has its default. */
export type SetLimits = Partial<CallLimits>;

/** Who decided a limit: nobody, somebody for the thing itself, or the workspace's own limit, which caps everything. */
export const limitSources = ['default', 'set', 'workspace'] as const;
export type LimitSource = (typeof limitSources)[number];

/** `value` 0 is no limit. */
export type SourcedLimit = { value: number; from: LimitSource };

/** So many busy servers have room in a workspace for which nothing was set. */
export const workspaceShare = 5;

export function limitOfWorkspace(name: LimitName, defaults: CallLimits, set: SetLimits): SourcedLimit {
  const own = set[name];
  if (own !== undefined) return { value: own, from: 'set' };
  return { value: (defaults[name] ?? 0) * workspaceShare, from: 'default' };
}

export function limitOfServer(
  name: LimitName,
  defaults: CallLimits,
  set: SetLimits,
  workspace: SourcedLimit,
): SourcedLimit {
  const own = set[name];
  const wanted: SourcedLimit =
    own === undefined ? { value: defaults[name] ?? 0, from: 'default' } : { value: own, from: 'set' };
  const isAbove = wanted.value === 0 || wanted.value > workspace.value;
  return workspace.value !== 0 && isAbove ? { value: workspace.value, from: 'workspace' } : wanted;
}

/** The limits that count for the calls of a server. */
export function effectiveLimits(
  defaults: CallLimits,
  set: { server: SetLimits; workspace: SetLimits },
): { server: CallLimits; workspace: CallLimits } {
  const workspace = (name: LimitName) => limitOfWorkspace(name, defaults, set.workspace);
  const server = (name: LimitName) => limitOfServer(name, defaults, set.server, workspace(name)).value;
  return {
    server: {
      ...quotasOf(set.server),
      callsPerSecond: server('callsPerSecond'),
      concurrentCalls: server('concurrentCalls'),
    },
    workspace: {
      ...quotasOf(set.workspace),
      callsPerSecond: workspace('callsPerSecond').value,
      concurrentCalls: workspace('concurrentCalls').value,
    },
  };
}

/** Quotas have no defaults, and calls count in those of their server and of their workspace. */
function quotasOf({ callsPerMinute, callsPerDay }: SetLimits): CallQuotas {
  return {
    ...(callsPerMinute !== undefined && { callsPerMinute }),
    ...(callsPerDay !== undefined && { callsPerDay }),
  };
}

/** What each process may use of a limit that they share; 0 is no limit. At least one, so they may exceed a small one. */
export function shareOf(limit: number, processes: number): number {
  return limit === 0 ? 0 : Math.max(1, Math.floor(limit / processes));
}

/** What goes on under a limit in one process; `refused` is of the last minute. */
export type LimitUse = { running: number; waiting: number; refused: number };

export const circuitStates = ['closed', 'open', 'half_open'] as const;

/** Whether the calls of a workspace to an upstream origin are sent. */
export type CircuitState = {
  state: (typeof circuitStates)[number];
  /** Calls of the last half minute, and how many of them failed. */
  calls: number;
  failures: number;
  /** Until one attempt is made, in ms; undefined when closed. */
  retryMs: number | undefined;
};
