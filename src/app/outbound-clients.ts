import type { Secrets } from '../config.ts';
import { requestContainsCredential } from '../domain/credentials/own-credentials.ts';
import { hopHeader } from '../domain/http/headers.ts';
import { getTenantId } from '../domain/ids.ts';
import type { MemoryBudget } from '../domain/work/memory-budget.ts';
import { createFairCache } from '../domain/work/owned-memory.ts';
import { setRunningTimeout } from '../domain/work/running-time.ts';
import type { Log } from '../log.ts';
import type { DecodeOnThread } from '../outbound/decode.ts';
import { createHttpClient } from '../outbound/http-client.ts';
import { createLookups } from '../outbound/lookups.ts';
import type { FullConfig } from './full-config.ts';
import type { Observability } from './observability/observability.ts';
import type { RuntimeOptions } from './surroundings.ts';

type OutboundDeps = {
  log: Log;
  observability: Observability;
  decodeOnThread: DecodeOnThread;
  memory: MemoryBudget;
};

/**
 * Creates two HTTP clients. The operator's exceptions to the address guard apply to workspaces, not to client
 * documents.
 */
export function createOutboundClients(
  { egressAllow }: FullConfig,
  { egressProxy: proxy }: Secrets,
  { resolve, dnsLimits, extraPublicAddresses }: RuntimeOptions,
  { log, observability, decodeOnThread, memory }: OutboundDeps,
) {
  const message = 'an upstream sent unsolicited bytes; its connections are not reused for ten minutes';
  const onUnsolicited = (workspaceId: string, origin: string) => log.warn({ workspaceId, origin }, message);
  const { getTenantResolver, getUnverifiedResolver } = createLookups(resolve, dnsLimits, setRunningTimeout);
  const options = {
    decodeOnThread,
    memory,
    createCache: createFairCache,
    getTenant: getTenantId,
    containsOwnCredential: requestContainsCredential,
    hopHeader,
    onBlocked: observability.onBlocked,
    onUnsolicited,
    proxy,
  };
  return {
    http: createHttpClient({ ...options, getResolver: (id) => getTenantResolver(getTenantId(id)), allow: egressAllow }),
    documents: createHttpClient({ ...options, getResolver: getUnverifiedResolver, allow: extraPublicAddresses }),
  };
}
