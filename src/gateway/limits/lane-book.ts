import { type CallLimits, type KeyLimits, shareOf } from '../../domain/limits.ts';
import { hasOthers, isProvenCaller, keptMs, noteActivity, type SharingCaller } from './activity.ts';
import { createLanes, type Lane } from './lane.ts';

/** The server that is called, as limits see it. */
export type Limited = {
  id: string;
  workspaceId: string;
  limits: { server: CallLimits; workspace: CallLimits };
};

export type LaneBookOptions = {
  /** Calls with one credential at once; 0 is no limit. */
  concurrentPerKey: number;
  /** Monotonic milliseconds. */
  clock: () => number;
  /** How many processes serve; each takes a share of every limit. One when absent. */
  processCount?: () => number;
};

/** Traits of a caller besides its id; absent for a credential that is known to be good. */
export type CallerTraits = SharingCaller & {
  /** Limits of the caller's key. */
  readonly limits?: KeyLimits | undefined;
};

const goodAsEver: CallerTraits = {};
const noLimits: KeyLimits = {};

/** Finds the lanes of a call and updates their limits. */
export type LaneBook = {
  /** In the order in which the call takes slots; the last two are those of the server and of the workspace. */
  lanesOf(server: Limited, callerId: string | undefined, traits: CallerTraits | undefined, now: number): Lane[];
  findServer(id: string): Lane | undefined;
  findWorkspace(id: string): Lane | undefined;
};

export function createLaneBook(options: LaneBookOptions): LaneBook {
  const { concurrentPerKey, clock, processCount = () => 1 } = options;
  const keys = createLanes('key', clock);
  const addresses = createLanes('address', clock);
  const servers = createLanes('server', clock);
  const workspaces = createLanes('workspace', clock);
  const addShares = createShares(clock);

  function fit(
    lane: Lane,
    { callsPerSecond = 0, callsPerMinute = 0, callsPerDay = 0 }: KeyLimits,
    concurrentCalls: number,
  ): Lane {
    const processes = processCount();
    lane.slots = shareOf(concurrentCalls, processes);
    lane.rate = callsPerSecond === 0 ? 0 : Math.max(Math.min(1, callsPerSecond), callsPerSecond / processes);
    lane.perMinute = callsPerMinute;
    lane.perDay = callsPerDay;
    return lane;
  }

  function strangersLanes(id: string, callerId: string | undefined, network: string): Lane[] {
    if (concurrentPerKey === 0) return [];
    const address = fit(addresses.laneOf(`${id} ${network}`), noLimits, concurrentPerKey);
    return callerId === undefined ? [address] : [fit(keys.laneOf(callerId), noLimits, half(concurrentPerKey)), address];
  }

  return {
    lanesOf({ id, workspaceId, limits }, callerId, traits = goodAsEver, now) {
      const server = fit(servers.laneOf(id), limits.server, limits.server.concurrentCalls);
      const workspace = fit(workspaces.laneOf(workspaceId), limits.workspace, limits.workspace.concurrentCalls);
      const { network } = traits;
      if (network === undefined) {
        noteActivity(server.activity, traits, now);
        noteActivity(workspace.activity, traits, now);
      }
      let shared: Lane[] | undefined;
      if (!isProvenCaller(traits)) {
        shared = addShares(shared, { id, lane: server }, traits, now);
        shared = addShares(shared, { id: workspaceId, lane: workspace }, traits, now);
      }
      if (network === undefined) {
        const own = traits.limits;
        if (callerId === undefined || (concurrentPerKey === 0 && !own))
          return shared ? [...shared, server, workspace] : [server, workspace];
        const key = fit(keys.laneOf(callerId), own ?? noLimits, concurrentPerKey);
        return shared ? [key, ...shared, server, workspace] : [key, server, workspace];
      }
      // All callers are equal where anybody may call and nobody is known.
      if (callerId === undefined && !shared) return [server, workspace];
      return [...strangersLanes(id, callerId, network), ...(shared ?? []), server, workspace];
    },
    findServer: servers.find,
    findWorkspace: workspaces.find,
  };
}

/**
 * Adds the lanes that reserve half of a server or workspace for better-known callers, and for callers of other
 * addresses, while there are any. A caller that needs no such bound gets no lane here.
 */
function createShares(clock: () => number) {
  const strangers = createLanes('strangers', clock);
  const unchecked = createLanes('strangers', clock);
  const addresses = createLanes('address', clock);

  function halfOf(lane: Lane, whole: Lane): Lane {
    lane.slots = half(whole.slots);
    lane.rate = whole.rate / 2;
    return lane;
  }

  /**
   * Halves the quotas too. Lanes of addresses have none: quotas are counted in the database, which stores no address.
   */
  function halfOfAll(lane: Lane, whole: Lane): Lane {
    lane.perMinute = half(whole.perMinute);
    lane.perDay = half(whole.perDay);
    return halfOf(lane, whole);
  }

  /** The lanes in `before` followed by these; undefined while there are none. */
  return (before: Lane[] | undefined, whole: Whole, caller: SharingCaller, now: number): Lane[] | undefined => {
    const { id, lane } = whole;
    const { activity } = lane;
    const network = caller.network ?? caller.credential?.network ?? '';
    let lanes = before;
    if (hasOthers(activity, network, now)) {
      lanes ??= [];
      lanes.push(halfOf(addresses.laneOf(`${id} ${network}`), lane));
    }
    if (!caller.isChecked && now - activity.checkedAt < keptMs) {
      lanes ??= [];
      lanes.push(halfOfAll(unchecked.laneOf(`${id} unchecked`), lane));
    }
    if (caller.network !== undefined && now - activity.acceptedAt < keptMs) {
      lanes ??= [];
      lanes.push(halfOfAll(strangers.laneOf(id), lane));
    }
    return lanes;
  };
}

/** A server or a workspace. */
type Whole = { id: string; lane: Lane };

/** Half of a limit; 0 means no limit and stays 0. */
function half(slots: number): number {
  return slots === 0 ? 0 : Math.max(1, Math.floor(slots / 2));
}
