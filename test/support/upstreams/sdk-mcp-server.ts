import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { listenLocally } from './local-server.ts';

export type SdkMcpServer = {
  readonly address: string;
  /** Returns the number of open sessions. */
  sessions(): number;
  close(): Promise<void>;
};

/**
 * Starts an MCP server of the official SDK, with sessions. It responds with event streams, and a GET opens a stream
 * that stays open and silent.
 */
export async function startSdkMcpServer(): Promise<SdkMcpServer> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const server = createServer((request, response) => void serve(request, response, sessions));
  const { url, close } = await listenLocally(server);
  return {
    address: `${url}/mcp`,
    sessions: () => sessions.size,
    close,
  };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  sessions: Map<string, StreamableHTTPServerTransport>,
): Promise<void> {
  const id = String(request.headers['mcp-session-id'] ?? '');
  const transport = sessions.get(id) ?? (await openSession(sessions));
  await transport.handleRequest(request, response);
}

async function openSession(
  sessions: Map<string, StreamableHTTPServerTransport>,
): Promise<StreamableHTTPServerTransport> {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: (id) => void sessions.delete(id),
  });
  const server = new McpServer({ name: 'sdk', version: '1' });
  const annotations = { readOnlyHint: true, destructiveHint: false, openWorldHint: false };
  server.registerTool('greet', { description: 'Says hello.', annotations }, () => ({
    content: [{ type: 'text', text: 'hello' }],
  }));
  await server.connect(transport);
  return transport;
}
