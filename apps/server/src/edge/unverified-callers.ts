import type { ClientRequest, UnverifiedCallerLimits } from '@toolhost/credentials/client-request';
import { AppError } from '@toolhost/errors/errors';
import { getWidestNetwork, type Processes } from '@toolhost/limits/call-limits';
import { createAddressLimit } from './address-limit.ts';

export type UnverifiedCallersOptions = {
  /** 0 means no limit. */
  refusalsPerMinute: number;
  getNetwork: (request: ClientRequest) => string;
  /** Returns monotonic ms. */
  clock: () => number;
  /** Processes that share the rejections of a minute. Defaults to one. */
  processes?: Processes;
};

/** Maximum database queries per second for addresses over their limit: of one address, and in total. */
export const maxQueriesPerAddress = 20;
export const maxQueries = 100;
/** Characters of a bearer token that cost as much as one rejected request. */
export const chargedLength = 4096;
/** Bytes of a response that cost as much as one rejected request. */
export const chargedBytes = 64 * 1024;
const tooManyRejectedMessage =
  'too many requests from this address were rejected; check the URL and the credential, and try again later';
const tooMuchSentMessage =
  'too much data was sent to clients without an API key at this address; enable gzip, cache tools/list, and try again later';
/** Maximum time after the last rejection for which an address may remain over its limit. */
const cooldownMs = 60_000;

/**
 * Creates a limit of rejected requests per address. Over the limit, requests are rejected with a time to wait unless
 * their credential is valid. Cached credentials are accepted as usual. A few others per second are looked up in the
 * database.
 */
export function createUnverifiedCallers(options: UnverifiedCallersOptions): UnverifiedCallerLimits & {
  /** Returns the number of requests rejected by this limit since startup, for metrics. */
  getLimitedCount(): number;
} {
  const { refusalsPerMinute, getNetwork, clock } = options;
  const limit = createAddressLimit({
    permits: refusalsPerMinute,
    clock,
    ...(options.processes && { processes: options.processes }),
  });
  const addressQueries = createAddressLimit({ permits: maxQueriesPerAddress, periodMs: 1000, clock });
  const allQueries = createAddressLimit({ permits: maxQueries, periodMs: 1000, clock });
  /** Undefined if no address has ever exceeded its limit. */
  let cooldownEndsAt: number | undefined;
  let limitedCount = 0;
  /** Returns true if the address is within its limit. */
  const take = (network: string) => {
    if (limit.take(network)) return true;
    cooldownEndsAt = clock() + cooldownMs;
    return false;
  };
  const createTooManyError = (network: string, message = tooManyRejectedMessage) =>
    new AppError('tooMany', message, { retryAfterS: Math.max(1, Math.ceil(limit.getWaitMs(network) / 1000)) });
  const reject = (network: string) => {
    limitedCount++;
    return createTooManyError(network);
  };
  return {
    getQueryCharge(request) {
      if (cooldownEndsAt === undefined || clock() >= cooldownEndsAt) return undefined;
      const network = getNetwork(request);
      if (limit.getWaitMs(network) === 0) return undefined;
      return () => {
        if (!addressQueries.take(getWidestNetwork(network)) || !allQueries.take('')) throw createTooManyQueriesError();
      };
    },
    recordRefusal(request, status) {
      if (refusalsPerMinute === 0 || status < 400 || status > 499 || status === 429) return undefined;
      const network = getNetwork(request);
      return take(network) ? undefined : reject(network);
    },
    chargeUnknownBearer(request, length) {
      if (refusalsPerMinute === 0) return undefined;
      const network = getNetwork(request);
      let isWithinLimit = true;
      for (let charged = 0; charged < length && isWithinLimit; charged += chargedLength) isWithinLimit = take(network);
      return isWithinLimit || length <= chargedLength ? undefined : reject(network);
    },
    chargeSentBytes(request, bytes) {
      const units = refusalsPerMinute === 0 ? 0 : Math.floor(bytes / chargedBytes);
      if (units === 0) return undefined;
      const network = getNetwork(request);
      const isOverLimit = limit.getWaitMs(network) > 0;
      // The first response over the limit is still sent, so a list can be larger than the whole limit.
      let remaining = units;
      while (remaining > 0 && take(network)) remaining--;
      if (!isOverLimit) return undefined;
      limitedCount++;
      return createTooManyError(network, tooMuchSentMessage);
    },
    getLimitedCount: () => limitedCount,
  };
}

function createTooManyQueriesError(): AppError {
  return new AppError('tooMany', tooManyRejectedMessage, { retryAfterS: 1 });
}
