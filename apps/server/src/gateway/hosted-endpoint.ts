import type { TenantKey } from '@toolhost/credentials/client-request';
import { Unauthenticated } from '@toolhost/errors/errors';
import type { McpEndpoint, McpServer } from '@toolhost/mcp-protocol/mcp';
import { isOpen } from '@toolhost/tool-config/server-wide';
import { getEnabledTools } from '@toolhost/tool-config/tool';
import type { CallToolDeps } from './call/call-tool.ts';
import type { Caller, CallerOptions } from './callers/caller.ts';
import { resolveCaller } from './callers/resolve-caller.ts';
import { getServerAddress, type HostedServer } from './hosted/hosted-server.ts';
import { getRunner } from './runner.ts';

export type HostedEndpointDeps = {
  callDeps: CallToolDeps;
  callers: CallerOptions;
  /** Returns the metadata URL of an address, which is a slug or `slug/view`. */
  buildMetadataUrl: (address: string) => string;
};

/** Creates the MCP endpoint of a hosted server, or of one of its views. Called once for each compiled server. */
export function createHostedEndpoint(server: HostedServer, deps: HostedEndpointDeps): McpEndpoint {
  const { config, access } = server;
  const toMcpServer = (caller: Caller) => {
    const servedServer = getServerOfPerson(server, caller);
    const runCall = getRunner(servedServer);
    // Logins and bearer tokens do not identify a tenant: anyone can bring a token, and one person can log in many
    // times. Only an API key identifies the caller.
    return createMcpServer(servedServer, (call) => runCall(servedServer, caller, call, deps.callDeps), {
      workspaceId: server.workspaceId,
      network: caller.network,
    });
  };
  return {
    loginHints: (config.oauth || config.login) && {
      resourceMetadata: deps.buildMetadataUrl(getServerAddress(server)),
      scopes: config.oauth?.scopes ?? [],
    },
    authorize(request, chargeQuery) {
      const caller = resolveCaller(server, request, deps.callers, chargeQuery);
      return caller instanceof Promise ? caller.then(toMcpServer) : toMcpServer(caller);
    },
    pageContent: {
      name: config.name,
      description: config.description,
      access: isOpen(config, access) ? 'open' : access,
      tools: getEnabledTools(config).length,
    },
  };
}

/**
 * Returns the server that a caller gets. Rules for people may give a person one view at every URL of the server.
 * @throws Unauthenticated if the server no longer has this view
 */
function getServerOfPerson(server: HostedServer, { person }: Caller): HostedServer {
  if (person?.view === undefined || person.view === server.view?.name) return server;
  const view = (server.view?.server ?? server).findView(person.view);
  if (view) return view;
  throw new Unauthenticated('invalid', 'the server no longer has the view of this login; log in again');
}

/** Presents a hosted server to the protocol layer. */
export function createMcpServer(server: HostedServer, call: McpServer['call'], tenantKey: TenantKey): McpServer {
  return {
    source: server.source,
    tenantKey,
    info: server.info,
    instructions: server.instructions,
    getToolsJson: server.getToolsJson,
    toolNames: server.toolNames,
    getMirroredArguments: server.getMirroredArguments,
    call,
  };
}
