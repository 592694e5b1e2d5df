/** Imports the chosen documents with one version of the product, and judges their operations. */

import { readAuditDocument } from './audit-document.ts';
import type { Chosen } from './corpus/sources.ts';
import type { JsonObject } from './json.ts';
import { judgeOutcome, type OutcomeVerdict } from './judge-outcome.ts';
import { type Judges, judgeWire, type WireVerdict } from './judge-wire.ts';
import { localize } from './localize.ts';
import { type Imported, Refusal, startProduct } from './product.ts';
import type { Random } from './random.ts';
import { getVersion, readOperations } from './reader/operations.ts';
import { createSwaggerClient } from './swagger-client.ts';
import { startStub } from './wire.ts';

export type Verdict = {
  document: string;
  operation: string;
  tool: string;
  outcome: OutcomeVerdict;
  /** Undefined if there is no tool. */
  wire: WireVerdict | undefined;
  args: JsonObject;
};

export type AuditOptions = {
  /** Checkout of the audited service. */
  checkout: string;
  /** Folder with the npm packages of the audit. */
  npm: string;
  random: Random;
};

export async function audit(sources: readonly Chosen[], { checkout, npm, random }: AuditOptions): Promise<Verdict[]> {
  const stub = await startStub();
  const product = await startProduct(checkout, stub);
  const swaggerClient = createSwaggerClient(npm, stub);
  const verdicts: Verdict[] = [];
  try {
    for (const [index, source] of sources.entries()) {
      const judges = { product, stub, slug: `audit-${index}`, swaggerClient };
      verdicts.push(...(await auditDocument(source, judges, random.fork(source.name))));
    }
  } finally {
    await product.stop();
    await stub.close();
  }
  return verdicts;
}

async function auditDocument(source: Chosen, judges: Judges, random: Random): Promise<Verdict[]> {
  const document = localize(source.load(), judges.stub.url);
  let imported: Imported;
  try {
    imported = await judges.product.importDocument(JSON.stringify(document), judges.slug, source.operations);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const reason = `refused: ${error.message}`;
    return source.operations.map((operation) => skippedVerdict(source.name, operation, 'whole', [reason]));
  }
  const described = readAuditDocument(source.name, document, getVersion(document));
  const operations = new Map(readOperations(document).map((operation) => [operation.key, operation]));
  const verdicts: Verdict[] = [];
  for (const key of source.operations) {
    const operation = operations.get(key);
    const reported = imported.report.get(key);
    const [tool] = imported.tools.get(key) ?? [];
    if (!operation || !reported || !tool) {
      verdicts.push(
        skippedVerdict(source.name, key, reported ? 'skipped' : 'whole', reported?.notes ?? ['not in the report']),
      );
      continue;
    }
    const work = { described, operation, tool, random: random.fork(key) };
    const outcome = judgeOutcome(work, reported);
    const { verdict, args } = await judgeWire(work, reported, judges);
    verdicts.push({ document: source.name, operation: key, tool: tool.name, outcome, wire: verdict, args });
  }
  return verdicts;
}

function skippedVerdict(document: string, operation: string, expected: 'whole' | 'skipped', notes: string[]): Verdict {
  return {
    document,
    operation,
    tool: '',
    outcome: { expected, reported: 'skipped', notes, losses: [], otherBodies: [] },
    wire: undefined,
    args: {},
  };
}
