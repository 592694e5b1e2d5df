import { join } from 'node:path';
import { checkServerConfig, type ServerConfig } from '@toolhost/tool-config/server-config';
import { openDatabase } from '../apps/server/src/store/database.ts';
import { insertServer } from '../apps/server/src/store/servers/servers.ts';
import { insertWorkspace } from '../apps/server/src/store/workspaces.ts';
import { version } from '../apps/server/src/version.ts';
import { post } from './post.ts';
import { getResidentMb, root } from './processes.ts';
import { median } from './rounds.ts';
import type { Size } from './sizes.ts';
import { type ServiceOptions, startService, toolConfig } from './toolhost-process.ts';

/** Memory and latency of a process whose database holds many servers. */
export type ManyServers = {
  servers: number;
  /** Growth in resident memory after calls to more servers than the cache holds, in MB. */
  addedMb: number;
  /** Median times of the first and of the second call to a server. */
  coldMs: number;
  warmMs: number;
};

const toolsPerServer = 10;
const rowsPerTransaction = 1000;

/**
 * Fills a separate database with servers, starts a service on it, and calls more of them than its cache holds, so that
 * it evicts entries during the measurement.
 */
export async function measureManyServers(
  options: ServiceOptions,
  { servers, calledServers }: Pick<Size, 'servers' | 'calledServers'>,
): Promise<ManyServers> {
  await fillStore(options, servers);
  const service = await startService(options);
  try {
    const call = (index: number) => measureCallMs(`${service.url}/mcp/${toSlug(index)}`);
    for (let i = 0; i < 200; i++) await call(0);
    const before = getResidentMb(service.child.pid);
    const cold: number[] = [];
    const warm: number[] = [];
    const step = Math.max(1, Math.floor(servers / calledServers));
    for (let index = 1; index < servers; index += step) {
      cold.push(await call(index));
      warm.push(await call(index));
    }
    const addedMb = getResidentMb(service.child.pid) - before;
    return { servers, addedMb, coldMs: median(cold), warmMs: median(warm) };
  } finally {
    await service.child.stop();
  }
}

const toSlug = (index: number) => `many-${index}`;

/** Inserts the servers directly into the store, because creating them through the API would take too long. */
async function fillStore({ dataDir, upstream }: ServiceOptions, servers: number): Promise<void> {
  const database = await openDatabase({
    postgres: undefined,
    file: join(dataDir, 'toolhost.sqlite'),
    migrations: join(root, 'migrations'),
    version,
    exclusive: true,
    now: Date.now,
    onError: console.error,
    onDatabaseError: console.error,
    onWarning: console.error,
  });
  const config = makeConfig(upstream);
  const now = Date.now();
  await insertWorkspace(database.db, { id: 'local', name: 'Local', at: now });
  for (let from = 0; from < servers; from += rowsPerTransaction) {
    await database.db.transaction().execute(async (transaction) => {
      for (let i = from; i < Math.min(from + rowsPerTransaction, servers); i++) {
        const slug = toSlug(i);
        const times = { createdAt: now, updatedAt: now, createdBy: 'bench' };
        const server = { ...times, id: `srv_${slug}`, workspaceId: 'local', slug, name: slug, version: 1 };
        await insertServer(transaction, { ...server, config: { ...config, name: slug, slug } });
      }
    });
  }
  await database.close();
}

/** Returns a configuration with all defaults, as the service stores it. */
function makeConfig(upstream: string): ServerConfig {
  const tools = Array.from({ length: toolsPerServer }, (_, i) => toolConfig(`get_items_${i}`, '1k', upstream));
  const raw = { name: 'Many', slug: 'many', authentication: { type: 'Bearer' }, tools };
  const { config, problems } = checkServerConfig(raw, {
    managementSlug: 'manage',
    urlProblem: () => undefined,
    acceptsFormPost: true,
  });
  if (!config) throw new Error(problems.map(({ path, message }) => `${path}: ${message}`).join('\n'));
  return config;
}

const headers = {
  Authorization: 'Bearer token-of-a-caller',
  'Content-Type': 'application/json',
  Accept: 'application/json, text/event-stream',
  'MCP-Protocol-Version': '2025-11-25',
};
const params = { name: 'get_items_3', arguments: { id: '7' } };
const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });

async function measureCallMs(url: string): Promise<number> {
  const startedAt = performance.now();
  await post({ url, headers, body });
  return performance.now() - startedAt;
}
