import { AppError } from '../../errors.ts';
import type { LaneOf } from './lane.ts';

/** Limits that refuse calls, as metrics name them. */
export const refusals = [
  'server_rate',
  'server_concurrency',
  'server_quota',
  'workspace_rate',
  'workspace_concurrency',
  'workspace_quota',
  'key_rate',
  'key_concurrency',
  'key_quota',
  'address_concurrency',
  'strangers_rate',
  'strangers_concurrency',
  'strangers_quota',
  'fair_share',
  'overload',
] as const;
export type RefusedBy = (typeof refusals)[number];

/** Why a call is refused: the process is too busy, or a limit of one of its lanes is reached. */
export type Refused =
  | { by: 'fair_share' | 'overload' }
  | { of: LaneOf; limit: number; waitMs: number; kind: 'rate' | 'concurrency' | 'minute' | 'day' };

export function refusedBy(refused: Refused): RefusedBy {
  if ('by' in refused) return refused.by;
  const { of, kind } = refused;
  if (of === 'address') return kind === 'concurrency' ? 'address_concurrency' : 'strangers_rate';
  return `${of}_${kind === 'minute' || kind === 'day' ? 'quota' : kind}`;
}

/** The subject of the sentence about a limit, and the ending of its verb. */
const subjects: Record<LaneOf, [subject: string, ending: '' | 's']> = {
  server: ['this server', 's'],
  workspace: ['the servers of this workspace together', ''],
  key: ['one credential', 's'],
  address: ['credentials that are not known to be good, sent from one address,', ''],
  strangers: ['credentials that are not known to be good, beside others that are in use,', ''],
};

/** An error that says to an agent which limit it was, that nothing happened, and what to do. */
export function refusal(refused: Refused, processes: number): AppError {
  const waitMs = 'by' in refused ? 1000 : refused.waitMs;
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const isUsedUp = 'kind' in refused && (refused.kind === 'minute' || refused.kind === 'day');
  const advice = 'by' in refused || isUsedUp ? '' : ', with fewer calls at a time';
  const message = `${reasonOf(refused, processes)}; this call was not made, try again in ${seconds} s${advice}`;
  return new AppError('by' in refused ? 'unavailable' : 'tooMany', message, { retryAfterS: seconds });
}

function reasonOf(refused: Refused, processes: number): string {
  if ('by' in refused) {
    return refused.by === 'overload'
      ? 'the service is overloaded for the moment'
      : 'the service is busy, and this workspace has its share of it under way';
  }
  const [subject, ending] = subjects[refused.of];
  // Quotas are counted for all processes together; each process has its share of the other limits.
  const each = processes > 1 ? ` in each of ${processes} processes` : '';
  const limit = `${Math.round(refused.limit * 100) / 100}`;
  switch (refused.kind) {
    case 'concurrency':
      return `too many calls at once: ${subject} run${ending} ${limit} at a time${each}`;
    case 'rate':
      return `too many calls: ${subject} take${ending} ${limit} a second${each}`;
    default:
      return `too many calls: ${subject} take${ending} ${limit} a ${refused.kind}, and they are used up`;
  }
}
