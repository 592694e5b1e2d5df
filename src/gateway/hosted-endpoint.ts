import { isOpen } from '../domain/config/access.ts';
import { enabledTools } from '../domain/config/tool.ts';
import type { LoginHints, McpEndpoint, McpServer, ToolCall } from '../domain/mcp.ts';
import { searchInstructions } from '../domain/search/own-tools.ts';
import type { Party, Visit } from '../domain/visit.ts';
import { whenKnown } from '../domain/work/maybe-promise.ts';
import { type CallToolParts, callTool } from './call/call-tool.ts';
import type { Admitted, CallerOptions } from './callers/caller.ts';
import { resolveCaller } from './callers/resolve-caller.ts';
import { addressOf, type HostedServer } from './hosted/hosted-server.ts';
import { callWithReadMore } from './own-tools/read-more.ts';
import { callInSearchMode } from './own-tools/search-calls.ts';

export type HostedEndpointParts = CallToolParts & {
  callers: CallerOptions;
  /** The address is a slug, or `slug/view`. */
  resourceMetadataUrl: (address: string) => string;
};

/** A hosted server, or a view of one, as the MCP listener serves it. */
export function hostedEndpoint(server: HostedServer, parts: HostedEndpointParts): McpEndpoint {
  const { config } = server;
  const hints: LoginHints | undefined = config.oauth && {
    resourceMetadata: parts.resourceMetadataUrl(addressOf(server)),
    scopes: config.oauth.scopes,
  };
  const known: Party = { workspaceId: server.workspaceId };
  // Anybody can bring a token, and one person can log in many times: only an API key shows whose a caller is.
  const mayHaveKey = server.access === 'caller_token' && !config.authentication;
  const partyOf = (visit: Visit, callerOf: Admitted): Party =>
    server.access === 'api_key' || (mayHaveKey && callerOf().kind === 'api_key')
      ? known
      : { workspaceId: server.workspaceId, network: parts.callers.networkOf(visit) };
  const run = server.hasReadMore ? callWithReadMore : server.catalogue ? callInSearchMode : callTool;
  return {
    hints,
    admit(visit, look) {
      return whenKnown(resolveCaller(server, visit, parts.callers, look), (callerOf) =>
        mcpServer(server, (call) => run(server, callerOf(), call, parts), partyOf(visit, callerOf)),
      );
    },
    about: {
      name: config.name,
      description: config.description,
      access: isOpen(config, server.access) ? 'open' : server.access,
      tools: enabledTools(config).length,
    },
  };
}

function instructionsOf({ config, catalogue }: HostedServer): string | undefined {
  if (!catalogue) return config.description;
  return config.description === undefined ? searchInstructions : `${config.description}\n\n${searchInstructions}`;
}

/** A hosted server as the protocol core sees it. */
export function mcpServer(
  server: HostedServer,
  call: (call: ToolCall) => ReturnType<typeof callTool>,
  party: Party,
): McpServer {
  return {
    source: server,
    party,
    info: server.info,
    instructions: instructionsOf(server),
    tools: server.toolsJson,
    toolNames: server.toolNames,
    mirrored: server.mirrored,
    call,
  };
}
