import type { ClientRequest } from '@toolhost/credentials/client-request';
import { getClientNetwork } from '../edge/client-address.ts';
import { createUnreadResponses } from '../edge/unread-responses.ts';
import { createUnverifiedCallers } from '../edge/unverified-callers.ts';
import { QuotaCounter } from '../gateway/limits/call-quotas.ts';
import { CircuitBreakers } from '../gateway/limits/circuit-breakers.ts';
import { Limits } from '../gateway/limits/limits.ts';
import { settleQuotas, takeFromQuotas } from '../store/workspaces.ts';
import type { Foundation } from './foundation.ts';
import { createOutageLog } from './observability/fault-log.ts';

/** Creates the limits between a call and its upstream, so that no workspace slows down another. */
export function createCallLimiters(foundation: Foundation) {
  const { config, store, membership, log } = foundation;
  const { clock, queueMs, createLoopLag } = foundation.runtime;
  const lag = createLoopLag(clock);
  const outageLog = createOutageLog(
    log,
    'call quotas cannot be shared between processes; each process uses its own share',
    'call quotas are shared between processes again',
  );
  const quotas = new QuotaCounter({
    reserve: (requests) => takeFromQuotas(store.records, requests),
    settle: (uses) => settleQuotas(store.records, uses),
    processes: membership,
    now: store.time.now,
    onError: outageLog.onError,
    onSuccess: outageLog.onSuccess,
  });
  const limits = new Limits({
    concurrentPerKey: config.concurrentCallsPerKey,
    clock,
    queueMs,
    lag,
    processes: membership,
    quotas,
  });
  const circuits = new CircuitBreakers(clock);
  return {
    limits,
    circuits,
    currentUsage: {
      getServerUsage: (id: string) => limits.getServerUsage(id),
      getWorkspaceUsage: (id: string) => limits.getWorkspaceUsage(id),
      getCircuit: (workspaceId: string, origin: string) => circuits.getState(workspaceId, origin),
    },
    addresses: createAddressLimiters(foundation),
    /** Work during startup is not overload, so measuring starts after it. */
    measureLag: lag.start,
    async stop() {
      lag.stop();
      await quotas.stop();
    },
  };
}

/**
 * Creates the limits by address: for addresses whose requests are rejected repeatedly, and for unread responses, which
 * anyone may cause.
 */
function createAddressLimiters({ config, runtime, membership, memory, observability }: Foundation) {
  const { trustedProxies, refusalsPerMinute } = config;
  const { clock, slowReaderMs } = runtime;
  const getNetwork = (request: ClientRequest) => getClientNetwork(request, trustedProxies);
  return {
    getNetwork,
    unverifiedCallers: createUnverifiedCallers({ refusalsPerMinute, getNetwork, clock, processes: membership }),
    unreadResponses: createUnreadResponses({ getNetwork, slowReaderMs, memory, onShed: observability.onShed }),
  };
}

export type CallLimiters = ReturnType<typeof createCallLimiters>;
