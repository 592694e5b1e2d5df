/** Measures every read operation on a full store of each engine. None may exceed the time limit. */
import { join } from 'node:path';
import type { Engine } from '../src/store/db.ts';
import { node, startChild } from './processes.ts';
import { machineItems, table } from './report.ts';
import { type BesideCalls, type LoadPlan, measureBesideCalls } from './reports-beside-calls.ts';
import { knownOf } from './reports-known.ts';
import { fillStatements, large, older, worldOf } from './reports-rows.ts';
import { fillStore } from './reports-store.ts';
import { type Asker, type Walk, walk } from './reports-walk.ts';
import type { Size } from './sizes.ts';
import { ready } from './toolhost-process.ts';

const boundMs = 300;
/** Maximum share of another workspace's calls that may be lost while ten clients request reports. */
const mostLost = 0.1;
/** Upstream that receives no requests. */
const upstream = 'http://127.0.0.1:9';
const engines: readonly Engine[] = ['sqlite', 'postgres'];

type Result = Walk & { engine: Engine; filledMs: number; beside: BesideCalls };

/** Returns the report as Markdown, and the requests that took too long. */
export async function reports(
  folder: string,
  { reports: size, warmUpCalls, maxFailures }: Size,
): Promise<{ text: string; failures: string[] }> {
  const { scale } = size;
  const load: LoadPlan = { ...size, warmUpCalls, maxFailures };
  if (!(scale > 0))
    throw new Error('--reports requires a positive scale, such as 0.1. A scale of 1 is a million calls.');
  const results: Result[] = [];
  for (const engine of engines) results.push(await onEngine(engine, folder, size, load));
  const failures = results.flatMap(({ engine, slowest, pages, beside }) => [
    ...(beside.lostCalls > mostLost
      ? [`${engine}: ${percent(beside.lostCalls)} of the calls were lost during reports`]
      : []),
    ...slowest
      .filter(({ ms }) => ms > boundMs)
      .map(({ operation, input, ms }) => `${engine} ${operation} ${JSON.stringify(input)}: ${ms.toFixed(0)} ms`),
    ...pages.filter(({ ms }) => ms > boundMs).map(({ page, ms }) => `${engine} page ${page}: ${ms.toFixed(0)} ms`),
  ]);
  return { text: textOf(results, scale), failures };
}

async function onEngine(engine: Engine, folder: string, size: Size['reports'], load: LoadPlan): Promise<Result> {
  const { scale, maxRequestsOfOperation } = size;
  const world = worldOf(scale, Date.now());
  const store = await fillStore(engine, folder, world, await fillStatements(world, upstream));
  console.log(`${engine}: filled in ${(store.filledMs / 1000).toFixed(0)} s`);
  const env = { ...store.env, PORT: '0', DEMO: '0', LOG_LEVEL: 'warn', EGRESS_ALLOW: new URL(upstream).host };
  const command = [node, join(import.meta.dirname, 'reports-service.ts')];
  const service = await startChild(command, { core: undefined, env, ready });
  const person = (workspace: string): Asker => ({
    name: workspace,
    headers: { Cookie: `toolhost-session=${store.sessions[workspace]}`, 'Sec-Fetch-Site': 'same-origin' },
    knowsAll: workspace === large,
  });
  try {
    const walked = await walk(
      service.ready,
      [person(large), person(older)],
      knownOf(world, upstream),
      maxRequestsOfOperation,
    );
    await service.stop();
    const ofLarge = walked.slowest.filter(({ asker }) => asker === large).toSorted((a, b) => b.ms - a.ms);
    const beside = await measureBesideCalls(store, person(large), ofLarge, load);
    return { ...walked, engine, filledMs: store.filledMs, beside };
  } finally {
    await service.stop();
    await store.stop();
  }
}

const percent = (share: number) => `${(100 * share).toFixed(0)}%`;

function textOf(results: readonly Result[], scale: number): string {
  const facts = results.map(
    ({ engine, filledMs, requests, referenceMs }) =>
      `${engine}: filled in ${(filledMs / 1000).toFixed(0)} s, ${requests} requests, reference ${referenceMs.toFixed(1)} ms`,
  );
  const { calls, servers, keys } = worldOf(scale, 0);
  const amounts = `${calls.toLocaleString('en')} calls, ${servers.toLocaleString('en')} servers, ${keys.toLocaleString('en')} keys, half of them in one workspace`;
  const slowest = results.flatMap(({ engine, slowest: rows, referenceMs }) =>
    rows
      .toSorted((a, b) => b.ms - a.ms)
      .map(({ operation, asker, input, ms }) => [
        engine,
        operation,
        asker,
        `\`${JSON.stringify(input)}\``,
        ms.toFixed(0),
        (ms / referenceMs).toFixed(1),
      ]),
  );
  const pages = results.flatMap(({ engine, pages: rows, referenceMs }) =>
    rows.map(({ page, asks, ms }) => [engine, page, asks, ms.toFixed(0), (ms / referenceMs).toFixed(1)]),
  );
  const besides = results.map(({ beside }) => [
    beside.engine,
    beside.callsPerSecond.toFixed(0),
    percent(beside.lostCalls),
    percent(beside.moreCpu),
    String(beside.answered),
    String(beside.refused),
  ]);
  return [
    '# Reports of a full store',
    [...machineItems(), amounts, ...facts].map((item) => `- ${item}`).join('\n'),
    `Slowest request of each read operation (limit: ${boundMs} ms). The reference is getMcpServer, which reads one row.`,
    table(['engine', 'operation', 'workspace', 'input', 'ms', '× reference'], slowest),
    table(['engine', 'pages in', 'operations', 'ms', '× reference'], pages),
    `Calls of another workspace while ten clients repeat the slowest reports of a full workspace (limit: ${percent(mostLost)} lost calls).`,
    table(['engine', 'calls/s without', 'calls lost', 'added CPU per call', 'reports', 'rejected'], besides),
    '',
  ].join('\n\n');
}
