/** Runs one mode of the bench and prints its report. README.md in this folder describes the modes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { compareWithCommit } from './against.ts';
import { figures } from './figures.ts';
import { measureImports } from './imports.ts';
import { pinSelf, stopAll } from './processes.ts';
import { measureReports } from './reports.ts';
import { fullSize, quickSize, type Size, smallestSize } from './sizes.ts';
import { runSoak } from './soak.ts';
import { compareStarts } from './starts.ts';

const { values: options, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    smallest: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    soak: { type: 'boolean', default: false },
    reports: { type: 'boolean', default: false },
    imports: { type: 'boolean', default: false },
    against: { type: 'string' },
    start: { type: 'string' },
    rounds: { type: 'string' },
  },
  allowPositionals: true,
});

/** Report as Markdown, its file name for `--write`, and measurements that make the run fail. */
type Report = { text: string; file?: string; failures?: string[] };

function getSize(): Size {
  if (options.smallest) return smallestSize;
  return options.quick ? quickSize : fullSize;
}

async function runMode(folder: string): Promise<Report> {
  const size = getSize();
  const amount = positionals[0] === undefined ? undefined : Number(positionals[0]);
  if (options.against !== undefined) {
    const rounds = options.rounds === undefined ? {} : { minRounds: Number(options.rounds), budgetMs: 0 };
    return {
      text: await compareWithCommit(folder, options.against, { ...size, against: { ...size.against, ...rounds } }),
    };
  }
  if (options.start !== undefined) return { text: await compareStarts(folder, options.start, size.startComparison) };
  if (options.soak) {
    const text = await runSoak(folder, { ...size.soak, minutes: amount ?? size.soak.minutes });
    return { text, file: 'report-soak.md' };
  }
  if (options.reports) {
    const scaled = { ...size, reports: { ...size.reports, scale: amount ?? size.reports.scale } };
    return { ...(await measureReports(folder, scaled)), file: 'report-reports.md' };
  }
  if (options.imports) return { text: await measureImports(folder, size.imports), file: 'report-imports.md' };
  return { text: await figures(folder, size, options.quick), file: 'report.md' };
}

if (process.platform !== 'linux') throw new Error('The bench reads /proc and runs only on Linux.');
const folder = mkdtempSync(join(tmpdir(), 'toolhost-bench-'));

async function cleanUp(): Promise<void> {
  await stopAll();
  rmSync(folder, { recursive: true, force: true });
}

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void cleanUp().finally(() => process.exit(1)));
try {
  pinSelf();
  const { text, file, failures = [] } = await runMode(folder);
  console.log(`\n${text}`);
  if (options.write && file !== undefined) writeFileSync(join(import.meta.dirname, file), text);
  if (failures.length > 0 && !options.smallest) throw new Error(`Too slow:\n${failures.join('\n')}`);
} finally {
  await cleanUp();
}
