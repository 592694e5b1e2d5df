import type { CallLimits } from '../domain/limits.ts';
import { createLanes, type Lane } from './lane.ts';

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

/** Finds the lanes of a call, and sets their limits as they are now. */
export type LaneBook = {
  /** In the order in which the call takes slots; the last two are those of the server and of the workspace. */
  lanesOf(server: Limited, callerId: string | undefined, network: string | undefined, now: number): Lane[];
  findServer(id: string): Lane | undefined;
  findWorkspace(id: string): Lane | undefined;
};

/** How long after the last call of a known caller some slots and some of the rate are kept for such callers. */
const keptMs = 10 * 60_000;

export function createLaneBook({ concurrentPerKey, clock }: LaneBookOptions): LaneBook {
  const keys = createLanes('key', clock);
  const addresses = createLanes('address', clock);
  const servers = createLanes('server', clock);
  const workspaces = createLanes('workspace', clock);
  const strangers = createLanes('strangers', clock);

  function keyLane(callerId: string, slots: number): Lane {
    const lane = keys.laneOf(callerId);
    lane.slots = slots;
    return lane;
  }

  /** Unknown callers together take no more than half of what known ones use as well, and all where there are none. */
  function strangersLane(id: string, whole: Lane, now: number): Lane {
    const lane = strangers.laneOf(id);
    const isShared = now - whole.knownAt < keptMs;
    lane.slots = isShared && whole.slots !== 0 ? half(whole.slots) : 0;
    lane.rate = isShared ? whole.rate / 2 : 0;
    return lane;
  }

  function strangersLanes(id: string, callerId: string | undefined, network: string): Lane[] {
    if (concurrentPerKey === 0) return [];
    const address = addresses.laneOf(`${id} ${network}`);
    address.slots = concurrentPerKey;
    return callerId === undefined ? [address] : [keyLane(callerId, half(concurrentPerKey)), address];
  }

  return {
    lanesOf({ id, workspaceId, limits }, callerId, network, now) {
      const server = fit(servers.laneOf(id), limits.server);
      const workspace = fit(workspaces.laneOf(workspaceId), limits.workspace);
      if (network === undefined) {
        server.knownAt = now;
        workspace.knownAt = now;
        if (concurrentPerKey === 0 || callerId === undefined) return [server, workspace];
        return [keyLane(callerId, concurrentPerKey), server, workspace];
      }
      const ofServer = strangersLane(id, server, now);
      const ofWorkspace = strangersLane(workspaceId, workspace, now);
      // Where anybody may call and nobody is known, all are equal.
      if (callerId === undefined && ofServer.slots === 0 && ofWorkspace.slots === 0) return [server, workspace];
      return [...strangersLanes(id, callerId, network), ofServer, ofWorkspace, server, workspace];
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

function half(slots: number): number {
  return Math.max(1, Math.floor(slots / 2));
}
