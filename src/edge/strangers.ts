import { type Processes, widestNetwork } from '../domain/limits.ts';
import type { Strangers, Visit } from '../domain/visit.ts';
import { AppError } from '../errors.ts';
import { createAddressLimit } from './address-limit.ts';

export type StrangersOptions = {
  /** 0 means no limit. */
  refusalsPerMinute: number;
  networkOf: (visit: Visit) => string;
  /** Monotonic ms. */
  clock: () => number;
  /** Processes that share the rejections of a minute. Defaults to one. */
  processes?: Processes;
};

/** Maximum queries per second for addresses over their limit: of one address, and in total. */
export const lookupsOfAddress = 20;
export const lookupsOfAll = 100;
/** Characters of a bearer token that cost as much as one rejected request. */
export const chargedLength = 4096;
/** Bytes of a response that cost as much as one rejected request. */
export const sentBytes = 64 * 1024;
const manyRefused =
  'too many requests from this address were rejected; check the URL and the credential, and try again later';
const muchSent =
  'too much data was sent to clients without an API key at this address; enable gzip, cache tools/list, and try again later';
/** Maximum time after the last rejection for which an address may remain over its limit. */
const calmMs = 60_000;

/**
 * Creates a limit of rejected requests per address. Over the limit, requests are rejected with a time to wait unless
 * their credential is valid. Cached credentials are accepted as usual; others are queried a few times per second.
 */
export function createStrangers(options: StrangersOptions): Strangers & {
  /** Returns the number of requests rejected by this limit since startup, for metrics. */
  limited(): number;
} {
  const { refusalsPerMinute, networkOf, clock } = options;
  const limit = createAddressLimit({
    perMinute: refusalsPerMinute,
    clock,
    ...(options.processes && { processes: options.processes }),
  });
  const lookups = createAddressLimit({ perMinute: lookupsOfAddress, minuteMs: 1000, clock });
  const allLookups = createAddressLimit({ perMinute: lookupsOfAll, minuteMs: 1000, clock });
  /** Undefined if no address has ever exceeded its limit. */
  let calmAt: number | undefined;
  let limited = 0;
  /** Returns true if the address is within its limit. */
  const take = (network: string) => {
    if (limit.take(network)) return true;
    calmAt = clock() + calmMs;
    return false;
  };
  const tooMany = (network: string, why = manyRefused) =>
    new AppError('tooMany', why, { retryAfterS: Math.max(1, Math.ceil(limit.waitMs(network) / 1000)) });
  const refuse = (network: string) => {
    limited++;
    return tooMany(network);
  };
  return {
    lookFor(visit) {
      if (calmAt === undefined || clock() >= calmAt) return undefined;
      const network = networkOf(visit);
      if (limit.waitMs(network) === 0) return undefined;
      return () => {
        if (!lookups.take(widestNetwork(network)) || !allLookups.take('')) throw tooManyLookups();
      };
    },
    onRefused(visit, status) {
      if (refusalsPerMinute === 0 || status < 400 || status > 499 || status === 429) return undefined;
      const network = networkOf(visit);
      return take(network) ? undefined : refuse(network);
    },
    onUnknown(visit, length) {
      if (refusalsPerMinute === 0) return undefined;
      const network = networkOf(visit);
      let isWithin = true;
      for (let at = 0; at < length && isWithin; at += chargedLength) isWithin = take(network);
      return isWithin || length <= chargedLength ? undefined : refuse(network);
    },
    onSent(visit, bytes) {
      const times = refusalsPerMinute === 0 ? 0 : Math.floor(bytes / sentBytes);
      if (times === 0) return undefined;
      const network = networkOf(visit);
      const isAbove = limit.waitMs(network) > 0;
      // The first response over the limit is still sent, so a list can be larger than the whole limit.
      let left = times;
      while (left > 0 && take(network)) left--;
      if (!isAbove) return undefined;
      limited++;
      return tooMany(network, muchSent);
    },
    limited: () => limited,
  };
}

function tooManyLookups(): AppError {
  return new AppError('tooMany', manyRefused, { retryAfterS: 1 });
}
