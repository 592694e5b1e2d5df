import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KeyScope } from '@toolhost/credentials/credential';
import { operations } from '@toolhost/server/operations';
import type { RuntimeOptions } from '../../../apps/server/src/app/runtime-options.ts';
import { localWorkspace } from '../../../apps/server/src/config.ts';
import { runOperation } from '../../../apps/server/src/operations/run-operation.ts';
import { defaultRuntimeOptions, type RunningService, start } from '../../../apps/server/src/process/start.ts';
import { insertWorkspace } from '../../../apps/server/src/store/workspaces.ts';
import { generousLimits, withConnectTimeout } from '../store/generous-limits.ts';
import { readReply } from './read-reply.ts';

export type Json = { [key: string]: unknown };

/** HTTP response. `body` is parsed if it is JSON. */
export type Reply<Body = Json> = { status: number; headers: Headers; text: string; body: Body };

export type ToolCallResult = {
  content: { type: string; text?: string; [field: string]: unknown }[];
  structuredContent?: unknown;
  isError?: boolean;
};

type SendRpc = (
  slug: string,
  token: string | undefined,
  method: string,
  params?: Json,
  headers?: Record<string, string>,
) => Promise<Reply>;

/** The real service in this process, driven through its public interfaces. */
export type TestToolhost = {
  url: string;
  running: RunningService;
  dataDir: string;
  /**
   * Creates an API key, in another workspace if one is named. That workspace is created if it does not exist. The
   * servers that the key is limited to need not exist, as with a key whose servers were deleted.
   */
  createKey(options?: {
    scopes?: KeyScope[];
    workspace?: string;
    servers?: string[];
    expiresAt?: string;
  }): Promise<string>;
  rest(
    method: string,
    path: string,
    options?: { key?: string; body?: unknown; headers?: Record<string, string> },
  ): Promise<Reply>;
  /** POSTs any body to an MCP endpoint. */
  post(slug: string, body: unknown, options?: { token?: string; headers?: Record<string, string> }): Promise<Reply>;
  /** Sends a stateful JSON-RPC request. */
  rpc: SendRpc;
  /** Sends a request of revision 2026-07-28 with the metadata and headers that it requires. */
  statelessRpc: SendRpc;
  /** Returns the result of a `tools/call`. Throws if the response is an error. */
  callTool(slug: string, token: string | undefined, name: string, args?: Json): Promise<ToolCallResult>;
  /** Creates a server with the management key of the local workspace. Throws if the service refuses it. */
  createServer(config: Json): Promise<Reply>;
  stop(): Promise<void>;
};

export type StartOptions = {
  env?: Record<string, string>;
  /** Ports on 127.0.0.1 that tools may call. */
  egressPorts?: readonly number[];
  runtimeOptions?: Partial<RuntimeOptions>;
  dataDir?: string;
};

export const statelessMeta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
};

async function send(url: string, init: RequestInit): Promise<Reply> {
  return readReply(await fetch(url, { redirect: 'manual', ...init }));
}

export async function startToolhost(options: StartOptions = {}): Promise<TestToolhost> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'toolhost-test-'));
  const { DATABASE_URL } = options.env ?? {};
  const running = await start(
    {
      PORT: '0',
      DATA_DIR: dataDir,
      DEMO: '0',
      LOG_LEVEL: process.env.TEST_LOG ?? 'silent',
      CALLS_PER_SECOND: '0',
      QUOTAS: 'writes=0',
      EGRESS_ALLOW: (options.egressPorts ?? []).map((port) => `127.0.0.1:${port}`).join(','),
      ...options.env,
      ...(DATABASE_URL && { DATABASE_URL: withConnectTimeout(DATABASE_URL) }),
    },
    {
      ...defaultRuntimeOptions,
      // Other tests in the same process delay its event loop. Only tests of overload may depend on that.
      createLoopLag: () => ({ ms: 0, start: () => undefined, stop: () => undefined }),
      reportShare: 1,
      // A call that waits for a slot gets it, however busy the machine is. Tests of the wait set their own limit.
      queueMs: 60_000,
      postgresLimits: generousLimits,
      // Old rows that a test stores remain until the test itself prunes them.
      leaderPollIntervalMs: 24 * 60 * 60_000,
      ...options.runtimeOptions,
    },
  );
  const { runner } = running.app;
  const url = running.baseUrl;

  const createKey: TestToolhost['createKey'] = async (keyOptions = {}) => {
    const workspaceId = keyOptions.workspace ?? localWorkspace.id;
    await insertWorkspace(runner.db, { id: workspaceId, name: workspaceId, at: Date.now() });
    const actor = {
      kind: 'operator' as const,
      id: 'test',
      workspaceId,
      scopes: ['manage', 'call'] as const,
      servers: undefined,
    };
    const input = {
      name: 'test',
      scopes: keyOptions.scopes ?? ['manage', 'call'],
      ...(keyOptions.expiresAt && { expires_at: keyOptions.expiresAt }),
    };
    const createdKey = await runOperation(runner, operations.createApiKey, { actor, input, requestId: 'test' });
    if (keyOptions.servers) {
      const servers = JSON.stringify(keyOptions.servers);
      await runner.db.updateTable('api_keys').set({ servers }).where('id', '=', createdKey.id).execute();
    }
    return createdKey.key;
  };
  const managementKey = await createKey().catch(async (error: unknown) => {
    await running.stop();
    throw error;
  });

  const rest: TestToolhost['rest'] = (method, path, requestOptions = {}) =>
    send(`${url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${requestOptions.key ?? managementKey}`,
        ...(requestOptions.body !== undefined && { 'content-type': 'application/json' }),
        ...requestOptions.headers,
      },
      ...(requestOptions.body !== undefined && { body: JSON.stringify(requestOptions.body) }),
    });

  const post: TestToolhost['post'] = (slug, body, requestOptions = {}) =>
    send(`${url}/mcp/${slug}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(requestOptions.token !== undefined && { authorization: `Bearer ${requestOptions.token}` }),
        ...requestOptions.headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });

  const rpc: TestToolhost['rpc'] = (slug, token, method, params, headers = {}) =>
    post(
      slug,
      { jsonrpc: '2.0', id: 1, method, ...(params && { params }) },
      { ...(token !== undefined && { token }), headers },
    );

  const statelessRpc: TestToolhost['statelessRpc'] = (slug, token, method, params = {}, headers = {}) =>
    post(
      slug,
      { jsonrpc: '2.0', id: 1, method, params: { _meta: statelessMeta, ...params } },
      {
        ...(token !== undefined && { token }),
        headers: {
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': method,
          ...(typeof params.name === 'string' && { 'mcp-name': params.name }),
          ...headers,
        },
      },
    );

  return {
    url,
    running,
    dataDir,
    createKey,
    rest,
    post,
    rpc,
    statelessRpc,
    async callTool(slug, token, name, args = {}) {
      const { body, status, text } = await rpc(slug, token, 'tools/call', { name, arguments: args });
      if (!body.result) throw new Error(`the response has no result: ${status} ${text}`);
      return body.result as ToolCallResult;
    },
    async createServer(config) {
      const reply = await rest('POST', '/servers', { body: config });
      if (reply.status !== 201) throw new Error(`the server was not created: ${reply.status} ${reply.text}`);
      return reply;
    },
    async stop() {
      await running.stop();
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
