import { getTenantId } from '@toolhost/credentials/ids';
import { requestContainsCredential } from '@toolhost/credentials/own-credentials';
import { createFairCache } from '@toolhost/limits/fair-cache';
import type { MemoryBudget } from '@toolhost/limits/memory-budget';
import { setRunningTimeout } from '@toolhost/limits/running-time';
import type { DecodeOnThread } from '@toolhost/safe-http/decode';
import { createHttpClient } from '@toolhost/safe-http/http-client';
import { createLookups } from '@toolhost/safe-http/lookups';
import { hopHeader } from '@toolhost/tool-config/http/headers';
import type { Secrets } from '../config.ts';
import type { Log } from '../log.ts';
import type { FullConfig } from './full-config.ts';
import type { Observability } from './observability/observability.ts';
import type { RuntimeOptions } from './runtime-options.ts';

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
