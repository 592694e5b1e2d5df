import { Gate } from '../../domain/work/gate.ts';
import type { OnGivenUp } from '../../domain/work/memory-budget.ts';
import type { Operation } from '../operation.ts';

/** Concurrency limiters of a process, by kind of work. */
export type Gates = { [Kind in Operation['effect'] | 'model' | 'report' | 'transaction']: Gate };

/** Maximum number of concurrent operations of each kind in a process. */
export const operationsAtOnce = { read: 24, write: 24, call: 200 };
/** Maximum number of concurrent model requests. */
export const modelsAtOnce = { ofTenant: 4, ofAll: 40 };
/** Limits for queued reports. Clients retry a list sooner than a change, so reports wait only briefly. */
export const waitingReports = { waiting: 32, patienceMs: 5000 };

type GatesOptions = {
  reportsAtOnce?: number;
  reportShare?: () => number;
  waitingBytes?: number;
  onGivenUp?: OnGivenUp;
};

export function createGates({ reportsAtOnce = 1, reportShare, waitingBytes, onGivenUp }: GatesOptions = {}): Gates {
  const ofAll = { ...(waitingBytes && { waitingBytes }), onRefused: () => onGivenUp?.('operation') };
  return {
    read: new Gate({ ...ofAll, rule: fewAtOnce('read requests'), atOnce: operationsAtOnce.read }),
    // Changes have their own limiter, so that queued changes do not block reads.
    write: new Gate({ ...ofAll, rule: fewAtOnce('changes'), atOnce: operationsAtOnce.write }),
    // Trial calls mostly wait for an upstream, and the call limits apply to them as well.
    call: new Gate({ ...ofAll, rule: fewAtOnce('trial calls and trial logins'), atOnce: operationsAtOnce.call }),
    model: new Gate({
      ...ofAll,
      rule: `at most ${modelsAtOnce.ofTenant} model requests run concurrently in the workspaces that one person created, and one caller may use half of them`,
      atOnce: modelsAtOnce.ofAll,
      ofTenant: modelsAtOnce.ofTenant,
    }),
    report: new Gate({
      rule: fewAtOnce('lists, statistics, and exports'),
      atOnce: reportsAtOnce,
      ...waitingReports,
      ...(reportShare && { share: reportShare }),
    }),
    // The database would queue them too (`countWrite`), but a change that waits there holds a connection that others
    // need.
    transaction: new Gate({
      rule: fewAtOnce('changes in the workspaces that one person created'),
      atOnce: Number.POSITIVE_INFINITY,
      ofTenant: 1,
    }),
  };
}

/** Returns the rule of a limiter, for refusals. */
export function fewAtOnce(what: string): string {
  return `the number of concurrent ${what} is limited, and one caller may use at most half of the free capacity`;
}
