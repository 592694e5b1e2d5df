import type { CallLimits } from '../domain/limits.ts';
import { isProven, noteActivity, type SharingCaller } from './activity.ts';
import { createLanes, type Lane } from './lane.ts';
import { createShares, half } from './shares.ts';

/** What is called, as far as limits go. */
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
};

/** What limits know of a caller besides its id; absent for one with a credential that is good as ever. */
export type CallerTraits = SharingCaller;

const goodAsEver: CallerTraits = {};

/** Finds the lanes of a call, and sets their limits as they are now. */
export type LaneBook = {
  /** In the order in which the call takes slots; the last two are those of the server and of the workspace. */
  lanesOf(server: Limited, callerId: string | undefined, traits: CallerTraits | undefined, now: number): Lane[];
  findServer(id: string): Lane | undefined;
  findWorkspace(id: string): Lane | undefined;
};

export function createLaneBook({ concurrentPerKey, clock }: LaneBookOptions): LaneBook {
  const keys = createLanes('key', clock);
  const addresses = createLanes('address', clock);
  const servers = createLanes('server', clock);
  const workspaces = createLanes('workspace', clock);
  const addShares = createShares(clock);

  function keyLane(callerId: string, slots: number): Lane {
    const lane = keys.laneOf(callerId);
    lane.slots = slots;
    return lane;
  }

  function strangersLanes(id: string, callerId: string | undefined, network: string): Lane[] {
    if (concurrentPerKey === 0) return [];
    const address = addresses.laneOf(`${id} ${network}`);
    address.slots = concurrentPerKey;
    return callerId === undefined ? [address] : [keyLane(callerId, half(concurrentPerKey)), address];
  }

  return {
    lanesOf({ id, workspaceId, limits }, callerId, traits = goodAsEver, now) {
      const server = fit(servers.laneOf(id), limits.server);
      const workspace = fit(workspaces.laneOf(workspaceId), limits.workspace);
      const { network } = traits;
      if (network === undefined) {
        noteActivity(server.activity, traits, now);
        noteActivity(workspace.activity, traits, now);
      }
      let shared: Lane[] | undefined;
      if (!isProven(traits)) {
        shared = addShares(shared, { id, lane: server }, traits, now);
        shared = addShares(shared, { id: workspaceId, lane: workspace }, traits, now);
      }
      if (network === undefined) {
        if (concurrentPerKey === 0 || callerId === undefined) return [...(shared ?? []), server, workspace];
        const key = keyLane(callerId, concurrentPerKey);
        return shared ? [key, ...shared, server, workspace] : [key, server, workspace];
      }
      // Where anybody may call and nobody is known, all are equal.
      if (callerId === undefined && !shared) return [server, workspace];
      return [...strangersLanes(id, callerId, network), ...(shared ?? []), server, workspace];
    },
    findServer: servers.find,
    findWorkspace: workspaces.find,
  };
}

function fit(lane: Lane, { concurrentCalls, callsPerSecond }: CallLimits): Lane {
  lane.slots = concurrentCalls;
  lane.rate = callsPerSecond;
  return lane;
}
