import { isOpen } from '../domain/config/server-wide.ts';
import { enabledTools } from '../domain/config/tool.ts';
import type { McpEndpoint, McpServer } from '../domain/mcp.ts';
import type { Party } from '../domain/visit.ts';
import type { CallToolParts } from './call/call-tool.ts';
import type { Caller, CallerOptions } from './callers/caller.ts';
import { resolveCaller } from './callers/resolve-caller.ts';
import { addressOf, type HostedServer } from './hosted/hosted-server.ts';
import { runnerOf } from './own-tools/read-more.ts';

export type HostedEndpointParts = CallToolParts & {
  callers: CallerOptions;
  /** Returns the metadata URL of an address, which is a slug or `slug/view`. */
  resourceMetadataUrl: (address: string) => string;
};

/** Creates the MCP endpoint of a hosted server, or of one of its views. Called once for each compiled server. */
export function hostedEndpoint(server: HostedServer, parts: HostedEndpointParts): McpEndpoint {
  const { config, access } = server;
  const run = runnerOf(server);
  const servedTo = (caller: Caller) =>
    // Logins and bearer tokens do not identify a tenant: anyone can bring a token, and one person can log in many
    // times. Only an API key identifies the caller.
    mcpServer(server, (call) => run(server, caller, call, parts), {
      workspaceId: server.workspaceId,
      network: caller.network,
    });
  return {
    hints: config.oauth && {
      resourceMetadata: parts.resourceMetadataUrl(addressOf(server)),
      scopes: config.oauth.scopes,
    },
    admit(visit, look) {
      const caller = resolveCaller(server, visit, parts.callers, look);
      return caller instanceof Promise ? caller.then(servedTo) : servedTo(caller);
    },
    about: {
      name: config.name,
      description: config.description,
      access: isOpen(config, access) ? 'open' : access,
      tools: enabledTools(config).length,
    },
  };
}

/** Presents a hosted server to the protocol layer. */
export function mcpServer(server: HostedServer, call: McpServer['call'], party: Party): McpServer {
  return {
    source: server.source,
    party,
    info: server.info,
    instructions: server.instructions,
    tools: server.toolsJson,
    toolNames: server.toolNames,
    mirrored: server.mirrored,
    call,
  };
}
