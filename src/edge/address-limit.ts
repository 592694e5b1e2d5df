import { shareOf } from '../domain/limits.ts';

/** How often one address may do something; addresses as `networkOf` writes them. */
export type AddressLimit = {
  /** Takes one turn of an address. False when it has none left. */
  take(network: string): boolean;
  /** How long until an address has a turn again, in ms; 0 when it has one now. */
  waitMs(network: string): number;
};

/** Turns that are left in a minute, and when it ends, in monotonic ms. */
type Minute = { left: number; until: number };

export type AddressLimitOptions = {
  perMinute: number;
  /** Monotonic ms. */
  clock: () => number;
  /** How many processes divide the turns among them. One when absent. */
  processCount?: () => number;
  /** Addresses that are remembered; above it those that came up least lately are forgotten. */
  most?: number;
};

const usualMost = 50_000;
const minuteMs = 60_000;

/**
 * So many turns in a minute, which begins with the first. The memory is bounded: who comes from ever new addresses makes
 * only old addresses be forgotten, and so takes no turn from anybody.
 */
export function createAddressLimit(options: AddressLimitOptions): AddressLimit {
  const { perMinute, clock, processCount = () => 1, most = usualMost } = options;
  const minutes = new Map<string, Minute>();
  return {
    take(network) {
      const now = clock();
      let minute = minutes.get(network);
      // Put at the end: the first of a map is the one that came up least lately.
      minutes.delete(network);
      if (!minute || minute.until <= now) {
        minute = { left: shareOf(perMinute, processCount()), until: now + minuteMs };
      }
      minutes.set(network, minute);
      if (minutes.size > most) minutes.delete(minutes.keys().next().value as string);
      if (minute.left === 0) return false;
      minute.left--;
      return true;
    },
    waitMs(network) {
      const minute = minutes.get(network);
      return minute?.left === 0 ? Math.max(0, minute.until - clock()) : 0;
    },
  };
}
