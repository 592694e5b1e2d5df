import { shareOf } from '../domain/limits.ts';
import { widerNetworks } from '../domain/networks.ts';

/**
 * A limit on how often one address may do something; addresses as `clientNetwork` writes them. The networks around it
 * have turns too, some times as many (`widerNetworks`).
 */
export type AddressLimit = {
  /** Uses up one turn of an address. False if none is left. */
  take(network: string): boolean;
  /** Time until an address has a turn again, in ms; 0 when it has one now. */
  waitMs(network: string): number;
};

/** Turns left in a minute, and the end of that minute in monotonic ms. */
type Minute = { left: number; until: number };

export type AddressLimitOptions = {
  perMinute: number;
  /** Monotonic ms. */
  clock: () => number;
  /** Number of processes that share the turns; 1 when absent. */
  processCount?: () => number;
  /** Addresses that are remembered; above this the least recently used are dropped. */
  most?: number;
};

const usualMost = 50_000;
const minuteMs = 60_000;

/**
 * Allows a number of turns in a minute, which begins with the first. The memory is bounded: ever new addresses only
 * cause old ones to be dropped, which costs nobody a turn.
 */
export function createAddressLimit(options: AddressLimitOptions): AddressLimit {
  const { perMinute, clock, processCount = () => 1, most = usualMost } = options;
  const minutes = new Map<string, Minute>();

  /** The minute of a network, which is begun if there is none. */
  function minuteOf(network: string, times: number, now: number): Minute {
    let minute = minutes.get(network);
    // Moved to the end: the first entry of the map is the least recently used.
    minutes.delete(network);
    if (!minute || minute.until <= now) {
      minute = { left: shareOf(perMinute * times, processCount()), until: now + minuteMs };
    }
    minutes.set(network, minute);
    if (minutes.size > most) minutes.delete(minutes.keys().next().value as string);
    return minute;
  }

  function waitMs(network: string): number {
    const minute = minutes.get(network);
    return minute?.left === 0 ? Math.max(0, minute.until - clock()) : 0;
  }

  return {
    take(network) {
      const now = clock();
      const taken: Minute[] = [];
      // The widest first: a network in one without turns takes no memory.
      for (const { name, times } of [...widerNetworks(network), { name: network, times: 1 }]) {
        const minute = minuteOf(name, times, now);
        if (minute.left === 0) return false;
        taken.push(minute);
      }
      for (const minute of taken) minute.left--;
      return true;
    },
    waitMs: (network) => Math.max(waitMs(network), ...widerNetworks(network).map(({ name }) => waitMs(name))),
  };
}
