import type { ClientRequest } from '@toolhost/credentials/client-request';
import { AppError } from '@toolhost/errors/errors';
import { getProcessShare, getWiderNetworks, type Processes } from '@toolhost/limits/call-limits';
import { createWorkLimiter } from '@toolhost/limits/preemptible-slots';

/**
 * Limits the frequency of an action per address. Addresses have the form of `clientNetwork`. The enclosing networks are
 * limited too, at a multiple of the limit (`getWiderNetworks`).
 */
export type AddressLimit = {
  /** Takes one permit of an address. Returns false if none is left. */
  take(network: string): boolean;
  /** Returns the time until an address has a permit again, in ms; 0 if it has one now. */
  waitMs(network: string): number;
};

/** Permits left in a minute, and the end of the minute in monotonic ms. */
type Minute = { remaining: number; until: number };

export type AddressLimitOptions = {
  perMinute: number;
  /** Length of a minute in ms, if it is another period. */
  minuteMs?: number;
  /** Monotonic ms. */
  clock: () => number;
  /** Processes that share the permits. Defaults to one. */
  processes?: Processes;
  /** Maximum number of stored addresses. The least recently used ones are dropped. */
  maxAddresses?: number;
};

export const defaultMaxAddresses = 50_000;

/**
 * Creates a limit of permits per minute. A minute begins with an address's first permit. The memory is bounded: new
 * addresses only cause old ones to be dropped, which never costs an address a permit.
 */
export function createAddressLimit(options: AddressLimitOptions): AddressLimit {
  const { perMinute, minuteMs = 60_000, clock, processes = { count: 1 }, maxAddresses = defaultMaxAddresses } = options;
  const minutes = new Map<string, Minute>();

  /** Returns the current minute of a network. Starts one if there is none. */
  function getMinute(network: string, weight: number, now: number): Minute {
    let minute = minutes.get(network);
    // Moved to the end, because the first entry of the map is the least recently used.
    minutes.delete(network);
    if (!minute || minute.until <= now) {
      minute = { remaining: getProcessShare(perMinute * weight, processes.count), until: now + minuteMs };
    }
    minutes.set(network, minute);
    if (minutes.size > maxAddresses) minutes.delete(minutes.keys().next().value as string);
    return minute;
  }

  function waitMs(network: string): number {
    const minute = minutes.get(network);
    return minute?.remaining === 0 ? Math.max(0, minute.until - clock()) : 0;
  }

  return {
    take(network) {
      const now = clock();
      const takenMinutes: Minute[] = [];
      // The widest network first, so that a network within an exhausted one takes no memory.
      for (const { name, weight } of [...getWiderNetworks(network), { name: network, weight: 1 }]) {
        const minute = getMinute(name, weight, now);
        if (minute.remaining === 0) return false;
        takenMinutes.push(minute);
      }
      for (const minute of takenMinutes) minute.remaining--;
      return true;
    },
    waitMs: (network) => Math.max(waitMs(network), ...getWiderNetworks(network).map(({ name }) => waitMs(name))),
  };
}

export type ReturnLimitOptions = Omit<AddressLimitOptions, 'perMinute'> & {
  getNetwork: (request: ClientRequest) => string;
  /** Provider for logging in to this service itself. */
  signInProvider: string;
};

/** Maximum rejected codes per minute: of one address, and of all returns from one provider. */
export const maxFailures = { perAddress: 100, perProvider: 300 };
/** Maximum concurrent returns: from one provider to one address, and in total. */
const maxConcurrent = { perTenant: 20, total: 2000 };

/**
 * Limits how often unverified callers make the service send made-up codes to a provider. A provider that throttles this
 * service would lock everyone out. While a provider rejects too many codes, each address may cause only one more
 * rejection there per minute, so that other people can still log in.
 */
export function createReturnLimit({ getNetwork, signInProvider, ...options }: ReturnLimitOptions) {
  const addressLimit = createAddressLimit({ ...options, perMinute: maxFailures.perAddress });
  const singleFailureLimit = createAddressLimit({ ...options, perMinute: 1 });
  const providerLimit = createAddressLimit({ ...options, perMinute: maxFailures.perProvider });
  const busyMessage = 'too many logins are being completed; try again in a moment';
  // Tenants choose the providers of their servers, and a slow one must not prevent everyone from signing in.
  const [runServerLogin, runSignIn] = [
    createWorkLimiter(maxConcurrent, busyMessage),
    createWorkLimiter(maxConcurrent, busyMessage),
  ];

  /**
   * Handles a person's return from a provider. The work calls `failed` when the provider rejected a code.
   * @throws AppError tooMany, and errors of the work
   */
  return async <Result>(request: ClientRequest, provider: string, work: (failed: () => void) => Promise<Result>) => {
    const network = getNetwork(request);
    const providerAndNetwork = `${provider} ${network}`;
    const waitMs = Math.max(
      addressLimit.waitMs(network),
      Math.min(providerLimit.waitMs(provider), singleFailureLimit.waitMs(providerAndNetwork)),
    );
    if (waitMs > 0)
      throw new AppError('tooMany', 'too many sign-ins from this address have failed; wait a minute and start again', {
        retryAfterS: Math.ceil(waitMs / 1000),
      });
    const runBounded = provider === signInProvider ? runSignIn : runServerLogin;
    return runBounded(providerAndNetwork, () =>
      work(() => {
        addressLimit.take(network);
        singleFailureLimit.take(providerAndNetwork);
        providerLimit.take(provider);
      }),
    );
  };
}
