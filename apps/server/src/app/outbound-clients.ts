import { getTenantId } from '@toolhost/credentials/ids';
import { createFairCache } from '@toolhost/limits/fair-cache';
import { setRunningTimeout } from '@toolhost/limits/running-time';
import { HttpClient } from '@toolhost/safe-http/http-client';
import { createLookups } from '@toolhost/safe-http/lookups';
import { hopHeader } from '@toolhost/tool-config/http/headers';
import { createDecodeOnThread } from './adapters/threads.ts';
import type { Foundation } from './foundation.ts';

type OutboundDeps = Pick<Foundation, 'config' | 'secrets' | 'runtime' | 'log' | 'observability' | 'memory' | 'threads'>;

/** Number of bytes of a malformed response that are logged. */
const maxLoggedBytes = 256;

/** Creates two HTTP clients, because the operator's exceptions to the address guard exclude client documents. */
export function createOutboundClients({ config, secrets, runtime, log, observability, memory, threads }: OutboundDeps) {
  const message = 'an upstream sent unsolicited bytes; its connections are not reused for ten minutes';
  const onUnsolicited = (workspaceId: string, origin: string) => log.warn({ workspaceId, origin }, message);
  const onMalformed = (workspaceId: string, origin: string, bytes: Buffer) =>
    log.debug({ workspaceId, origin, bytes: bytes.toString('latin1', 0, maxLoggedBytes) }, 'a response is not HTTP/1');
  const { getTenantResolver, getUnverifiedResolver } = createLookups(
    runtime.resolve,
    runtime.dnsLimits,
    setRunningTimeout,
  );
  const options = {
    decodeOnThread: createDecodeOnThread(threads),
    memory,
    createCache: createFairCache,
    getTenant: getTenantId,
    hopHeader,
    onBlocked: observability.onBlocked,
    onUnsolicited,
    onMalformed,
    proxy: secrets.egressProxy,
  };
  return {
    http: new HttpClient({
      ...options,
      getResolver: (id) => getTenantResolver(getTenantId(id)),
      allow: config.egressAllow,
    }),
    documents: new HttpClient({
      ...options,
      getResolver: getUnverifiedResolver,
      allow: runtime.extraPublicAddresses,
    }),
  };
}
