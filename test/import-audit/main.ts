/**
 * Compares the requests of imported tools and the reported import outcomes with independent readers of the documents,
 * which share no code with the import. `--against COMMIT` lists the operations that got worse since that commit.
 */
import { rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../files.ts';
import { type AuditOptions, audit } from './audit.ts';
import { prepareCache } from './cache.ts';
import { chooseSources } from './corpus/sources.ts';
import { createRandom } from './random.ts';
import { listRegressions, unpackCommit } from './regressions.ts';
import { formatReport, isGoalReached, makeReport } from './report.ts';

const { values } = parseArgs({
  options: {
    documents: { type: 'string', default: '300' },
    operations: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
    against: { type: 'string' },
    json: { type: 'string' },
  },
});

const cache = await prepareCache();
const random = createRandom(Number(values.seed));
const sources = await chooseSources(cache, random, Number(values.documents), Number(values.operations));
const options: AuditOptions = { checkout: root, npm: cache.npm, random };
const verdicts = await audit(sources, options);
const report = makeReport(verdicts);
process.stdout.write(formatReport(report));

let regressions: string[] | undefined;
if (values.against !== undefined) {
  const checkout = await unpackCommit(values.against);
  const before = await audit(sources, { ...options, checkout });
  await rm(dirname(checkout), { recursive: true });
  process.stdout.write(`\nAt ${values.against}:\n${formatReport(makeReport(before))}`);
  regressions = listRegressions(before, verdicts);
  const listed = regressions.map((one) => `  ${one}\n`).join('');
  process.stdout.write(`\nOperations that got worse since ${values.against}: ${regressions.length}\n${listed}`);
}
if (values.json !== undefined)
  await writeFile(values.json, JSON.stringify({ ...values, report, worse: regressions, verdicts }, null, 1));
process.exitCode = isGoalReached(report) && (regressions?.length ?? 0) === 0 ? 0 : 1;
