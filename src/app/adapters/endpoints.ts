import type { McpEndpoint } from '../../domain/mcp.ts';
import type { Lookup } from '../../domain/visit.ts';
import { loadedOnce, type MaybePromise } from '../../domain/work/next-turn.ts';
import type { CallToolParts } from '../../gateway/call/call-tool.ts';
import type { CallerOptions } from '../../gateway/callers/caller.ts';
import { type HostedServer, serverOrView } from '../../gateway/hosted/hosted-server.ts';
import { hostedEndpoint } from '../../gateway/hosted-endpoint.ts';
import type { ServingRunner } from '../../operations/run-operation.ts';
import { partsOfAddress, routes, urlOf } from '../../routes.ts';
import { version } from '../../version.ts';
import type { Caches } from '../caches.ts';
import type { FullConfig } from '../full-config.ts';
import type { Logins } from '../logins.ts';
import { managerCredentials } from './callers.ts';

/** Returns a function that creates the endpoint of a hosted server, once per compiled server. */
export function hosting(config: FullConfig, callers: CallerOptions, callParts: CallToolParts) {
  const resourceMetadataUrl = (address: string) => urlOf(config.baseUrl, routes.resourceMetadata, address);
  const parts = { ...callParts, callers, resourceMetadataUrl };
  const made = new WeakMap<HostedServer, McpEndpoint>();
  return (server: HostedServer): McpEndpoint => {
    const endpoint = made.get(server) ?? hostedEndpoint(server, parts);
    made.set(server, endpoint);
    return endpoint;
  };
}

/**
 * Returns a function that finds the endpoint of an address: a hosted server, a view of one, or the management server.
 */
export function endpoints(
  { config, caches, logins, runner }: { config: FullConfig; caches: Caches; logins: Logins; runner: ServingRunner },
  endpointOf: (server: HostedServer) => McpEndpoint,
) {
  const credentials = managerCredentials(caches, logins);
  const hints = {
    resourceMetadata: urlOf(config.baseUrl, routes.resourceMetadata, config.managementSlug),
    scopes: logins.managementLogin.scopes,
  };
  const management = loadedOnce(async () => {
    const { loadOperations } = await import('../../operations/load-operations.ts');
    await loadOperations();
    const { createManagementServer } = await import('../../manage/management-server.ts');
    return createManagementServer(runner, version, credentials, hints);
  });
  return (address: string, look: Lookup): MaybePromise<McpEndpoint | undefined> => {
    if (address === config.managementSlug) return management();
    const { slug, view } = partsOfAddress(address);
    const found = caches.servers.find(slug, look);
    if (!(found instanceof Promise)) {
      const server = view === undefined ? found : found?.findView(view);
      return server && endpointOf(server);
    }
    return found.then((read) => {
      const server = serverOrView(read, view);
      return server && endpointOf(server);
    });
  };
}
