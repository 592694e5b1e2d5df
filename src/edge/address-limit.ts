import { type Processes, shareOf, widerNetworks } from '../domain/limits.ts';
import type { Visit } from '../domain/visit.ts';
import { createBoundedWork } from '../domain/work/places.ts';
import { AppError } from '../errors.ts';

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
  /** How long a minute is, in ms, where it is another time. */
  minuteMs?: number;
  /** Monotonic ms. */
  clock: () => number;
  /** They share the turns; one when absent. */
  processes?: Processes;
  /** Addresses that are remembered; above this the least recently used are dropped. */
  most?: number;
};

export const mostAddresses = 50_000;

/**
 * Allows a number of turns in a minute, which begins with the first. The memory is bounded: ever new addresses only
 * cause old ones to be dropped, which costs nobody a turn.
 */
export function createAddressLimit(options: AddressLimitOptions): AddressLimit {
  const { perMinute, minuteMs = 60_000, clock, processes = { count: 1 }, most = mostAddresses } = options;
  const minutes = new Map<string, Minute>();

  /** The minute of a network, which is begun if there is none. */
  function minuteOf(network: string, times: number, now: number): Minute {
    let minute = minutes.get(network);
    // Moved to the end: the first entry of the map is the least recently used.
    minutes.delete(network);
    if (!minute || minute.until <= now) {
      minute = { left: shareOf(perMinute * times, processes.count), until: now + minuteMs };
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

export type ReturnLimitOptions = Omit<AddressLimitOptions, 'perMinute'> & {
  networkOf: (visit: Visit) => string;
  /** The provider where people sign in at this service itself. */
  ownProvider: string;
};

/** Codes that were refused in a minute: of one address, and of all that came back from one provider. */
export const mostFailed = { ofAddress: 100, ofProvider: 300 };
/** Returns at once from one provider to one address, and in all. */
const mostAtOnce = { ofTenant: 20, ofAll: 2000 };

/**
 * Limits how often strangers have a provider asked about codes that they made up: a provider that throttles this service
 * lets nobody in. While a provider refuses too many codes, an address has only one more refusal there a minute, so people who
 * come from elsewhere get in.
 */
export function createReturnLimit({ networkOf, ownProvider, ...options }: ReturnLimitOptions) {
  const ofAddress = createAddressLimit({ ...options, perMinute: mostFailed.ofAddress });
  const onlyOnce = createAddressLimit({ ...options, perMinute: 1 });
  const ofProvider = createAddressLimit({ ...options, perMinute: mostFailed.ofProvider });
  const busy = 'too many logins are being finished at once; try again in a moment';
  // Tenants choose how slow the providers of their servers are, and must not keep everybody from signing in.
  const [ofServers, ofSignIn] = [createBoundedWork(mostAtOnce, busy), createBoundedWork(mostAtOnce, busy)];

  /**
   * Runs the return of a person from a provider. The work calls `failed` when the provider was asked about a code and
   * refused it.
   * @throws AppError tooMany, and what the work throws
   */
  return async <Result>(visit: Visit, provider: string, work: (failed: () => void) => Promise<Result>) => {
    const network = networkOf(visit);
    const there = `${provider} ${network}`;
    const waitMs = Math.max(ofAddress.waitMs(network), Math.min(ofProvider.waitMs(provider), onlyOnce.waitMs(there)));
    if (waitMs > 0)
      throw new AppError('tooMany', 'too many sign-ins from this address failed; wait a minute and start again', {
        retryAfterS: Math.ceil(waitMs / 1000),
      });
    const bounded = provider === ownProvider ? ofSignIn : ofServers;
    return bounded(there, () =>
      work(() => {
        ofAddress.take(network);
        onlyOnce.take(there);
        ofProvider.take(provider);
      }),
    );
  };
}
