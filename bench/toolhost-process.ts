import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { quotaNames } from '../apps/server/src/quotas.ts';
import type { Target } from './load.ts';
import { type Child, cores, getResidentMb, root, startChild, startTimeoutMs } from './processes.ts';

/** Real service in a separate process, with the key for the measurements. */
export type Service = { child: Child; url: string; key: string };

/** Time for the cleanup that the service runs after its ready line. */
const settleMs = 1000;

export const toolhostPath = join(root, 'bin', 'toolhost');
const execFileAsync = promisify(execFile);
export const ready = /^toolhost ready (\S+)$/m;

export const slugs = { keyed: 'bench-keyed', open: 'bench-open', large: 'bench-large' };
export const largeTools = 200;

export type ServiceOptions = {
  dataDir: string;
  upstream: string;
  workers?: number;
  /** PostgreSQL URL, undefined for SQLite. */
  databaseUrl?: string | undefined;
  /** Core to pin the service to. Undefined means not pinned. */
  core?: number | undefined;
};

export function makeEnvironment({
  dataDir,
  upstream,
  workers = 1,
  databaseUrl,
}: ServiceOptions): Record<string, string> {
  return {
    DATA_DIR: dataDir,
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    PORT: '0',
    DEMO: '0',
    EGRESS_ALLOW: new URL(upstream).host,
    CALLS_PER_SECOND: '0',
    REFUSALS_PER_MINUTE: '0',
    QUOTAS: quotaNames.map((name) => `${name}=0`).join(),
    CONCURRENT_CALLS: '0',
    CONCURRENT_CALLS_PER_KEY: '0',
    WORKERS: String(workers),
    LOG_LEVEL: 'warn',
  };
}

/** Starts the service and creates the servers of the measurements. */
export async function startService(options: ServiceOptions, launch?: string[]): Promise<Service> {
  const service = await startEmptyService(options, launch);
  await createServers(service, options);
  return service;
}

/** Starts the service. The profiler passes its own command as `launch`. */
export async function startEmptyService(options: ServiceOptions, launch = [toolhostPath, 'serve']): Promise<Service> {
  const { core } = { core: cores.service, ...options };
  const env = makeEnvironment(options);
  const key = await createKey(env);
  const child = await startChild(launch, { core, env, ready });
  return { child, url: child.ready, key };
}

/** Returns the resident memory of a newly started service before any request, in MB. */
export async function measureIdleMb({ child }: Service): Promise<number> {
  await delay(settleMs);
  return getResidentMb(child.pid);
}

export async function createServers(service: Service, { upstream }: ServiceOptions): Promise<void> {
  for (const config of configs(upstream)) await createServer(service, config);
}

/** Creates a key with every scope in an existing workspace. */
export async function createKey(env: Record<string, string>, workspace = 'local'): Promise<string> {
  const args = ['keys', 'create', '--name', 'bench', '--scopes', 'manage,call', '--workspace', workspace, '--json'];
  const { stdout } = await execFileAsync(toolhostPath, args, {
    env: { ...process.env, ...env },
    timeout: startTimeoutMs,
  });
  return (JSON.parse(stdout) as { key: string }).key;
}

export async function createServer({ url, key }: Pick<Service, 'url' | 'key'>, config: object): Promise<void> {
  const response = await fetch(`${url}/api/v1/servers`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(config),
  });
  if (response.status !== 201)
    throw new Error(`The server was not created: ${response.status} ${await response.text()}`);
}

/** Returns the time from the service command to its ready line, in ms. The service is not pinned, as in real use. */
export async function measureReadyMs(options: ServiceOptions): Promise<number> {
  const startedAt = performance.now();
  const child = await startChild([toolhostPath, 'serve'], { core: undefined, env: makeEnvironment(options), ready });
  const ms = performance.now() - startedAt;
  await child.stop();
  return ms;
}

export function toolConfig(name: string, size: string, upstream: string): object {
  return {
    name,
    description: `Get the items of a project as ${size}. Lists all of them without a status, oldest first.`,
    method: 'GET',
    url: `${upstream}/${size}/items/:id`,
    input_schema: {
      id: { type: 'string', description: 'Id of the project' },
      limit: { type: 'integer', minimum: 1, maximum: 100, optional: true, description: 'Maximum number of items' },
      status: { type: 'string', enum: ['active', 'archived'], optional: true, description: 'Only items in this state' },
    },
  };
}

const sizes = ['1k', '20k', '20k-array'];
export const toolName = (size: string) => `get_${size.replace('-', '_')}`;

function configs(upstream: string): object[] {
  const tools = sizes.map((size) => toolConfig(toolName(size), size, upstream));
  const largeToolList = Array.from({ length: largeTools }, (_, i) => toolConfig(`get_items_${i}`, '1k', upstream));
  const open = { type: 'Bearer' };
  return [
    { name: 'Keyed', slug: slugs.keyed, authentication: { ...open, token: 'token-of-the-upstream' }, tools },
    { name: 'Open', slug: slugs.open, authentication: open, tools },
    { name: 'Large', slug: slugs.large, authentication: open, tools: largeToolList },
  ];
}

/** Returns a small server as an agent would create it. */
export function smallServer(slug: string, upstream: string): object {
  return { name: slug, slug, authentication: { type: 'Bearer' }, tools: [toolConfig('get_items', '1k', upstream)] };
}

const statefulVersion = '2025-11-25';
const statelessVersion = '2026-07-28';

/** Returns a stateful MCP request for the load. */
export function mcpTarget(service: Service, slug: string, bearer: string, method: string, params: object): Target {
  return {
    url: `${service.url}/mcp/${slug}`,
    headers: {
      Authorization: `Bearer ${bearer}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': statefulVersion,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  };
}

/** Returns a stateless MCP request, which has its metadata in every message. */
export function statelessTarget(service: Service, slug: string, bearer: string, params: { name: string }): Target {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': statelessVersion,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  };
  const target = mcpTarget(service, slug, bearer, 'tools/call', { ...params, _meta });
  const mirrors = {
    'MCP-Protocol-Version': statelessVersion,
    'Mcp-Method': 'tools/call',
    'Mcp-Name': params.name,
  };
  return { ...target, headers: { ...target.headers, ...mirrors } };
}
