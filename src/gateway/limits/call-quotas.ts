import type { QuotaPeriod } from '../../store/calls/call-quota-use.ts';
import type { Lane, LaneOf } from './lanes.ts';
import type { QuotaReserves, Reserve } from './quota-reserves.ts';

/** A used-up quota: whose it is, how many calls it allows, and how long until it starts anew. */
export type UsedUp = { of: LaneOf; kind: QuotaPeriod['span']; limit: number; waitMs: number };

/** Quotas of calls per minute and per day (UTC), shared by all processes. */
export type QuotaCounter = {
  /**
   * Counts a call in the quotas of its lanes. Returns the quota that is used up, if any; the call then counts in none.
   * Returns a promise if more calls have to be taken from the database.
   */
  take(lanes: readonly Lane[]): UsedUp | undefined | Promise<UsedUp | undefined>;
  /** Takes back the count of a call that was not made after all; it was counted `agoMs` ago. */
  giveBack(lanes: readonly Lane[], agoMs: number): void;
};

export type CallQuotasOptions = {
  /** Epoch ms. */
  now: () => number;
  reserves: QuotaReserves;
};

/** A quota that a call counts in. */
type Counted = { of: LaneOf; reserve: Reserve };

const spansMs = { minute: 60_000, day: 86_400_000 };

export function createCallQuotas({ now, reserves }: CallQuotasOptions): QuotaCounter {
  function reserveOf(lane: Lane, span: QuotaPeriod['span'], at: number): Reserve {
    const quota = span === 'minute' ? lane.perMinute : lane.perDay;
    const known = lane[span];
    if (known && at < known.endsAt) {
      if (known.quota !== quota) reserves.change(known, quota);
      return known;
    }
    const startsAt = at - (at % spansMs[span]);
    const made = reserves.make({ kind: lane.of, ref: lane.id, span, startsAt }, startsAt + spansMs[span], quota);
    lane[span] = made;
    return made;
  }

  function countedIn(lanes: readonly Lane[], at: number): Counted[] {
    const counted: Counted[] = [];
    for (const lane of lanes) {
      if (lane.perMinute > 0) counted.push({ of: lane.of, reserve: reserveOf(lane, 'minute', at) });
      if (lane.perDay > 0) counted.push({ of: lane.of, reserve: reserveOf(lane, 'day', at) });
    }
    return counted;
  }

  async function takeLater(counted: readonly Counted[]): Promise<UsedUp | undefined> {
    const empty = counted.filter(({ reserve }) => reserve.held === 0);
    await Promise.all(empty.map(({ reserve }) => reserves.ask(reserve)));
    const taken: Reserve[] = [];
    for (const { of, reserve } of counted) {
      // Other calls may have used up the reserve meanwhile.
      while (reserve.held === 0) {
        const at = now();
        if (isUsedUp(reserve, at)) {
          for (const other of taken) other.held++;
          return usedUp(of, reserve, at);
        }
        await reserves.ask(reserve);
      }
      use(reserve);
      taken.push(reserve);
    }
    return undefined;
  }

  return {
    take(lanes) {
      const at = now();
      const counted = countedIn(lanes, at);
      const none = counted.find(({ reserve }) => isUsedUp(reserve, at));
      if (none) return usedUp(none.of, none.reserve, at);
      if (counted.some(({ reserve }) => reserve.held === 0)) return takeLater(counted);
      for (const { reserve } of counted) use(reserve);
      return undefined;
    },
    giveBack(lanes, agoMs) {
      for (const { minute, day, perMinute, perDay } of lanes) {
        const takenAt = now() - agoMs;
        if (perMinute > 0 && minute && minute.startsAt <= takenAt) minute.held++;
        if (perDay > 0 && day && day.startsAt <= takenAt) day.held++;
      }
    },
  };
}

function isUsedUp({ held, usedUpUntil }: Reserve, at: number): boolean {
  return held === 0 && at < usedUpUntil;
}

function use(reserve: Reserve): void {
  reserve.held--;
  reserve.isUsed = true;
}

function usedUp(of: LaneOf, { span, quota, endsAt }: Reserve, at: number): UsedUp {
  return { of, kind: span, limit: quota, waitMs: Math.max(0, endsAt - at) };
}
