import { AppError } from '../errors.ts';

/** What refuses calls, in words for metrics. */
export const refusals = [
  'server_rate',
  'server_concurrency',
  'workspace_rate',
  'workspace_concurrency',
  'key_concurrency',
  'address_concurrency',
  'strangers_rate',
  'strangers_concurrency',
  'fair_share',
  'overload',
] as const;
export type RefusedBy = (typeof refusals)[number];

/** Words for an agent: which limit it was, that nothing happened, and what to do. */
export function refusal(by: RefusedBy, limit: number, waitMs: number): AppError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const kind = by === 'overload' || by === 'fair_share' ? 'unavailable' : 'tooMany';
  const unknown = 'credentials that are not known to be good';
  const told: Record<RefusedBy, string> = {
    server_rate: `too many calls: this server takes ${limit} a second`,
    server_concurrency: `too many calls at once: this server runs ${limit} at a time`,
    workspace_rate: `too many calls: the servers of this workspace together take ${limit} a second`,
    workspace_concurrency: `too many calls at once: the servers of this workspace together run ${limit} at a time`,
    key_concurrency: `too many calls at once: one credential runs ${limit} at a time`,
    address_concurrency: `too many calls at once: ${unknown} run ${limit} at a time from one address`,
    strangers_rate: `too many calls: this server takes ${limit} a second with ${unknown}, as others are in use`,
    strangers_concurrency: `too many calls at once: this server runs ${limit} at a time with ${unknown}, as others are in use`,
    fair_share: 'the service is busy, and this workspace has its share of it under way',
    overload: 'the service is overloaded for the moment',
  };
  const advice = kind === 'tooMany' ? ', with fewer calls at a time' : '';
  return new AppError(kind, `${told[by]}; this call was not made, try again in ${seconds} s${advice}`, {
    retryAfterS: seconds,
  });
}
