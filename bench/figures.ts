/** Compares the service with a bare relay and nginx. */
import { join } from 'node:path';
import { measureLatency } from './latency.ts';
import { loadGenerator, type Target } from './load.ts';
import { measureManyServers } from './many-servers.ts';
import { post } from './post.ts';
import { type References, startReferences } from './references.ts';
import { type Facts, formatReport, type Row } from './report.ts';
import { measureRounds, median } from './rounds.ts';
import type { Size } from './sizes.ts';
import {
  createServers,
  mcpTarget,
  measureIdleMb,
  measureReadyMs,
  type Service,
  type ServiceOptions,
  slugs,
  smallServer,
  startEmptyService,
  statelessTarget,
  toolName,
} from './toolhost-process.ts';
import { measureTwoWorkers } from './two-workers.ts';

const args = { id: '7', limit: 20, status: 'active' };
const callerToken = 'token-of-a-caller';
const call = (bytes: string) => ({ name: toolName(bytes), arguments: args });

/** Returns the rows of the report. The service rows of a group are compared with its relay and nginx rows. */
async function buildRows(service: Service, references: References, isQuick: boolean): Promise<Row[]> {
  const mcp = (slug: string, bearer: string, bytes: string) =>
    mcpTarget(service, slug, bearer, 'tools/call', call(bytes));
  const serviceRow = (group: string, name: string, target: Target, goal = ''): Row => ({
    group,
    name,
    role: 'service',
    pid: service.child.pid,
    target,
    hasWorkAfterResponse: true,
    goal,
  });
  const keyed = mcp(slugs.keyed, service.key, '1k');
  const list = mcpTarget(service, slugs.large, callerToken, 'tools/list', {});
  const listBytes = await measureResponseBytes(list);
  const referenceRows = (group: string, path: string): Row[] => {
    const target = (origin: string) => ({ ...keyed, url: `${origin}${path}` });
    const { relay, nginx } = references;
    const row = { group, hasWorkAfterResponse: false, goal: '' };
    const bare: Row = { ...row, name: 'bare relay', role: 'relay', pid: relay.pid, target: target(relay.ready) };
    if (!nginx) return [bare];
    return [{ ...row, name: 'nginx', role: 'nginx', pid: nginx.pid, target: target(nginx.url) }, bare];
  };
  const query = '/items/7?limit=20&status=active';
  const rows = [
    ...referenceRows('tools/call, 1 KB', `/1k${query}`),
    serviceRow('tools/call, 1 KB', 'API key', keyed, '≤ 1.6 × relay, ≤ 4.5 × nginx'),
    serviceRow(
      'tools/call, 1 KB',
      "caller's token",
      mcp(slugs.open, callerToken, '1k'),
      '≤ 1.6 × relay, ≤ 4.5 × nginx',
    ),
    serviceRow(
      'tools/call, 1 KB',
      'API key, MCP 2026-07-28',
      statelessTarget(service, slugs.keyed, service.key, call('1k')),
    ),
    ...referenceRows('tools/call, 20 KB', `/20k${query}`),
    serviceRow(
      'tools/call, 20 KB',
      'text and structured',
      mcp(slugs.keyed, service.key, '20k'),
      '≤ 1.6 × relay, ≤ 7 × nginx',
    ),
    serviceRow(
      'tools/call, 20 KB',
      'text only',
      mcp(slugs.keyed, service.key, '20k-array'),
      '≤ 1.6 × relay, ≤ 7 × nginx',
    ),
    {
      ...serviceRow(`tools/list, 200 tools, ${Math.round(listBytes / 1024)} KB`, 'node:http, fixed response', keyed),
      role: 'relay' as const,
      pid: references.relay.pid,
      target: { ...list, url: `${references.relay.ready}/fixed/${listBytes}` },
      settles: false,
    },
    serviceRow(
      `tools/list, 200 tools, ${Math.round(listBytes / 1024)} KB`,
      'the service',
      list,
      '≤ 1.2 × fixed response',
    ),
  ];
  return isQuick ? rows.filter((row) => !/2026-07-28|text only/.test(row.name)) : rows;
}

async function measureResponseBytes(target: Target): Promise<number> {
  return Buffer.byteLength(await post(target));
}

/** Returns the median time of sequential createMcpServer calls through the management server, in ms. */
async function measureCreationMs(service: Service, upstream: string, creations: number): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < creations; i++) {
    const params = { name: 'createMcpServer', arguments: smallServer(`bench-made-${i}`, upstream) };
    const startedAt = performance.now();
    await post(mcpTarget(service, 'manage', service.key, 'tools/call', params));
    times.push(performance.now() - startedAt);
  }
  return median(times);
}

/** Returns the median start time without the first start, which fills the caches that the goal presumes. */
async function measureMedianReadyMs(service: ServiceOptions, starts: number): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i <= starts; i++) times.push(await measureReadyMs(service));
  return median(times.slice(1));
}

/** Returns the report on the service and its references as Markdown. A quick report has fewer rows. */
export async function figures(folder: string, size: Size, isQuick: boolean): Promise<string> {
  const load = loadGenerator(size.seconds);
  const references = await startReferences(folder);
  const options = { dataDir: join(folder, 'data'), upstream: references.upstream.ready };
  const ready = await measureMedianReadyMs(options, size.starts);
  const service = await startEmptyService(options);
  const idle = await measureIdleMb(service);
  await createServers(service, options);
  const createMs = await measureCreationMs(service, options.upstream, size.creations);
  const rows = await buildRows(service, references, isQuick);
  const outcome = await measureRounds(rows, load, size);
  const complaints = service.child.stderr().match(/call records were dropped|out of memory/g)?.length ?? 0;
  const [apiKeyRow, relay] = ['service', 'relay'].map((role) => rows.find((row) => row.role === role)) as [Row, Row];
  const fastest = median((outcome.rounds.get(apiKeyRow) ?? []).map(({ calls, seconds }) => calls / seconds));
  const latency = await measureLatency(apiKeyRow.target, relay.target, Math.round(fastest / 2), size);
  await service.child.stop();
  const facts: Facts = {
    generator: load.name,
    plan: size,
    hasNginx: references.nginx !== undefined,
    readyMs: ready,
    createMs,
    idleMb: idle,
    complaints,
    latency,
    twoWorkers: await measureTwoWorkers({ ...options, dataDir: join(folder, 'workers') }, load, size),
    many: await measureManyServers({ ...options, dataDir: join(folder, 'many') }, size),
  };
  return formatReport(rows, outcome, facts);
}
