import { type CallLimits, type KeyLimits, shareOf } from '../../domain/limits.ts';
import { isProvenCaller, noteActivity, type SharingCaller } from './activity.ts';
import { createLanes, type Lane } from './lane.ts';
import { createShares, half } from './shares.ts';

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
