import { hasOthers, keptMs, type SharingCaller } from './activity.ts';
import { createLanes, type Lane } from './lane.ts';

/**
 * Adds the lanes that reserve half of a server or workspace for better-known callers, and for callers of other
 * addresses, while there are any. A caller that needs no such bound gets no lane here.
 */
export function createShares(clock: () => number) {
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
export function half(slots: number): number {
  return slots === 0 ? 0 : Math.max(1, Math.floor(slots / 2));
}
