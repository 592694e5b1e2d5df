/** Measures calls while the largest public API descriptions are imported, and the same calls alone. */
import { join } from 'node:path';
import { readCorpus } from '../test/support/import/corpus.ts';
import { runAtRate } from './load.ts';
import { getResidentMb } from './processes.ts';
import { startReferences } from './references.ts';
import { formatTable, getMachineItems } from './report.ts';
import { median } from './rounds.ts';
import type { Size } from './sizes.ts';
import { mcpTarget, type Service, slugs, startService, toolName } from './toolhost-process.ts';

const names = ['stripe.com', 'github.com/api.github.com', 'kubernetes.io'];
const perSecond = 500;
const goals = { importMs: 5000, megabytes: 500 };

type ImportResult = { name: string; megabytes: number; ms: number[] };

/**
 * Returns the report as Markdown. Each round measures calls alone, and then calls during sequential imports of the
 * descriptions, each at least once.
 */
export async function measureImports(folder: string, size: Size['imports']): Promise<string> {
  const { rounds, seconds } = size;
  const references = await startReferences(folder);
  const service = await startService({ dataDir: join(folder, 'data'), upstream: references.upstream.ready });
  const documents = (await readCorpus()).filter(({ name }) => names.includes(name.replace(/\.json$/, '')));
  const results = documents.map(({ name, text }): ImportResult => ({ name, megabytes: text.length / 1e6, ms: [] }));
  const args = { id: '7', limit: 20, status: 'active' };
  const target = mcpTarget(service, slugs.keyed, service.key, 'tools/call', { name: toolName('1k'), arguments: args });
  await runAtRate(target, perSecond, seconds);
  const p99 = { alone: [] as number[], during: [] as number[] };
  let [peakMb, failures] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    p99.alone.push((await runAtRate(target, perSecond, seconds)).p99Ms);
    let isDone = false;
    const runImports = async () => {
      for (let n = 0; !isDone || n < documents.length; n++) {
        const index = n % documents.length;
        results[index]?.ms.push(await measurePlanMs(service, documents[index]?.text ?? ''));
        peakMb = Math.max(peakMb, getResidentMb(service.child.pid));
      }
    };
    const importRun = runImports();
    const sample = await runAtRate(target, perSecond, seconds);
    isDone = true;
    await importRun;
    p99.during.push(sample.p99Ms);
    failures += sample.failures;
  }
  await service.child.stop();
  return formatReport(results, p99, { peakMb, failures }, size);
}

/** Returns the time to plan one description with all operations, in ms. */
async function measurePlanMs({ url, key }: Service, document: string): Promise<number> {
  const startedAt = performance.now();
  const response = await fetch(`${url}/api/v1/import`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ document, include: ['*'] }),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`The import failed: ${response.status} ${text.slice(0, 300)}`);
  return performance.now() - startedAt;
}

function formatReport(
  results: readonly ImportResult[],
  { alone, during }: { alone: number[]; during: number[] },
  { peakMb, failures }: { peakMb: number; failures: number },
  { rounds, seconds }: Size['imports'],
): string {
  const ratios = during.map((ms, round) => ms / (alone[round] ?? ms));
  const range = (values: readonly number[]) =>
    `${median(values).toFixed(2)} (${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)})`;
  const lines = results.map(({ name, megabytes, ms }) => [
    name,
    megabytes.toFixed(1),
    String(ms.length),
    (median(ms) / 1000).toFixed(2),
    (Math.max(...ms) / 1000).toFixed(2),
  ]);
  return [
    '# Calls during imports',
    '',
    ...getMachineItems().map((item) => `- ${item}`),
    `- ${rounds} rounds: ${seconds} s of ${perSecond} calls/s alone, then the same during sequential imports; the service and its threads share one core`,
    '',
    `p99 of calls alone ${range(alone)} ms, during imports ${range(during)} ms: ${range(ratios)} ×. Failed calls: ${failures}.`,
    '',
    formatTable(['description', 'MB', 'imports', 'median s', `slowest s (goal ≤ ${goals.importMs / 1000})`], lines),
    '',
    `Peak resident memory of the service: ${peakMb.toFixed(0)} MB (goal ≤ ${goals.megabytes}).`,
    '',
  ].join('\n');
}
