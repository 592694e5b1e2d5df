import { hopHeader } from '../domain/http/headers.ts';
import type { Log } from '../log.ts';
import { createHttpClient } from '../outbound/http-client.ts';
import type { FullConfig } from './full-config.ts';
import type { Observability } from './observability/observability.ts';
import type { Surroundings } from './surroundings.ts';

/** The operator's exceptions to the address guard are for workspaces, not for whoever registers a client. */
export function outboundClients(
  { egressAllow }: FullConfig,
  surroundings: Surroundings,
  observability: Observability,
  log: Log,
) {
  const { resolve, publicAddresses } = surroundings;
  const said = 'an upstream sent bytes that no request asked for; its connections are not used twice for ten minutes';
  const onUnasked = (workspaceId: string, origin: string) => log.warn({ workspaceId, origin }, said);
  const options = { resolve, hopHeader, onBlocked: observability.onBlocked, onUnasked };
  return {
    http: createHttpClient({ ...options, allow: egressAllow }),
    documents: createHttpClient({ ...options, allow: publicAddresses }),
  };
}
