import type { LimitUse } from '../../domain/limits.ts';
import { runningNow } from '../../domain/work/running-time.ts';
import { AppError, plainFailure } from '../../errors.ts';
import type { QuotaCounter, UsedUp } from './call-quotas.ts';
import {
  createLaneBook,
  giveBack,
  hasSlot,
  type Lane,
  type LaneBookOptions,
  type LaneOf,
  type Limited,
  type LimitedCaller,
  laneKinds,
  noteArrival,
  noteKnown,
  overdueMs,
  queueLength,
  waitForSlot,
} from './lanes.ts';
import { countAt, createRecentCount, recentTotal } from './recent-count.ts';

export type LimitOptions = LaneBookOptions & {
  /** How late the event loop is, in ms. */
  lagMs: () => number;
  /** How long a call waits for all its slots together, in ms in which this process ran. */
  queueMs: number;
  /** Calls that may be in the process at once, including those that wait. */
  capacity?: number;
  quotas?: QuotaCounter;
};

/** The slots of one call, one in each of its lanes; released with `leave`. */
export type Slots = readonly Lane[];

export type LimitsSnapshot = {
  running: number;
  waiting: number;
  /** Refusals since the start, by the limit that refused. */
  refused: Record<RefusedBy, number>;
};

/** Registers a function to run when the client disconnects. */
type OnGone = (cancel: () => void) => void;

/** Admits calls, lets them wait for a moment, or refuses them. */
export type Limits = {
  /**
   * Takes the slots of a call; returns a promise if it has to wait. `onGone` ends the waiting early.
   * @throws AppError tooMany or unavailable, with the seconds to wait; ToolFailure cancelled
   */
  enter(server: Limited, caller: LimitedCaller, onGone?: OnGone): Slots | Promise<Slots>;
  /** A call that was not made counts in no quota; its slots were asked for `unusedMs` ago. */
  leave(slots: Slots, caller: LimitedCaller): void;
  serverUse(serverId: string): LimitUse;
  workspaceUse(workspaceId: string): LimitUse;
  /** Counters of the whole process, for metrics. */
  snapshot(): LimitsSnapshot;
};

const shedAboveMs = 200;
const usualCapacity = 4000;
const minuteMs = 60_000;

/** State of the whole process. */
type Counts = {
  inside: number;
  running: number;
  refused: Record<RefusedBy, number>;
  clock: () => number;
  queueMs: number;
  processCount: () => number;
  quotas: QuotaCounter | undefined;
};

export function createLimits(options: LimitOptions): Limits {
  const { clock, lagMs, queueMs, capacity = usualCapacity, processCount = () => 1, quotas } = options;
  const book = createLaneBook(options);
  const none = Object.fromEntries(refusals.map((by) => [by, 0])) as Record<RefusedBy, number>;
  const counts: Counts = { inside: 0, running: 0, refused: none, clock, queueMs, processCount, quotas };

  /** Why a call is refused at once; it then counts in no rate. */
  function refusedNow(lanes: Slots, now: number): Refused | undefined {
    if (lagMs() > shedAboveMs) return { by: 'overload' };
    // A workspace may use at most as much as is still free, so another workspace always finds capacity.
    if ((lanes.at(-1) as Lane).inside >= capacity - counts.inside) return { by: 'fair_share' };
    for (const lane of lanes) {
      const ms = overdueMs(lane, now);
      if (ms > 0) return { of: lane.of, kind: 'rate', limit: lane.rate, waitMs: ms };
      // Strangers wait in queues of many addresses, which are bounded together.
      if (lane.of === 'strangers' && lane.slots !== 0 && lane.inside >= lane.slots + queueLength)
        return tooManyAtOnce(lane, counts);
    }
    return undefined;
  }

  return {
    enter(server, caller, onGone) {
      const now = clock();
      const lanes = book.lanesOf(server, caller, now);
      const refused = refusedNow(lanes, now);
      if (refused) throw refuse(counts, lanes, refused);
      counts.inside++;
      for (const lane of lanes) {
        noteArrival(lane, now);
        lane.inside++;
      }
      const usedUp = quotas && lanes.some(hasQuota) ? quotas.take(lanes) : undefined;
      if (usedUp instanceof Promise) return usedUp.then((found) => takeSlots(counts, lanes, found, onGone));
      return takeSlots(counts, lanes, usedUp, onGone);
    },
    leave(slots, caller) {
      if (caller.isKnown) noteKnown(slots, caller, clock());
      counts.running--;
      goOut(counts, slots);
      for (let at = slots.length - 1; at >= 0; at--) giveBack(slots[at] as Lane);
    },
    serverUse: (id) => useOf(book.findServer(id), clock),
    workspaceUse: (id) => useOf(book.findWorkspace(id), clock),
    snapshot: () => ({
      running: counts.running,
      waiting: counts.inside - counts.running,
      refused: { ...counts.refused },
    }),
  };
}

function hasQuota({ perMinute, perDay }: Lane): boolean {
  return perMinute > 0 || perDay > 0;
}

function takeSlots(
  counts: Counts,
  lanes: Slots,
  usedUp: UsedUp | undefined,
  onGone: OnGone | undefined,
): Slots | Promise<Slots> {
  if (usedUp) {
    goOut(counts, lanes);
    throw refuse(counts, lanes, usedUp);
  }
  if (!lanes.every(hasSlot)) return wait(counts, lanes, onGone);
  for (const lane of lanes) lane.running++;
  counts.running++;
  return lanes;
}

