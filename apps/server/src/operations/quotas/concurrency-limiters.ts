import { ConcurrencyLimiter } from '@toolhost/limits/concurrency-limiter';
import type { OnShed } from '@toolhost/limits/memory-budget';
import type { Operation } from '../operation.ts';

/** Concurrency limiters of a process, by kind of work. */
export type ConcurrencyLimiters = {
  [Kind in Operation['effect'] | 'model' | 'report' | 'transaction']: ConcurrencyLimiter;
};

/** Maximum number of concurrent operations of each kind in a process. */
export const maxConcurrentOperations = { read: 24, write: 24, call: 200 };
/** Maximum number of concurrent model requests. */
export const maxConcurrentModels = { perTenant: 4, total: 40 };
/** Limits for queued reports. Clients retry a list sooner than a change, so reports wait only briefly. */
export const reportQueue = { maxQueued: 32, queueTimeoutMs: 5000 };

type ConcurrencyLimiterOptions = {
  maxConcurrentReports?: number;
  reportShare?: () => number;
  maxQueuedBytes?: number;
  onShed?: OnShed;
};

export function createConcurrencyLimiters({
  maxConcurrentReports = 1,
  reportShare,
  maxQueuedBytes,
  onShed,
}: ConcurrencyLimiterOptions = {}): ConcurrencyLimiters {
  const shared = { ...(maxQueuedBytes && { maxQueuedBytes }), onRefused: () => onShed?.('operation') };
  return {
    read: new ConcurrencyLimiter({
      ...shared,
      rule: describeRule('read requests'),
      maxConcurrent: maxConcurrentOperations.read,
    }),
    // Changes have their own limiter, so that queued changes do not block reads.
    write: new ConcurrencyLimiter({
      ...shared,
      rule: describeRule('changes'),
      maxConcurrent: maxConcurrentOperations.write,
    }),
    // Trial calls mostly wait for an upstream, and the call limits apply to them as well.
    call: new ConcurrencyLimiter({
      ...shared,
      rule: describeRule('trial calls and trial logins'),
      maxConcurrent: maxConcurrentOperations.call,
    }),
    model: new ConcurrencyLimiter({
      ...shared,
      rule: `at most ${maxConcurrentModels.perTenant} model requests run concurrently in the workspaces that one person created, and one caller may use half of them`,
      maxConcurrent: maxConcurrentModels.total,
      perTenant: maxConcurrentModels.perTenant,
    }),
    report: new ConcurrencyLimiter({
      rule: describeRule('lists, statistics, and exports'),
      maxConcurrent: maxConcurrentReports,
      ...reportQueue,
      ...(reportShare && { cpuShare: reportShare }),
    }),
    // The database would queue them too (`countWrite`), but a change that waits there holds a connection that others
    // need.
    transaction: new ConcurrencyLimiter({
      rule: describeRule('changes in the workspaces that one person created'),
      maxConcurrent: Number.POSITIVE_INFINITY,
      perTenant: 1,
    }),
  };
}

/** Returns the rule of a limiter, for refusals. */
export function describeRule(work: string): string {
  return `the number of concurrent ${work} is limited, and one caller may use at most half of the free capacity`;
}
