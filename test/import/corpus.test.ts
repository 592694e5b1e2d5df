import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, it } from 'node:test';
import { toJsonSchema } from '@toolhost/tool-config/input-schema';
import { listRejections } from '../support/import/client-rules.ts';
import { type CorpusFile, readCorpus, readRandomDescriptions } from '../support/import/corpus.ts';
import { createReport, reportsFile } from '../support/import/corpus-reports.ts';
import { expectedTools } from '../support/import/expected-tools.ts';
import { getValidConfig, planDocument } from '../support/import/import-plans.ts';

/** Plans an import with every operation included and every required question answered. */
function planWithAnswers(text: string) {
  const plan = planDocument(text);
  const required = plan.questions.filter((question) => question.required);
  if (required.length === 0) return plan;
  const answers = required.map(({ name }) => [name, name === 'server' ? 'https://api.example.com' : 'acme']);
  return planDocument(text, { include: ['*'], deprecated: true, answers: Object.fromEntries(answers) });
}

describe('import of public API descriptions', () => {
  let files: CorpusFile[];
  let randomFiles: CorpusFile[];
  before(async () => {
    files = await readCorpus();
    randomFiles = await readRandomDescriptions();
  });

  it('[imp 3] matches the stored reports (update them with npm run import-reports)', () => {
    const reports = Object.fromEntries(files.map((file) => [file.name, createReport(file)]));
    assert.deepEqual(reports, JSON.parse(readFileSync(reportsFile, 'utf8')));
    assert.ok(files.length >= 30);
  });

  it('[imp 2] passes the configuration check, and creates no tool that a client rejects', () => {
    for (const { name, text } of [...files, ...randomFiles]) {
      const { slug, tools } = getValidConfig(planWithAnswers(text));
      assert.ok(tools.length > 0, name);
      const refusals = tools.flatMap((tool) => listRejections(tool, toJsonSchema(tool.input_schema)));
      assert.deepEqual(refusals, [], name);
      // Tool names as Claude Code builds them.
      const names = tools.map((tool) => `mcp__${slug}__${tool.name}`);
      assert.deepEqual(
        names.filter((one) => one.length > 64),
        [],
        name,
      );
      assert.equal(new Set(names).size, tools.length, name);
    }
  });

  it('[imp 3] loses nothing in 99.5% of the operations and 95% of the documents, with fifty more documents', () => {
    const counts = [...files, ...randomFiles].map(({ text }) => planDocument(text).counts);
    const sum = (getCount: (one: (typeof counts)[number]) => number) =>
      counts.reduce((total, one) => total + getCount(one), 0);
    const operations = sum((one) => one.operations);
    const lossy = sum(({ partial, skipped }) => partial + skipped);
    const wholeDocuments = counts.filter(({ partial, skipped }) => partial + skipped === 0).length;
    assert.ok(lossy <= 0.005 * operations, `${lossy} of ${operations} operations are partial or skipped`);
    assert.ok(wholeDocuments >= 0.95 * counts.length, `${wholeDocuments} of ${counts.length} documents are whole`);
  });

  it('[imp 3] proposes the tools that agents need of well-known APIs', () => {
    for (const { file, atLeast, operations } of expectedTools) {
      const { text } = files.find(({ name }) => name === file) ?? assert.fail(file);
      const { chosen } = planDocument(text, {});
      const names = new Set(chosen.map(({ operation: { method, path } }) => `${method} ${path}`));
      const missing = operations.filter((operation) => !names.has(operation));
      assert.ok(operations.length - missing.length >= atLeast, `${file} lacks ${missing.join(', ')}`);
    }
  });

  it('[imp 3] proposes at most 40 tools and 10,000 tokens', () => {
    for (const { name, text } of files) {
      const { chosen, tokens, proposal } = planDocument(text, {});
      assert.ok(chosen.length > 0 && chosen.length <= 40 && tokens <= 10_000, `${name}: ${chosen.length}, ${tokens}`);
      assert.deepEqual([chosen.length, tokens], [proposal.tools, proposal.tokens], name);
    }
  });
});
