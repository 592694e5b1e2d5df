import { parseJson } from '../domain/json.ts';
import type { ToolResult } from '../domain/mcp.ts';
import type { Arguments, UpstreamRequest } from '../domain/request-template.ts';
import { mask } from '../domain/server-config.ts';
import { AppError, ToolFailure } from '../errors.ts';
import { type CallToolParts, callTool, previewCall } from './call-tool.ts';
import { storedToken } from './caller.ts';
import type { HostedServer } from './hosted-server.ts';
import type { HostedServers } from './hosted-servers.ts';

export type TryOutCall = { slug: string; tool: string; args: Arguments; token: string | undefined; requestId: string };

/** Trying a tool out from the outside of a call: for the operations, which have checked who asks. */
export function createTryOut(servers: HostedServers, parts: CallToolParts) {
  async function find(slug: string, tool: string) {
    const server = await servers.find(slug);
    const found = server?.tool(tool);
    if (!server || !found) throw new AppError('notFound', `the server has no tool ${JSON.stringify(tool)}`);
    return { server, tool: found };
  }
  return {
    async callTool(call: TryOutCall) {
      const { server } = await find(call.slug, call.tool);
      const result = await callTool(
        server,
        { kind: 'api_key', keyId: undefined, token: (origin) => tokenFor(server, call.token, origin) },
        {
          name: call.tool,
          args: call.args,
          era: 'legacy',
          traceparent: undefined,
          tracestate: undefined,
          requestId: call.requestId,
          bytesIn: 0,
          cancellation: {},
        },
        parts,
      );
      return shown(result);
    },
    async previewCall(slug: string, tool: string, args: Arguments): Promise<UpstreamRequest> {
      const found = await find(slug, tool);
      try {
        return previewCall(found.tool, args, mask);
      } catch (error) {
        if (error instanceof ToolFailure) throw new AppError('invalid', error.message);
        throw error;
      }
    },
  };
}

/** The stored credential, or the one that was given for a server that forwards its caller's. */
function tokenFor(server: HostedServer, given: string | undefined, origin: string): string | undefined {
  if (server.access === 'api_key') return storedToken(server, origin);
  if (given === undefined && server.config.authentication) {
    throw new AppError('invalid', 'token: this server forwards the token of its caller; give one to try it with', {
      problems: [{ path: 'token', message: 'this server forwards the token of its caller; give one to try it with' }],
    });
  }
  return given;
}

function shown(result: ToolResult): { is_error: boolean; content: unknown; structured_content?: unknown } {
  return {
    is_error: result.isError,
    content: JSON.parse(result.content),
    ...(result.structured !== undefined && { structured_content: parseJson(result.structured) }),
  };
}
