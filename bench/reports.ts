/** Measures every read operation on a full store of each engine. None may exceed the time limit. */
import { join } from 'node:path';
import type { Engine } from '../apps/server/src/store/db.ts';
import { node, startChild } from './processes.ts';
import { formatTable, getMachineItems } from './report.ts';
import { type CallImpact, type LoadPlan, measureCallImpact } from './reports-call-impact.ts';
import { getKnownInputs } from './reports-inputs.ts';
import { buildFillStatements, largeWorkspace, olderWorkspace, scaleCounts } from './reports-rows.ts';
import { fillStore } from './reports-store.ts';
import { measureRequests, type RequestTimes, type Sender } from './reports-walk.ts';
import type { Size } from './sizes.ts';
import { ready } from './toolhost-process.ts';

const maxReportMs = 300;
/** Maximum share of another workspace's calls that may be lost while ten clients request reports. */
const maxLostShare = 0.1;
/** Upstream that receives no requests. */
const upstream = 'http://127.0.0.1:9';
const engines: readonly Engine[] = ['sqlite', 'postgres'];

type Result = RequestTimes & { engine: Engine; fillMs: number; callImpact: CallImpact };

/** Returns the report as Markdown, and the requests that took too long. */
export async function measureReports(
  folder: string,
  { reports: size, warmUpCalls, maxFailures }: Size,
): Promise<{ text: string; failures: string[] }> {
  const { scale } = size;
  const load: LoadPlan = { ...size, warmUpCalls, maxFailures };
  if (!(scale > 0))
    throw new Error('--reports requires a positive scale, such as 0.1. A scale of 1 is a million calls.');
  const results: Result[] = [];
  for (const engine of engines) results.push(await measureEngine(engine, folder, size, load));
  const failures = results.flatMap(({ engine, slowest, pages, callImpact }) => [
    ...(callImpact.lostCallShare > maxLostShare
      ? [`${engine}: ${formatPercent(callImpact.lostCallShare)} of the calls were lost during reports`]
      : []),
    ...slowest
      .filter(({ ms }) => ms > maxReportMs)
      .map(({ operation, input, ms }) => `${engine} ${operation} ${JSON.stringify(input)}: ${ms.toFixed(0)} ms`),
    ...pages.filter(({ ms }) => ms > maxReportMs).map(({ page, ms }) => `${engine} page ${page}: ${ms.toFixed(0)} ms`),
  ]);
  return { text: formatReport(results, scale), failures };
}

async function measureEngine(engine: Engine, folder: string, size: Size['reports'], load: LoadPlan): Promise<Result> {
  const { scale, maxRequestsPerOperation } = size;
  const counts = scaleCounts(scale, Date.now());
  const store = await fillStore(engine, folder, counts, await buildFillStatements(counts, upstream));
  console.log(`${engine}: filled in ${(store.fillMs / 1000).toFixed(0)} s`);
  const env = { ...store.env, PORT: '0', DEMO: '0', LOG_LEVEL: 'warn', EGRESS_ALLOW: new URL(upstream).host };
  const command = [node, join(import.meta.dirname, 'reports-service.ts')];
  const service = await startChild(command, { core: undefined, env, ready });
  const createSender = (workspace: string): Sender => ({
    name: workspace,
    headers: { Cookie: `toolhost-session=${store.sessions[workspace]}`, 'Sec-Fetch-Site': 'same-origin' },
    hasAllNames: workspace === largeWorkspace,
  });
  try {
    const requestTimes = await measureRequests(
      service.ready,
      [createSender(largeWorkspace), createSender(olderWorkspace)],
      getKnownInputs(counts, upstream),
      maxRequestsPerOperation,
    );
    await service.stop();
    const largeWorkspaceRequests = requestTimes.slowest
      .filter(({ sender }) => sender === largeWorkspace)
      .toSorted((a, b) => b.ms - a.ms);
    const callImpact = await measureCallImpact(store, createSender(largeWorkspace), largeWorkspaceRequests, load);
    return { ...requestTimes, engine, fillMs: store.fillMs, callImpact };
  } finally {
    await service.stop();
    await store.stop();
  }
}

const formatPercent = (share: number) => `${(100 * share).toFixed(0)}%`;

function formatReport(results: readonly Result[], scale: number): string {
  const facts = results.map(
    ({ engine, fillMs, requests, referenceMs }) =>
      `${engine}: filled in ${(fillMs / 1000).toFixed(0)} s, ${requests} requests, reference ${referenceMs.toFixed(1)} ms`,
  );
  const { calls, servers, keys } = scaleCounts(scale, 0);
  const amounts = `${calls.toLocaleString('en')} calls, ${servers.toLocaleString('en')} servers, ${keys.toLocaleString('en')} keys, half of them in one workspace`;
  const slowest = results.flatMap(({ engine, slowest: rows, referenceMs }) =>
    rows
      .toSorted((a, b) => b.ms - a.ms)
      .map(({ operation, sender, input, ms }) => [
        engine,
        operation,
        sender,
        `\`${JSON.stringify(input)}\``,
        ms.toFixed(0),
        (ms / referenceMs).toFixed(1),
      ]),
  );
  const pages = results.flatMap(({ engine, pages: rows, referenceMs }) =>
    rows.map(({ page, operations, ms }) => [engine, page, operations, ms.toFixed(0), (ms / referenceMs).toFixed(1)]),
  );
  const impactRows = results.map(({ callImpact }) => [
    callImpact.engine,
    callImpact.callsPerSecond.toFixed(0),
    formatPercent(callImpact.lostCallShare),
    formatPercent(callImpact.addedCpuShare),
    String(callImpact.succeeded),
    String(callImpact.rejected),
  ]);
  return [
    '# Reports of a full store',
    [...getMachineItems(), amounts, ...facts].map((item) => `- ${item}`).join('\n'),
    `Slowest request of each read operation (limit: ${maxReportMs} ms). The reference is getMcpServer, which reads one row.`,
    formatTable(['engine', 'operation', 'workspace', 'input', 'ms', '× reference'], slowest),
    formatTable(['engine', 'pages in', 'operations', 'ms', '× reference'], pages),
    `Calls of another workspace while ten clients repeat the slowest reports of a full workspace (limit: ${formatPercent(maxLostShare)} lost calls).`,
    formatTable(['engine', 'calls/s without', 'calls lost', 'added CPU per call', 'reports', 'rejected'], impactRows),
    '',
  ].join('\n\n');
}