function goOut(counts: Counts, lanes: Slots): void {
  counts.inside--;
  for (const lane of lanes) lane.inside--;
}

/**
 * Takes the slots lane by lane. A call that waits for its key holds no slot of the server, and one that waits for its
 * server holds none of the workspace.
 */
async function wait(counts: Counts, lanes: Slots, onGone: OnGone | undefined): Promise<Slots> {
  const askedAt = counts.clock();
  const until = runningNow() + counts.queueMs;
  const taken: Lane[] = [];
  try {
    for (const lane of lanes) {
      if (hasSlot(lane)) lane.running++;
      else {
        const refused = await takeTurn(counts, lane, until, onGone);
        if (refused) throw refuse(counts, lanes, refused);
      }
      taken.push(lane);
    }
    counts.running++;
    return lanes;
  } catch (error) {
    goOut(counts, lanes);
    counts.quotas?.giveBack(lanes, counts.clock() - askedAt);
    for (const lane of taken) giveBack(lane);
    throw error;
  }
}

/** Takes the slot of a lane in turn, or returns the refusal. @throws ToolFailure cancelled */
async function takeTurn(
  counts: Counts,
  lane: Lane,
  until: number,
  onGone: OnGone | undefined,
): Promise<Refused | undefined> {
  if (lane.waiting.length >= queueLength) return tooManyAtOnce(lane, counts);
  const how = await waitForSlot(lane, Math.max(0, until - runningNow()), onGone);
  if (how === 'gone') throw plainFailure('cancelled', 'the caller went away');
  return how === 'late' ? tooManyAtOnce(lane, counts) : undefined;
}

function tooManyAtOnce({ of, slots }: Lane, { queueMs }: Counts): Refused {
  return { of, kind: 'concurrency', limit: slots, waitMs: queueMs };
}

/** Counts a refusal for the server and the workspace, which are the last two lanes. */
function refuse({ refused, clock, processCount }: Counts, lanes: Slots, why: Refused): AppError {
  refused[refusedBy(why)]++;
  const now = clock();
  for (const lane of lanes.slice(-2)) {
    lane.refused ??= createRecentCount(minuteMs, 12);
    countAt(lane.refused, now);
  }
  return refusal(why, processCount());
}

function useOf(lane: Lane | undefined, clock: () => number): LimitUse {
  if (!lane) return { running: 0, waiting: 0, refused: 0 };
  const refused = lane.refused ? recentTotal(lane.refused, clock()) : 0;
  return { running: lane.running, waiting: lane.inside - lane.running, refused };
}

/** Limits that refuse calls, as metrics name them. */
const refusals = [
  ...laneKinds.flatMap((of) => (['rate', 'concurrency', 'quota'] as const).map((kind) => `${of}_${kind}` as const)),
  'fair_share' as const,
  'overload' as const,
];
type RefusedBy = (typeof refusals)[number];

/** Why a call is refused: the process is too busy, or a limit of one of its lanes is reached. */
type Refused =
  | { by: 'fair_share' | 'overload' }
  | { of: LaneOf; limit: number; waitMs: number; kind: 'rate' | 'concurrency' | 'minute' | 'day' };

function refusedBy(refused: Refused): RefusedBy {
  if ('by' in refused) return refused.by;
  const { of, kind } = refused;
  return `${of}_${kind === 'minute' || kind === 'day' ? 'quota' : kind}`;
}

/** The subject of the sentence about a limit, and the ending of its verb. */
const subjects: Record<LaneOf, [subject: string, ending: '' | 's']> = {
  server: ['this server', 's'],
  workspace: ['the servers of this workspace together', ''],
  key: ['one credential', 's'],
  address: ['credentials that are not known to be good, sent from one address,', ''],
  strangers: ['credentials that are not known to be good, beside others that are in use,', ''],
};

/** An error that says to an agent which limit it was, that nothing happened, and what to do. */
function refusal(refused: Refused, processes: number): AppError {
  const waitMs = 'by' in refused ? 1000 : refused.waitMs;
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const isUsedUp = 'kind' in refused && (refused.kind === 'minute' || refused.kind === 'day');
  const advice = 'by' in refused || isUsedUp ? '' : ', with fewer calls at a time';
  const message = `${reasonOf(refused, processes)}; this call was not made, try again in ${seconds} s${advice}`;
  return new AppError('by' in refused ? 'unavailable' : 'tooMany', message, { retryAfterS: seconds });
}

function reasonOf(refused: Refused, processes: number): string {
  if ('by' in refused) {
    return refused.by === 'overload'
      ? 'the service is overloaded for the moment'
      : 'the service is busy, and this workspace has its share of it under way';
  }
  const [subject, ending] = subjects[refused.of];
  // Quotas are counted for all processes together; each process has its share of the other limits.
  const each = processes > 1 ? ` in each of ${processes} processes` : '';
  const limit = `${Math.round(refused.limit * 100) / 100}`;
  switch (refused.kind) {
    case 'concurrency':
      return `too many calls at once: ${subject} run${ending} ${limit} at a time${each}`;
    case 'rate':
      return `too many calls: ${subject} take${ending} ${limit} a second${each}`;
    default:
      return `too many calls: ${subject} take${ending} ${limit} a ${refused.kind}, and they are used up`;
  }
}
