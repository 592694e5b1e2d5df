/**
 * Measures the service beside a bare relay and nginx: `npm run bench`, `npm run bench -- --quick`, and with `--write`
 * the report also goes to bench/report.md. `npm run bench -- --soak 10` is minutes of load with a hostile workspace and
 * writes bench/report-soak.md. See README.md in this folder.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { imports } from './imports.ts';
import { measureLatency } from './latency.ts';
import { type LoadGenerator, loadGenerator, type Target } from './load.ts';
import { measureManyServers } from './many-servers.ts';
import { pinSelf, stopAll } from './processes.ts';
import { type References, startReferences } from './references.ts';
import { type Facts, type Row, reportText } from './report.ts';
import { reports } from './reports.ts';
import { measure, median } from './rounds.ts';
import { soak } from './soak.ts';
import {
  mcpTarget,
  modernTarget,
  readyMs,
  type Service,
  type ServiceOptions,
  slugs,
  smallServer,
  startService,
  toolName,
} from './toolhost-process.ts';
import { measureTwoProcesses } from './two-processes.ts';

const { values: options, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    soak: { type: 'boolean', default: false },
    reports: { type: 'boolean', default: false },
    imports: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});

const size = options.quick
  ? { rounds: 3, seconds: 1, warmUpSeconds: 2, patientMs: 15_000, creations: 15, starts: 2, servers: 2000 }
  : { rounds: 5, seconds: 2, warmUpSeconds: 8, patientMs: 300_000, creations: 50, starts: 5, servers: 100_000 };

const args = { id: '7', limit: 20, status: 'active' };
const callerToken = 'token-of-a-caller';
const call = (bytes: string) => ({ name: toolName(bytes), arguments: args });

/** The rows of the report. Those of a group are compared with the relay and nginx in it. */
async function rowsOf(service: Service, references: References): Promise<Row[]> {
  const mcp = (slug: string, bearer: string, bytes: string) =>
    mcpTarget(service, slug, bearer, 'tools/call', call(bytes));
  const hosted = (group: string, name: string, target: Target, goal = ''): Row => ({
    group,
    name,
    role: 'service',
    pid: service.child.pid,
    target,
    settles: true,
    goal,
  });
  const keyed = mcp(slugs.keyed, service.key, '1k');
  const list = mcpTarget(service, slugs.large, callerToken, 'tools/list', {});
  const listBytes = await bytesOf(list);
  const relayed = (group: string, path: string): Row[] => {
    const target = (origin: string) => ({ ...keyed, url: `${origin}${path}` });
    const { relay, nginx } = references;
    const row = { group, settles: false, goal: '' };
    const bare: Row = { ...row, name: 'bare relay', role: 'relay', pid: relay.pid, target: target(relay.ready) };
    if (!nginx) return [bare];
    return [{ ...row, name: 'nginx', role: 'nginx', pid: nginx.pid, target: target(nginx.url) }, bare];
  };
  const query = '/items/7?limit=20&status=active';
  const rows = [
    ...relayed('tools/call, 1 KB', `/1k${query}`),
    hosted('tools/call, 1 KB', 'API key', keyed, '≤ 1.25 × relay, ≤ 4.5 × nginx'),
    hosted('tools/call, 1 KB', "caller's token", mcp(slugs.open, callerToken, '1k'), '≤ 1.25 × relay, ≤ 4.5 × nginx'),
    hosted('tools/call, 1 KB', 'API key, MCP 2026-07-28', modernTarget(service, slugs.keyed, service.key, call('1k'))),
    ...relayed('tools/call, 20 KB', `/20k${query}`),
    hosted('tools/call, 20 KB', 'text and structured', mcp(slugs.keyed, service.key, '20k'), '≤ 11 × nginx'),
    hosted('tools/call, 20 KB', 'text only', mcp(slugs.keyed, service.key, '20k-array'), '≤ 7 × nginx'),
    {
      ...hosted(`tools/list, 200 tools, ${Math.round(listBytes / 1024)} KB`, 'node:http, fixed answer', keyed),
      role: 'relay' as const,
      pid: references.relay.pid,
      target: { ...list, url: `${references.relay.ready}/fixed/${listBytes}` },
      settles: false,
    },
    hosted(`tools/list, 200 tools, ${Math.round(listBytes / 1024)} KB`, 'the service', list, '≤ 1.2 × fixed answer'),
  ];
  return options.quick ? rows.filter((row) => !/2026-07-28|text only/.test(row.name)) : rows;
}

