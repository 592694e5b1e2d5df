import type { ClientRequest } from '@toolhost/credentials/client-request';
import { AppError } from '@toolhost/errors/errors';
import { getProcessShare, getWiderNetworks, type Processes } from '@toolhost/limits/call-limits';
import { getFairShare } from '@toolhost/limits/concurrency-limiter';

/**
 * Limits the frequency of an action per network, as returned by `getClientNetwork`. The enclosing networks are limited
 * too, at a multiple of the limit (`getWiderNetworks`).
 */
export type AddressLimit = {
  /** Takes one permit of a network. Returns false if none is left. */
  take(network: string): boolean;
  /** Returns the time until a network has a permit again, in ms; 0 if it has one now. */
  getWaitMs(network: string): number;
};

/** Permits left in a period, and the end of the period in monotonic ms. */
type Period = { remaining: number; until: number };

export type AddressLimitOptions = {
  /** Number of permits of a network in each period. */
  permits: number;
  /** Length of a period in ms. Defaults to a minute. */
  periodMs?: number;
  /** Returns monotonic ms. */
  clock: () => number;
  /** Processes that share the permits. Defaults to one. */
  processes?: Processes;
  /** Maximum number of stored networks. The least recently used ones are dropped. */
  maxNetworks?: number;
};

export const defaultMaxNetworks = 50_000;

/**
 * Creates a limit of permits per period, which begins with a network's first permit. The memory is bounded: new
 * networks only cause old ones to be dropped, which regain all of their permits.
 */
export function createAddressLimit(options: AddressLimitOptions): AddressLimit {
  const { permits, periodMs = 60_000, clock, processes = { count: 1 }, maxNetworks = defaultMaxNetworks } = options;
  const periods = new Map<string, Period>();

  /** Returns the current period of a network. Starts one if there is none. */
  function getPeriod(network: string, weight: number, now: number): Period {
    let period = periods.get(network);
    // Moved to the end, because the first entry of the map is the least recently used.
    periods.delete(network);
    if (!period || period.until <= now)
      period = { remaining: getProcessShare(permits * weight, processes.count), until: now + periodMs };
    periods.set(network, period);
    if (periods.size > maxNetworks) periods.delete(periods.keys().next().value as string);
    return period;
  }

  /** Returns the time to wait without regard to enclosing networks. */
  function getOwnWaitMs(network: string): number {
    const period = periods.get(network);
    return period?.remaining === 0 ? Math.max(0, period.until - clock()) : 0;
  }

  return {
    take(network) {
      const now = clock();
      const takenPeriods: Period[] = [];
      // The widest network first, so that a network within an exhausted one takes no memory.
      for (const { name, weight } of [...getWiderNetworks(network), { name: network, weight: 1 }]) {
        const period = getPeriod(name, weight, now);
        if (period.remaining === 0) return false;
        takenPeriods.push(period);
      }
      for (const period of takenPeriods) period.remaining--;
      return true;
    },
    getWaitMs: (network) =>
      Math.max(getOwnWaitMs(network), ...getWiderNetworks(network).map(({ name }) => getOwnWaitMs(name))),
  };
}

export type ReturnLimitOptions = Omit<AddressLimitOptions, 'permits'> & {
  getNetwork: (request: ClientRequest) => string;
  /** Name of the provider for signing in to this service itself. */
  signInProvider: string;
};

/** Maximum rejected codes per minute: of one address, and of all returns from one provider. */
export const maxFailures = { perAddress: 100, perProvider: 300 };
/** Maximum concurrent returns: from one provider to one address, and in total. */
const maxConcurrent = { perOwner: 20, total: 2000 };

/**
 * Limits how often unverified callers make the service send made-up codes to a provider. A provider that throttles this
 * service would lock everyone out. While a provider rejects too many codes, each address may cause only one more
 * rejection there per minute, so that other people can still log in.
 */
export function createReturnLimit({ getNetwork, signInProvider, ...options }: ReturnLimitOptions) {
  const addressLimit = createAddressLimit({ ...options, permits: maxFailures.perAddress });
  const singleFailureLimit = createAddressLimit({ ...options, permits: 1 });
  const providerLimit = createAddressLimit({ ...options, permits: maxFailures.perProvider });
  // Tenants choose the providers of their servers, and a slow one must not prevent everyone from signing in.
  const runServerLogin = createReturnLimiter();
  const runSignIn = createReturnLimiter();

  /**
   * Handles a person's return from a provider. The work calls `onCodeRefused` when the provider rejected a code.
   * @throws AppError tooMany, and errors of the work
   */
  return async <Result>(
    request: ClientRequest,
    provider: string,
    work: (onCodeRefused: () => void) => Promise<Result>,
  ) => {
    const network = getNetwork(request);
    const providerAndNetwork = `${provider} ${network}`;
    const waitMs = Math.max(
      addressLimit.getWaitMs(network),
      Math.min(providerLimit.getWaitMs(provider), singleFailureLimit.getWaitMs(providerAndNetwork)),
    );
    if (waitMs > 0)
      throw new AppError('tooMany', 'too many sign-ins from this address have failed; wait a minute and start again', {
        retryAfterS: Math.ceil(waitMs / 1000),
      });
    const run = provider === signInProvider ? runSignIn : runServerLogin;
    return run(providerAndNetwork, () =>
      work(() => {
        addressLimit.take(network);
        singleFailureLimit.take(providerAndNetwork);
        providerLimit.take(provider);
      }),
    );
  };
}

/** Returns a function that runs the work of a return, or refuses it if its owner has too many. @throws AppError tooMany */
function createReturnLimiter() {
  const runningByOwner = new Map<string, number>();
  let running = 0;
  return async <Result>(owner: string, work: () => Promise<Result>): Promise<Result> => {
    const own = runningByOwner.get(owner) ?? 0;
    if (own >= Math.min(maxConcurrent.perOwner, getFairShare(maxConcurrent.total - running, own, 3)))
      throw new AppError('tooMany', 'too many logins are being completed; try again in a moment', { retryAfterS: 5 });
    running++;
    runningByOwner.set(owner, own + 1);
    try {
      return await work();
    } finally {
      running--;
      const remaining = (runningByOwner.get(owner) ?? 1) - 1;
      if (remaining > 0) runningByOwner.set(owner, remaining);
      else runningByOwner.delete(owner);
    }
  };
}
