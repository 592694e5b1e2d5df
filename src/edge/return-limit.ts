import type { Visit } from '../domain/visit.ts';
import { createBoundedWork } from '../domain/work/bounded-work.ts';
import { AppError } from '../errors.ts';
import { type AddressLimitOptions, createAddressLimit } from './address-limit.ts';

export type ReturnLimitOptions = Omit<AddressLimitOptions, 'perMinute'> & { networkOf: (visit: Visit) => string };

/** Returns that failed in a minute: of one address, and of all that came back from one provider. */
const mostFailed = { ofAddress: 100, ofProvider: 300 };
/** Returns at once from one provider to one address, and in all. */
const mostAtOnce = { ofWorkspace: 20, ofAll: 2000 };

/**
 * Limits how often strangers have a provider asked about codes that they made up: a provider that throttles this service
 * lets nobody in. While too many returns from a provider fail, an address has only one more failure a minute, so people who
 * come from elsewhere get in.
 */
export function createReturnLimit({ networkOf, ...options }: ReturnLimitOptions) {
  const ofAddress = createAddressLimit({ ...options, perMinute: mostFailed.ofAddress });
  const onlyOnce = createAddressLimit({ ...options, perMinute: 1 });
  const ofProvider = createAddressLimit({ ...options, perMinute: mostFailed.ofProvider });
  const bounded = createBoundedWork(mostAtOnce, 'too many sign-ins from this address end at once; try again');

  /**
   * Runs the return of a person from a provider. The work calls `failed` when the provider was asked and lets nobody in.
   * @throws AppError tooMany, and what the work throws
   */
  return async <Result>(visit: Visit, provider: string, work: (failed: () => void) => Promise<Result>) => {
    const network = networkOf(visit);
    const waitMs = Math.max(ofAddress.waitMs(network), Math.min(ofProvider.waitMs(provider), onlyOnce.waitMs(network)));
    if (waitMs > 0)
      throw new AppError('tooMany', 'too many sign-ins from this address failed; wait a minute and start again', {
        retryAfterS: Math.ceil(waitMs / 1000),
      });
    return bounded(`${provider} ${network}`, () =>
      work(() => {
        ofAddress.take(network);
        onlyOnce.take(network);
        ofProvider.take(provider);
      }),
    );
  };
}
