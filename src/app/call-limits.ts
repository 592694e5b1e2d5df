import type { Config } from '../config.ts';
import type { Processes } from '../domain/limits.ts';
import type { Visit } from '../domain/visit.ts';
import type { MemoryBudget, OnGivenUp } from '../domain/work/memory-budget.ts';
import { clientNetwork } from '../edge/client-address.ts';
import { createStrangers } from '../edge/strangers.ts';
import { createUnreadAnswers } from '../edge/unread-answers.ts';
import { QuotaCounter } from '../gateway/limits/call-quotas.ts';
import { createCircuits } from '../gateway/limits/circuits.ts';
import { Limits } from '../gateway/limits/limits.ts';
import type { Log } from '../log.ts';
import type { HttpClient } from '../outbound/http-client.ts';
import { settleQuotas, takeOfQuotas } from '../store/workspaces.ts';
import { outageLog } from './observability/fault-log.ts';
import type { Store } from './open-store.ts';
import type { Presence } from './presence.ts';
import type { Surroundings } from './surroundings.ts';

export type LimitedParts = {
  config: Config;
  store: Store;
  presence: Presence;
  http: HttpClient;
  log: Log;
  memory: MemoryBudget;
  onGivenUp: OnGivenUp;
};

/** Creates the limits between a call and its upstream, so that no workspace slows down another. */
export function limitCalls(
  { config, store, presence, http, log, memory, onGivenUp }: LimitedParts,
  surroundings: Surroundings,
) {
  const { clock, queueMs, createLoopLag } = surroundings;
  const lag = createLoopLag(clock);
  const quotas = new QuotaCounter({
    take: (wishes) => takeOfQuotas(store.records, wishes),
    settle: (uses) => settleQuotas(store.records, uses),
    processes: presence,
    now: store.time.now,
    ...outageLog(
      log,
      'call quotas cannot be shared between processes; each process uses its own share',
      'call quotas are shared between processes again',
    ),
  });
  const limits = new Limits({
    concurrentPerKey: config.concurrentCallsPerKey,
    clock,
    queueMs,
    lag,
    processes: presence,
    quotas,
  });
  const circuits = createCircuits(clock);
  return {
    limits,
    circuits,
    http: circuits.around(http),
    presentUse: {
      ofServer: (id: string) => limits.serverUse(id),
      ofWorkspace: (id: string) => limits.workspaceUse(id),
      circuitOf: circuits.stateOf,
    },
    addresses: addressesOf(config, surroundings, presence, { memory, onGivenUp }),
    /** Work during startup is not overload, so measuring starts after it. */
    measureLag: lag.start,
    async stop() {
      lag.stop();
      await quotas.stop();
    },
  };
}

/**
 * Creates the per-address limits: networks of requests, the limits of addresses whose requests are rejected
 * repeatedly, and the limit of unread responses, which anyone may cause.
 */
function addressesOf(
  { trustedProxies, refusalsPerMinute }: Config,
  { clock, runningClock, slowReaderMs }: Surroundings,
  processes: Processes,
  held: { memory: MemoryBudget; onGivenUp: OnGivenUp },
) {
  const ofVisit = (visit: Visit) => clientNetwork(visit, trustedProxies);
  const strangers = createStrangers({ refusalsPerMinute, networkOf: ofVisit, clock, processes });
  return {
    strangers,
    networkOf: ofVisit,
    limitedByAddress: strangers.limited,
    memory: held.memory,
    unread: createUnreadAnswers({ networkOf: ofVisit, slowReaderMs, ...held }),
    clock,
    runningClock,
    processes,
  };
}
