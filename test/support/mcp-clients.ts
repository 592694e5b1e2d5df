import assert from 'node:assert/strict';
import { join } from 'node:path';
import * as v2 from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { buildIsolatedEnvironment, formatTranscript, type RunOptions, runScript } from './toolhost/run-script.ts';
import type { Json, ToolCallResult } from './toolhost/toolhost.ts';

export interface McpClient {
  /** Revision that client and server negotiated. */
  revision(): Promise<string | undefined>;
  toolNames(): Promise<string[]>;
  callTool(name: string, args: Json): Promise<ToolCallResult>;
  close(): Promise<void>;
}

export interface McpAccess {
  url: string;
  token: string;
  /** Folder for the client's files. */
  home: string;
}

export interface McpClientKind {
  name: string;
  /** Revision that it must negotiate with this service. */
  revision: string;
  /** Matches its message when its credential is refused. */
  refusalPattern: RegExp;
  connect(access: McpAccess): Promise<McpClient>;
}

const nodeModules = join(import.meta.dirname, '../../node_modules');
const inspectorScript = join(nodeModules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js');
const mcpRemoteScript = join(nodeModules, 'mcp-remote/dist/proxy.js');
export const clientInfo = { name: 'toolhost-test', version: '1' };

function bearerHeaders(token: string): { headers: Record<string, string> } {
  return { headers: { Authorization: `Bearer ${token}` } };
}

export async function connectSdk1(transport: Transport, revision: () => string | undefined): Promise<McpClient> {
  const client = new Client(clientInfo);
  try {
    await client.connect(transport);
  } catch (error) {
    // A bridge process keeps running after a failed connection.
    await transport.close();
    throw error;
  }
  return { revision: async () => revision(), ...toMethods(client) };
}

/** Returns the methods that both versions of the SDK have. */
function toMethods(client: Client | v2.Client): Omit<McpClient, 'revision'> {
  return {
    toolNames: async () => (await client.listTools()).tools.map((tool) => tool.name),
    callTool: async (name, args) => (await client.callTool({ name, arguments: args })) as ToolCallResult,
    close: () => client.close(),
  };
}

const sdk1: McpClientKind = {
  name: 'SDK v1',
  revision: '2025-11-25',
  refusalPattern: /401/,
  connect: ({ url, token }) => {
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: bearerHeaders(token) });
    // The SDK's own types are not compatible with each other under exactOptionalPropertyTypes.
    return connectSdk1(transport as Transport, () => transport.protocolVersion);
  },
};

const mcpRemote: McpClientKind = {
  name: 'mcp-remote',
  revision: '2025-11-25',
  // It looks for a login, finds none, and exits.
  refusalPattern: /Connection closed/,
  connect: ({ url, token, home }) => {
    const transport = createMcpRemoteTransport(url, home, ['--header', `Authorization: Bearer ${token}`], 'ignore');
    return connectSdk1(transport, () => transport.revision);
  },
};

/** Starts mcp-remote as a child process of an SDK v1 client, which speaks stdio to it. */
export function createMcpRemoteTransport(
  url: string,
  home: string,
  flags: readonly string[],
  stderr: 'ignore' | 'pipe',
) {
  const transport: StdioClientTransport & Transport & { revision?: string } = new StdioClientTransport({
    command: process.execPath,
    cwd: home,
    args: [mcpRemoteScript, url, ...flags, '--allow-http', '--transport', 'http-only'],
    env: { ...buildIsolatedEnvironment(home), MCP_REMOTE_CONFIG_DIR: home },
    stderr,
  });
  transport.setProtocolVersion = (version: string) => {
    transport.revision = version;
  };
  return transport;
}

export function sdk2Client(client: v2.Client): McpClient {
  return { revision: async () => client.getNegotiatedProtocolVersion(), ...toMethods(client) };
}

function sdk2(name: string, mode: v2.VersionNegotiationMode, revision: string): McpClientKind {
  return {
    name: `SDK v2, ${name}`,
    revision,
    refusalPattern: /401/,
    async connect({ url, token }) {
      const client = new v2.Client(clientInfo, { versionNegotiation: { mode } });
      await client.connect(new v2.StreamableHTTPClientTransport(new URL(url), { requestInit: bearerHeaders(token) }));
      return sdk2Client(client);
    },
  };
}

export type InspectorEra = 'legacy' | 'auto' | 'modern';

/** Exit code when the tool's result is an error. The result is printed anyway. */
const toolErrorExitCode = 5;

/** Runs the Inspector for one method and returns the result. */
export async function inspect(
  era: InspectorEra,
  { url, home }: Omit<McpAccess, 'token'>,
  extraFlags: readonly string[],
  options: RunOptions = {},
): Promise<Json> {
  const flags = ['--cli', '--transport', 'http', '--server-url', url, '--protocol-era', era, '--format', 'json', '-q'];
  const inspectorRun = await runScript(inspectorScript, [...flags, ...extraFlags], home, options);
  assert.ok(inspectorRun.code === 0 || inspectorRun.code === toolErrorExitCode, formatTranscript(inspectorRun));
  const { result } = JSON.parse(inspectorRun.stdout) as { result: Json };
  assert.equal(result.isError === true, inspectorRun.code === toolErrorExitCode, formatTranscript(inspectorRun));
  return result;
}

/** Runs every method as a separate process with a new connection. */
export function inspectorClient(invoke: (method: string, ...more: string[]) => Promise<Json>): McpClient {
  return {
    revision: async () => (await invoke('initialize')).protocolVersion as string,
    toolNames: async () => ((await invoke('tools/list')).tools as { name: string }[]).map((tool) => tool.name),
    callTool: async (name, args) =>
      (await invoke('tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args))) as ToolCallResult,
    close: async () => undefined,
  };
}

function inspector(era: InspectorEra, revision: string): McpClientKind {
  return {
    name: `Inspector, ${era}`,
    revision,
    refusalPattern: /^exit 3.*auth_required/s,
    async connect({ token, ...target }) {
      const access = ['--stored-auth-only', '--header', `Authorization: Bearer ${token}`];
      return inspectorClient((method, ...more) => inspect(era, target, [...access, '--method', method, ...more]));
    },
  };
}

export const mcpClients: readonly McpClientKind[] = [
  sdk1,
  sdk2('legacy', 'legacy', '2025-11-25'),
  sdk2('auto', 'auto', '2026-07-28'),
  sdk2('2026-07-28', { pin: '2026-07-28' }, '2026-07-28'),
  mcpRemote,
  inspector('legacy', '2025-11-25'),
  inspector('auto', '2026-07-28'),
  inspector('modern', '2026-07-28'),
];
