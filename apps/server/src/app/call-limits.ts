import type { ClientRequest } from '@toolhost/credentials/client-request';
import type { Processes } from '@toolhost/limits/call-limits';
import type { MemoryBudget, OnShed } from '@toolhost/limits/memory-budget';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import type { Config } from '../config.ts';
import { clientNetwork } from '../edge/client-address.ts';
import { createUnreadResponses } from '../edge/unread-responses.ts';
import { createUnverifiedCallers } from '../edge/unverified-callers.ts';
import { QuotaCounter } from '../gateway/limits/call-quotas.ts';
import { createCircuits } from '../gateway/limits/circuit-breakers.ts';
import { Limits } from '../gateway/limits/limits.ts';
import type { Log } from '../log.ts';
import { settleQuotas, takeFromQuotas } from '../store/workspaces.ts';
import type { Membership } from './membership.ts';
import { createOutageLog } from './observability/fault-log.ts';
import type { Store } from './open-store.ts';
import type { RuntimeOptions } from './runtime-options.ts';

export type CallLimitDeps = {
  config: Config;
  store: Store;
  membership: Membership;
  http: HttpClient;
  log: Log;
  memory: MemoryBudget;
  onGivenUp: OnShed;
};

/** Creates the limits between a call and its upstream, so that no workspace slows down another. */
export function createCallLimits(
  { config, store, membership, http, log, memory, onGivenUp: onShed }: CallLimitDeps,
  runtime: RuntimeOptions,
) {
  const { clock, queueMs, createLoopLag } = runtime;
  const lag = createLoopLag(clock);
  const quotas = new QuotaCounter({
    reserve: (requests) => takeFromQuotas(store.records, requests),
    settle: (uses) => settleQuotas(store.records, uses),
    processes: membership,
    now: store.time.now,
    ...createOutageLog(
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
    processes: membership,
    quotas,
  });
  const circuits = createCircuits(clock);
  return {
    limits,
    circuits,
    http: circuits.wrap(http),
    presentUse: {
      forServer: (id: string) => limits.getServerUsage(id),
      forWorkspace: (id: string) => limits.getWorkspaceUsage(id),
      getCircuit: circuits.getState,
    },
    addresses: createAddressLimits(config, runtime, membership, { memory, onShed }),
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
function createAddressLimits(
  { trustedProxies, refusalsPerMinute }: Config,
  { clock, runningClock, slowReaderMs }: RuntimeOptions,
  processes: Processes,
  memoryDeps: { memory: MemoryBudget; onShed: OnShed },
) {
  const getNetwork = (request: ClientRequest) => clientNetwork(request, trustedProxies);
  const unverifiedCallers = createUnverifiedCallers({ refusalsPerMinute, getNetwork: getNetwork, clock, processes });
  return {
    unverifiedCallers,
    networkOf: getNetwork,
    limitedByAddress: unverifiedCallers.getLimitedCount,
    memory: memoryDeps.memory,
    unreadResponses: createUnreadResponses({ getNetwork: getNetwork, slowReaderMs, ...memoryDeps }),
    clock,
    runningClock,
    processes,
  };
}
