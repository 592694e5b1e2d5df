import type { CallLimits, LimitUse } from '../domain/limits.ts';
import { type AppError, ToolFailure } from '../errors.ts';
import {
  createLanes,
  giveBack,
  hasPlace,
  type Lane,
  noteArrival,
  overdueMs,
  queueLength,
  waitForPlace,
} from './lane.ts';
import { countAt, createRecentCount, recentTotal } from './recent-count.ts';
import { type RefusedBy, refusal, refusals } from './refusal.ts';

export type LimitOptions = {
  /** Calls with one key at once; 0 is no limit. */
  concurrentPerKey: number;
  /** Monotonic milliseconds. */
  clock: () => number;
  /** How late the event loop is, in ms. */
  lagMs: () => number;
  /** How long a call waits for all its places together, in ms. */
  queueMs: number;
  /** Calls that the process has room for, waiting ones too. */
  places?: number;
};

/** What is called, as far as limits go. */
export type Limited = {
  id: string;
  workspaceId: string;
  limits: { server: CallLimits; workspace: CallLimits };
};

/** The place of one call; given back with `leave`. */
export type Place = { key: Lane | undefined; server: Lane; workspace: Lane };

export type LimitsSnapshot = {
  running: number;
  waiting: number;
  /** Since the start, by the limit that refused. */
  refused: Record<RefusedBy, number>;
};

/** Told what to do when the caller goes away. */
type OnGone = (cancel: () => void) => void;

/** Lets calls in, holds them for a moment, or refuses them. */
export type Limits = {
  /**
   * A place, at once unless the call has to wait for it. `onGone` ends the waiting early.
   * @throws AppError tooMany or unavailable, with the seconds to wait; ToolFailure cancelled
   */
  enter(server: Limited, keyId: string | undefined, onGone?: OnGone): Place | Promise<Place>;
  leave(place: Place): void;
  serverUse(serverId: string): LimitUse;
  workspaceUse(workspaceId: string): LimitUse;
  /** Plain numbers of the whole process, for metrics. */
  snapshot(): LimitsSnapshot;
};

const shedAboveMs = 200;
const usualPlaces = 4000;
const minuteMs = 60_000;

/** What is counted for the whole process. */
type Counts = {
  inside: number;
  running: number;
  refused: Record<RefusedBy, number>;
  clock: () => number;
  queueMs: number;
};

export function createLimits(options: LimitOptions): Limits {
  const { clock, concurrentPerKey, lagMs, queueMs, places = usualPlaces } = options;
  const servers = createLanes(clock);
  const workspaces = createLanes(clock);
  const keys = createLanes(clock);
  const none = Object.fromEntries(refusals.map((by) => [by, 0])) as Record<RefusedBy, number>;
  const counts: Counts = { inside: 0, running: 0, refused: none, clock, queueMs };
  return {
    enter({ id, workspaceId, limits }, keyId, onGone) {
      const key = keyId === undefined || concurrentPerKey === 0 ? undefined : keys.laneOf(keyId);
      const place: Place = { key, server: servers.laneOf(id), workspace: workspaces.laneOf(workspaceId) };
      if (lagMs() > shedAboveMs) throw refuse(counts, place, 'overload');
      // What one workspace has inside is never more than what is left: another one always finds room.
      if (place.workspace.inside >= places - counts.inside) throw refuse(counts, place, 'fair_share');
      checkRates(counts, place, limits);
      if (key) key.places = concurrentPerKey;
      place.server.places = limits.server.concurrentCalls;
      place.workspace.places = limits.workspace.concurrentCalls;
      goIn(counts, place);
      if ((key && !hasPlace(key)) || !hasPlace(place.server) || !hasPlace(place.workspace))
        return wait(counts, place, onGone);
      if (key) key.running++;
      place.server.running++;
      place.workspace.running++;
      counts.running++;
      return place;
    },
    leave(place) {
      counts.running--;
      goOut(counts, place);
      giveBack(place.workspace);
      giveBack(place.server);
      if (place.key) giveBack(place.key);
    },
    serverUse: (id) => lanedUse(servers.find(id), clock),
    workspaceUse: (id) => lanedUse(workspaces.find(id), clock),
    snapshot: () => ({
      running: counts.running,
      waiting: counts.inside - counts.running,
      refused: { ...counts.refused },
    }),
  };
}

function goIn(counts: Counts, place: Place): void {
  counts.inside++;
  place.workspace.inside++;
  place.server.inside++;
  if (place.key) place.key.inside++;
}

function goOut(counts: Counts, place: Place): void {
  counts.inside--;
  place.workspace.inside--;
  place.server.inside--;
  if (place.key) place.key.inside--;
}

/** A call that one rate refuses does not count in the other. */
function checkRates(counts: Counts, place: Place, { server, workspace }: Limited['limits']): void {
  if (server.callsPerSecond === 0 && workspace.callsPerSecond === 0) return;
  const now = counts.clock();
  const serverMs = overdueMs(place.server, server.callsPerSecond, now);
  if (serverMs > 0) throw refuse(counts, place, 'server_rate', server.callsPerSecond, serverMs);
  const workspaceMs = overdueMs(place.workspace, workspace.callsPerSecond, now);
  if (workspaceMs > 0) throw refuse(counts, place, 'workspace_rate', workspace.callsPerSecond, workspaceMs);
  noteArrival(place.server, server.callsPerSecond, now);
  noteArrival(place.workspace, workspace.callsPerSecond, now);
}

/** One lane after the other: a call that waits for its key keeps no place of the server, nor for it of the workspace. */
async function wait(counts: Counts, place: Place, onGone: OnGone | undefined): Promise<Place> {
  const until = counts.clock() + counts.queueMs;
  const lanes = [
    [place.key, 'key_concurrency'],
    [place.server, 'server_concurrency'],
    [place.workspace, 'workspace_concurrency'],
  ] as const;
  const taken: Lane[] = [];
  try {
    for (const [lane, by] of lanes) {
      if (!lane) continue;
      await take(counts, lane, by, place, until, onGone);
      taken.push(lane);
    }
    counts.running++;
    return place;
  } catch (error) {
    goOut(counts, place);
    for (const lane of taken) giveBack(lane);
    throw error;
  }
}

async function take(
  counts: Counts,
  lane: Lane,
  by: RefusedBy,
  place: Place,
  until: number,
  onGone: OnGone | undefined,
): Promise<void> {
  if (hasPlace(lane)) {
    lane.running++;
    return;
  }
  if (lane.waiting.length >= queueLength) throw refuse(counts, place, by, lane.places, counts.queueMs);
  const how = await waitForPlace(lane, Math.max(0, until - counts.clock()), onGone);
  if (how === 'late') throw refuse(counts, place, by, lane.places, counts.queueMs);
  if (how === 'gone') throw new ToolFailure('cancelled', 'the caller went away');
}

function refuse({ refused, clock }: Counts, place: Place, by: RefusedBy, limit = 0, waitMs = 1000): AppError {
  refused[by]++;
  const now = clock();
  for (const lane of [place.server, place.workspace]) {
    lane.refused ??= createRecentCount(minuteMs, 12);
    countAt(lane.refused, now);
  }
  return refusal(by, limit, waitMs);
}

function lanedUse(lane: Lane | undefined, clock: () => number): LimitUse {
  if (!lane) return { running: 0, waiting: 0, refused: 0 };
  const refused = lane.refused ? recentTotal(lane.refused, clock()) : 0;
  return { running: lane.running, waiting: lane.inside - lane.running, refused };
}
