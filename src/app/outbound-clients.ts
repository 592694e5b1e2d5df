import type { Secrets } from '../config.ts';
import { requestHoldsCredential } from '../domain/credentials/own-credentials.ts';
import { hopHeader } from '../domain/http/headers.ts';
import { tenantOf } from '../domain/ids.ts';
import type { MemoryBudget } from '../domain/work/memory-budget.ts';
import { createOwnedMemory } from '../domain/work/owned-memory.ts';
import { afterRunning } from '../domain/work/running-time.ts';
import type { Log } from '../log.ts';
import type { DecodeOnThread } from '../outbound/decode.ts';
import { createHttpClient } from '../outbound/http-client.ts';
import { createLookups } from '../outbound/lookups.ts';
import type { FullConfig } from './full-config.ts';
import type { Observability } from './observability/observability.ts';
import type { Surroundings } from './surroundings.ts';

type ClientParts = {
  log: Log;
  observability: Observability;
  decodeOnThread: DecodeOnThread;
  memory: MemoryBudget;
};

/**
 * Creates two HTTP clients. The operator's exceptions to the address guard apply to workspaces, not to client
 * documents.
 */
export function outboundClients(
  { egressAllow }: FullConfig,
  { egressProxy: proxy }: Secrets,
  { resolve, lookups, publicAddresses }: Surroundings,
  { log, observability, decodeOnThread, memory }: ClientParts,
) {
  const message = 'an upstream sent unsolicited bytes; its connections are not reused for ten minutes';
  const onUnasked = (workspaceId: string, origin: string) => log.warn({ workspaceId, origin }, message);
  const { ofTenant, ofStranger } = createLookups(resolve, lookups, afterRunning);
  const options = {
    decodeOnThread,
    memory,
    createMemory: createOwnedMemory,
    tenantOf,
    isWithheld: requestHoldsCredential,
    hopHeader,
    onBlocked: observability.onBlocked,
    onUnasked,
    proxy,
  };
  return {
    http: createHttpClient({ ...options, lookupsOf: (id) => ofTenant(tenantOf(id)), allow: egressAllow }),
    documents: createHttpClient({ ...options, lookupsOf: ofStranger, allow: publicAddresses }),
  };
}
