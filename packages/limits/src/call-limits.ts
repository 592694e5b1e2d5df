/** Maximum number of calls per minute and per day (UTC); absent or 0 means no quota. */
export type CallQuotas = { callsPerMinute?: number; callsPerDay?: number };

/** Maximum number of calls per second and of concurrent calls; 0 means no limit. */
export type CallLimits = CallQuotas & { callsPerSecond: number; concurrentCalls: number };
export type LimitName = keyof CallLimits;
/** Largest values that may be set; the smallest is 1. */
export const maxLimit = 100_000;
export const maxCallQuota = 1_000_000_000;

/** Public names of the limits, in display order. */
export const limitFields = {
  calls_per_second: { name: 'callsPerSecond', max: maxLimit, label: 'Calls per second' },
  concurrent_calls: { name: 'concurrentCalls', max: maxLimit, label: 'Concurrent calls' },
  calls_per_minute: { name: 'callsPerMinute', max: maxCallQuota, label: 'Calls per minute (UTC)' },
  calls_per_day: { name: 'callsPerDay', max: maxCallQuota, label: 'Calls per day (UTC)' },
} as const satisfies Record<string, { name: LimitName; max: number; label: string }>;

export type LimitField = keyof typeof limitFields;
export const limitFieldNames = Object.keys(limitFields) as LimitField[];
/** Limits that a single key may have. */
export const keyLimitFieldNames = ['calls_per_second', 'calls_per_minute', 'calls_per_day'] as const;

export type LimitInputs = { [Field in LimitField]?: number | null | undefined };

/** Limits of a single key, in addition to the limits of every key. */
export type KeyLimits = CallQuotas & { callsPerSecond?: number };

/** A key with limits. Its own calls and the calls of all keys created with it count toward them. */
export type LimitedKey = { id: string; limits: KeyLimits };

/** Configured limits; absent ones have their default. */
export type ConfiguredLimits = Partial<CallLimits>;

/** Source of a limit: the default, a setting, or the workspace limit, which caps all others. */
export const limitSources = ['default', 'set', 'workspace'] as const;
export type LimitSource = (typeof limitSources)[number];

/** A limit and its source. A `value` of 0 means no limit. */
export type SourcedLimit = { value: number; from: LimitSource };

/** Number of servers at their full default limit that fit into a workspace with default limits. */
export const workspaceLimitFactor = 5;

export function resolveWorkspaceLimit(
  name: LimitName,
  defaults: CallLimits,
  configuredLimits: ConfiguredLimits,
): SourcedLimit {
  const configured = configuredLimits[name];
  if (configured !== undefined) return { value: configured, from: 'set' };
  return { value: (defaults[name] ?? 0) * workspaceLimitFactor, from: 'default' };
}

export function resolveServerLimit(
  name: LimitName,
  defaults: CallLimits,
  configuredLimits: ConfiguredLimits,
  workspace: SourcedLimit,
): SourcedLimit {
  const configured = configuredLimits[name];
  const serverLimit: SourcedLimit =
    configured === undefined ? { value: defaults[name] ?? 0, from: 'default' } : { value: configured, from: 'set' };
  const isAbove = serverLimit.value === 0 || serverLimit.value > workspace.value;
  return workspace.value !== 0 && isAbove ? { value: workspace.value, from: 'workspace' } : serverLimit;
}

/** Returns the effective call limits of a server and of its workspace. */
export function effectiveLimits(
  defaults: CallLimits,
  configuredLimits: { server: ConfiguredLimits; workspace: ConfiguredLimits },
): { server: CallLimits; workspace: CallLimits } {
  const workspace = (name: LimitName) => resolveWorkspaceLimit(name, defaults, configuredLimits.workspace);
  const server = (name: LimitName) =>
    resolveServerLimit(name, defaults, configuredLimits.server, workspace(name)).value;
  return {
    server: {
      ...pickQuotas(configuredLimits.server),
      callsPerSecond: server('callsPerSecond'),
      concurrentCalls: server('concurrentCalls'),
    },
    workspace: {
      ...pickQuotas(configuredLimits.workspace),
      callsPerSecond: workspace('callsPerSecond').value,
      concurrentCalls: workspace('concurrentCalls').value,
    },
  };
}

/** Quotas have no defaults. A call counts toward the quota of its server and of its workspace. */
function pickQuotas({ callsPerMinute, callsPerDay }: ConfiguredLimits): CallQuotas {
  return {
    ...(callsPerMinute !== undefined && { callsPerMinute }),
    ...(callsPerDay !== undefined && { callsPerDay }),
  };
}

/** The processes that share a database, including this one. Each gets an equal share of shared limits. */
export type Processes = { readonly count: number };

/**
 * Returns one process's share of a shared limit; 0 means no limit. A share is at least 1, so processes may together
 * exceed a small limit.
 */
export function getProcessShare(limit: number, processes: number): number {
  return limit === 0 ? 0 : Math.max(1, Math.floor(limit / processes));
}

/** Current use of a limit in one process; `refused` covers the last minute. */
export type LimitUse = { running: number; waiting: number; refused: number };

export const circuitStates = ['closed', 'open', 'half_open'] as const;

/** State of the circuit breaker for calls of a workspace to an upstream origin. */
export type CircuitState = {
  state: (typeof circuitStates)[number];
  /** Calls of the last 30 seconds, and the number of them that failed. */
  calls: number;
  failures: number;
  /** Time until one attempt is made, in ms; undefined if closed. */
  retryAfterMs: number | undefined;
};

/**
 * A network that contains an address's network, and the number of turns that it gets for each turn of a single network.
 */
export type WiderNetwork = { name: string; weight: number };

/**
 * Returns the wider networks around an IPv6 /64, as `getClientNetwork` formats it; none for an IPv4 address. Anyone can
 * rent a /56 or a /48, which contains 65,536 networks of that size. But a phone company gives each of its customers one
 * /64, so a wider network gets more turns than a single one.
 */
export function getWiderNetworks(network: string): readonly WiderNetwork[] {
  const [a, b, c, d, ...otherGroups] = network.split(':');
  if (d === undefined || otherGroups.length > 0) return noNetworks;
  return [
    { name: `${a}:${b}:${c}/48`, weight: 16 },
    { name: `${a}:${b}:${c}:${Number(d) >> 8}/56`, weight: 4 },
  ];
}

const noNetworks: readonly WiderNetwork[] = [];

/** Returns the widest network that a single person may control. Caches that everyone shares count it as one owner. */
export function getWidestNetwork(network: string): string {
  // Parsing an address takes 0.1 µs, and each call from an unverified caller does it.
  if (!network.includes(':')) return network;
  return getWiderNetworks(network)[0]?.name ?? network;
}
