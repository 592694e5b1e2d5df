import type { Visit } from '../domain/visit.ts';
import { createBoundedWork } from '../domain/work/places.ts';
import { AppError } from '../errors.ts';
import { type AddressLimitOptions, createAddressLimit } from './address-limit.ts';

export type ReturnLimitOptions = Omit<AddressLimitOptions, 'perMinute'> & {
  networkOf: (visit: Visit) => string;
  /** The provider where people sign in at this service itself. */
  ownProvider: string;
};

/** Codes that were refused in a minute: of one address, and of all that came back from one provider. */
const mostFailed = { ofAddress: 100, ofProvider: 300 };
/** Returns at once from one provider to one address, and in all. */
const mostAtOnce = { ofWorkspace: 20, ofAll: 2000 };

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
