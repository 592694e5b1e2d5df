import { type Processes, widestNetwork } from '../domain/limits.ts';
import type { Strangers, Visit } from '../domain/visit.ts';
import { AppError } from '../errors.ts';
import { createAddressLimit } from './address-limit.ts';

export type StrangersOptions = {
  /** 0 is no limit. */
  refusalsPerMinute: number;
  networkOf: (visit: Visit) => string;
  /** Monotonic ms. */
  clock: () => number;
  /** They divide the refusals of a minute among them. One when absent. */
  processes?: Processes;
};

/** Queries in a second for addresses above their limit: of one address, and of all together. */
export const lookupsOfAddress = 20;
export const lookupsOfAll = 100;
/** Characters of a bearer that cost as much as a refused request. */
export const chargedLength = 4096;
/** Bytes of an answer that cost as much as a refused request. */
export const sentBytes = 64 * 1024;
const manyRefused =
  'too many requests from this address were refused; check the address and the credential that are used, and try again later';
const muchSent =
  'too much was sent to this address, to callers without an API key of this service; take gzip, keep lists of tools, and try again later';
/** How long after the last refusal an address may still be above its limit. */
const calmMs = 60_000;

/**
 * A limit of refused requests for each address. Above it, requests are refused with a time to wait unless their
 * credential is valid: a remembered credential is served as usual, others are looked up a few times in a second.
 */
export function createStrangers(options: StrangersOptions): Strangers & {
  /** Requests refused by this limit since the start, for metrics. */
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
  /** Undefined as long as no address was above its limit. */
  let calmAt: number | undefined;
  let limited = 0;
  /** Whether the address is still within its limit. */
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
      // The first that is too much is sent, so a list can be longer than all of the limit.
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
