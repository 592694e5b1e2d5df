/** Most calls in a minute and in a day (UTC); absent or 0 is no quota. */
export type CallQuotas = { callsPerMinute?: number; callsPerDay?: number };

/** Most calls a second, and most calls at once; 0 is no limit. */
export type CallLimits = CallQuotas & { callsPerSecond: number; concurrentCalls: number };
export type LimitName = keyof CallLimits;
/** Largest values that may be set; the smallest is 1. */
export const mostLimit = 100_000;
export const mostCallQuota = 1_000_000_000;

/** Limits of a single key, besides those of every key. */
export type KeyLimits = CallQuotas & { callsPerSecond?: number };

/** A key with limits, which its calls and those of all keys made with it use up together. */
export type LimitedKey = { id: string; limits: KeyLimits };

/** Limits that were set; absent ones have their default. */
export type SetLimits = Partial<CallLimits>;

/** The source of a limit: the default, a setting, or the workspace's limit, which caps all others. */
export const limitSources = ['default', 'set', 'workspace'] as const;
export type LimitSource = (typeof limitSources)[number];

/** `value` 0 is no limit. */
export type SourcedLimit = { value: number; from: LimitSource };

/** Number of servers at their full default limit that fit into a workspace with default limits. */
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

/** The effective limits of a server's calls. */
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

/** Quotas have no defaults. A call counts in that of its server and in that of its workspace. */
function quotasOf({ callsPerMinute, callsPerDay }: SetLimits): CallQuotas {
  return {
    ...(callsPerMinute !== undefined && { callsPerMinute }),
    ...(callsPerDay !== undefined && { callsPerDay }),
  };
}

/** The processes that serve from the database, this one included. Each takes its share of what they share. */
export type Processes = { readonly count: number };

/** The share of each process in a common limit; 0 is no limit. At least 1, so together they may exceed a small limit. */
export function shareOf(limit: number, processes: number): number {
  return limit === 0 ? 0 : Math.max(1, Math.floor(limit / processes));
}

/** Current use of a limit in one process; `refused` counts the last minute. */
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

/** A network around that of an address, and how many times the turns of one it has. */
export type WiderNetwork = { name: string; times: number };

/**
 * Networks around a /64 of IPv6 as `clientNetwork` writes it; none around an address of IPv4. Anybody may rent a /56 or a
 * /48, which has 65,536 networks of that size. But a telephone company gives each of its customers one of them, so the
 * wider networks have more turns than a single one.
 */
export function widerNetworks(network: string): readonly WiderNetwork[] {
  const [a, b, c, d, ...more] = network.split(':');
  if (d === undefined || more.length > 0) return none;
  return [
    { name: `${a}:${b}:${c}/48`, times: 16 },
    { name: `${a}:${b}:${c}:${Number(d) >> 8}/56`, times: 4 },
  ];
}

const none: readonly WiderNetwork[] = [];

/** The widest network that one person may have: a memory that is for everybody counts it as one owner. */
export function widestNetwork(network: string): string {
  // Taking an address apart takes a tenth of a microsecond, and each call of a stranger comes here.
  if (!network.includes(':')) return network;
  return widerNetworks(network)[0]?.name ?? network;
}
