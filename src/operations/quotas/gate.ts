import { Gate } from '../../domain/work/gate.ts';
import type { OnGivenUp } from '../../domain/work/memory-budget.ts';
import type { Operation } from '../operation.ts';

/** The gates of a process, by what an operation does. */
export type Gates = { [Kind in Operation['effect'] | 'model' | 'report' | 'transaction']: Gate };

/** How many operations of each kind run in a process. */
export const operationsAtOnce = { read: 24, write: 24, call: 200 };
/** Models that are asked at once. */
export const modelsAtOnce = { ofTenant: 4, ofAll: 40 };
/** A list is asked for again sooner than a change. */
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
    read: new Gate({ ...ofAll, rule: fewAtOnce('requests that read'), atOnce: operationsAtOnce.read }),
    // What waits for another change keeps nobody from reading.
    write: new Gate({ ...ofAll, rule: fewAtOnce('changes'), atOnce: operationsAtOnce.write }),
    // They mostly wait for an upstream, and the limits of calls hold for them as well.
    call: new Gate({ ...ofAll, rule: fewAtOnce('calls to try a tool or a login'), atOnce: operationsAtOnce.call }),
    model: new Gate({
      ...ofAll,
      rule: `models are asked ${modelsAtOnce.ofTenant} at a time in the workspaces that one person created, and one caller gets half of them`,
      atOnce: modelsAtOnce.ofAll,
      ofTenant: modelsAtOnce.ofTenant,
    }),
    report: new Gate({
      rule: fewAtOnce('lists, statistics and exports'),
      atOnce: reportsAtOnce,
      ...waitingReports,
      ...(reportShare && { share: reportShare }),
    }),
    // The database would do so too (`countWrite`), but a change that waits there holds a connection that others need.
    transaction: new Gate({
      rule: fewAtOnce('changes in the workspaces that one person created'),
      atOnce: Number.POSITIVE_INFINITY,
      ofTenant: 1,
    }),
  };
}

/** The rule of a gate, for refusals. */
export function fewAtOnce(what: string): string {
  return `${what} run a few at a time, and nobody gets more than half of what others leave`;
}