async function post({ url, headers, body }: Target): Promise<string> {
  const response = await fetch(url, { method: 'POST', headers, body });
  const text = await response.text();
  if (response.status !== 200 || text.includes('"isError":true')) throw new Error(`${url}: ${response.status} ${text}`);
  return text;
}

async function bytesOf(target: Target): Promise<number> {
  return Buffer.byteLength(await post(target));
}

/** The time that one createMcpServer takes through the management server, one after the other. */
async function creationMs(service: Service, upstream: string): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < size.creations; i++) {
    const params = { name: 'createMcpServer', arguments: smallServer(`bench-made-${i}`, upstream) };
    const startedAt = performance.now();
    await post(mcpTarget(service, 'manage', service.key, 'tools/call', params));
    times.push(performance.now() - startedAt);
  }
  return median(times);
}

/** The first start is thrown away: it fills the caches that the goal presumes. */
async function medianReadyMs(service: ServiceOptions): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i <= size.starts; i++) times.push(await readyMs(service));
  return median(times.slice(1));
}

async function run(folder: string, load: LoadGenerator): Promise<string> {
  const references = await startReferences(folder);
  const where = { dataDir: join(folder, 'data'), upstream: references.upstream.ready };
  const ready = await medianReadyMs(where);
  const service = await startService(where);
  const createMs = await creationMs(service, where.upstream);
  const rows = await rowsOf(service, references);
  const { rounds, seconds, warmUpSeconds } = size;
  const plan = { rounds, seconds, warmUpSeconds, patientUntil: size.patientMs };
  const outcome = await measure(rows, load, plan);
  const complaints = service.child.stderr().match(/call records were given up|out of memory/g)?.length ?? 0;
  const [ours, relay] = ['service', 'relay'].map((role) => rows.find((row) => row.role === role)) as [Row, Row];
  const fastest = median((outcome.rounds.get(ours) ?? []).map(({ calls, seconds: s }) => calls / s));
  const latency = await measureLatency(ours.target, relay.target, Math.round(fastest / 2), seconds);
  await service.child.stop();
  const facts: Facts = {
    generator: load.name,
    plan,
    hasNginx: references.nginx !== undefined,
    readyMs: ready,
    createMs,
    idleMb: service.idleMb,
    complaints,
    latency,
    twoProcesses: await measureTwoProcesses({ ...where, dataDir: join(folder, 'processes') }, load),
    many: await measureManyServers({ ...where, dataDir: join(folder, 'many') }, size.servers),
  };
  return reportText(rows, outcome, facts);
}

if (process.platform !== 'linux') throw new Error('the bench reads /proc, so it runs on Linux only');
const folder = mkdtempSync(join(tmpdir(), 'toolhost-bench-'));
try {
  pinSelf();
  if (options.reports) {
    const { text, failures } = await reports(folder, Number(positionals[0] ?? 1));
    console.log(`\n${text}`);
    if (positionals[0] === undefined) writeFileSync(join(import.meta.dirname, 'report-reports.md'), text);
    if (failures.length > 0) throw new Error(`too slow:\n${failures.join('\n')}`);
  } else if (options.imports) {
    const text = await imports(folder);
    console.log(`\n${text}`);
    if (options.write) writeFileSync(join(import.meta.dirname, 'report-imports.md'), text);
  } else {
    const report = options.soak ? await soak(folder, Number(positionals[0] ?? 10)) : await run(folder, loadGenerator());
    console.log(`\n${report}`);
    const file = options.soak ? 'report-soak.md' : 'report.md';
    if (options.write || options.soak) writeFileSync(join(import.meta.dirname, file), report);
  }
} finally {
  await stopAll();
  rmSync(folder, { recursive: true, force: true });
}
