import { hasOthers, keptMs, type SharingCaller } from './activity.ts';
import { createLanes, type Lane } from './lane.ts';

/**
 * Adds the lanes that leave half of a server or workspace to callers of a better standing, and to those of other
 * addresses, while there are any. A caller that nobody needs to be kept from has no lane here.
 */
export function createShares(clock: () => number) {
  const strangers = createLanes('strangers', clock);
  const unjudged = createLanes('strangers', clock);
  const addresses = createLanes('address', clock);

  function halfOf(lane: Lane, whole: Lane): Lane {
    lane.slots = half(whole.slots);
    lane.rate = whole.rate / 2;
    return lane;
  }

  /** Of quotas too, which an address has none of: they are counted in the database, and addresses do not belong there. */
  function halfOfAll(lane: Lane, whole: Lane): Lane {
    lane.perMinute = half(whole.perMinute);
    lane.perDay = half(whole.perDay);
    return halfOf(lane, whole);
  }

  /** The lanes in `before` and these; undefined while there are none. */
  return (before: Lane[] | undefined, whole: Whole, caller: SharingCaller, now: number): Lane[] | undefined => {
    const { id, lane } = whole;
    const { activity } = lane;
    const network = caller.network ?? caller.credential?.network ?? '';
    let lanes = before;
    if (hasOthers(activity, network, now)) {
      lanes ??= [];
      lanes.push(halfOf(addresses.laneOf(`${id} ${network}`), lane));
    }
    if (!caller.isJudged && now - activity.judgedAt < keptMs) {
      lanes ??= [];
      lanes.push(halfOfAll(unjudged.laneOf(`${id} unjudged`), lane));
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

/** Of 0, no limit, there is no half. */
export function half(slots: number): number {
  return slots === 0 ? 0 : Math.max(1, Math.floor(slots / 2));
}
