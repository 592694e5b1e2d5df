import { AppError } from '@toolhost/errors/errors';
import type { ContentBlock } from '@toolhost/mcp-protocol/mcp';
import { exampleSlug, exampleToken } from '@toolhost/server/command-line';
import { createConnectionError, parseJsonResponse } from '../connection/rest-client.ts';

type Fields = { [name: string]: unknown };
type ExampleTool = { name: string; inputSchema: { properties?: Fields } };
export type ExampleResult = { content: ContentBlock[]; isError?: boolean };

/** The example server of a local service, called over MCP with the token of its API. */
export type ExampleServer = {
  /** Returns the tools; undefined if the service has no example server. */
  listTools(): Promise<ExampleTool[] | undefined>;
  call(tool: string, args: Fields): Promise<ExampleResult>;
};

const timeoutMs = 30_000;

export function createExampleServer(serviceUrl: string): ExampleServer {
  const send = async (method: string, params: Fields) => {
    const response = await fetch(`${serviceUrl}/mcp/${exampleSlug}`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${exampleToken}`,
        Accept: 'application/json, text/event-stream',
        'Content-Type': 'application/json',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    }).catch((error: unknown) => {
      throw createConnectionError(serviceUrl, error);
    });
    const body = await parseJsonResponse(response, serviceUrl);
    return (body ?? {}) as { result?: unknown; error?: { message: string } };
  };
  return {
    async listTools() {
      const { result } = await send('tools/list', {});
      return (result as { tools: ExampleTool[] } | undefined)?.tools;
    },
    async call(name, args) {
      const { result, error } = await send('tools/call', { name, arguments: args });
      if (result === undefined) throw new AppError('invalid', error?.message ?? `${serviceUrl} returned no result`);
      return result as ExampleResult;
    },
  };
}
