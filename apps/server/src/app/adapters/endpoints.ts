import type { QueryCharge } from '@toolhost/credentials/client-request';
import { createLazyLoader, type MaybePromise } from '@toolhost/errors/yield-to-event-loop';
import type { McpEndpoint } from '@toolhost/mcp-protocol/mcp';
import type { CallToolDeps } from '../../gateway/call/call-tool.ts';
import type { CallerOptions } from '../../gateway/callers/caller.ts';
import { getServerOrView, type HostedServer } from '../../gateway/hosted/hosted-server.ts';
import { createHostedEndpoint } from '../../gateway/hosted-endpoint.ts';
import type { ServingRunner } from '../../operations/run-operation.ts';
import { buildUrl, routes, splitAddress } from '../../routes.ts';
import { version } from '../../version.ts';
import type { Caches } from '../caches.ts';
import type { FullConfig } from '../full-config.ts';
import type { Logins } from '../logins.ts';
import { createManagerCredentials } from './callers.ts';

/** Returns a function that creates the endpoint of a hosted server, once per compiled server. */
export function createGetEndpoint(config: FullConfig, callers: CallerOptions, callDeps: CallToolDeps) {
  const buildMetadataUrl = (address: string) => buildUrl(config.baseUrl, routes.resourceMetadata, address);
  const endpointDeps = { callDeps, callers, buildMetadataUrl };
  const endpointsByServer = new WeakMap<HostedServer, McpEndpoint>();
  return (server: HostedServer): McpEndpoint => {
    const endpoint = endpointsByServer.get(server) ?? createHostedEndpoint(server, endpointDeps);
    endpointsByServer.set(server, endpoint);
    return endpoint;
  };
}

/**
 * Returns a function that finds the endpoint of an address: a hosted server, a view of one, or the management server.
 */
export function createFindEndpoint(
  { config, caches, logins, runner }: { config: FullConfig; caches: Caches; logins: Logins; runner: ServingRunner },
  getEndpoint: (server: HostedServer) => McpEndpoint,
) {
  const credentials = createManagerCredentials(caches, logins);
  const hints = {
    resourceMetadata: buildUrl(config.baseUrl, routes.resourceMetadata, config.managementSlug),
    scopes: logins.managementLogin.scopes,
  };
  const management = createLazyLoader(async () => {
    const { loadOperations } = await import('../../operations/load-operations.ts');
    await loadOperations();
    const { createManagementServer } = await import('../../manage/management-server.ts');
    return createManagementServer(runner, version, credentials, hints);
  });
  return (address: string, chargeQuery: QueryCharge): MaybePromise<McpEndpoint | undefined> => {
    if (address === config.managementSlug) return management();
    const { slug, view } = splitAddress(address);
    const serverOrPromise = caches.servers.find(slug, chargeQuery);
    if (!(serverOrPromise instanceof Promise)) {
      const server = view === undefined ? serverOrPromise : serverOrPromise?.findView(view);
      return server && getEndpoint(server);
    }
    return serverOrPromise.then((loadedServer) => {
      const server = getServerOrView(loadedServer, view);
      return server && getEndpoint(server);
    });
  };
}
