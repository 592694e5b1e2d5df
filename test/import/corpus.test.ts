import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { toJsonSchema } from '../../src/domain/config/input-schema.ts';
import { refusalsOf } from '../support/import/client-rules.ts';
import { type CorpusFile, readCorpus } from '../support/import/corpus.ts';
import { configOf, planOf } from '../support/import/plan-of.ts';
import { reportOf, reportsFile } from '../support/import/reports.ts';

const measure = join(import.meta.dirname, '..', 'support', 'import', 'measure.ts');

/** The plan of a document with everything in it and everything answered. */
function answeredPlan(text: string) {
  const everything = { include: ['*'], deprecated: true };
  const required = planOf(text).questions.filter((question) => question.required);
  const answers = required.map(({ name }) => [name, name === 'server' ? 'https://api.example.com' : 'acme']);
  return planOf(text, { ...everything, answers: Object.fromEntries(answers) });
}

describe('imports of public API descriptions', () => {
  let files: CorpusFile[];
  before(async () => {
    files = await readCorpus();
  });

  it('[imp 3] make what the reports in the repository say; npm run import-reports writes them anew', () => {
    const found = Object.fromEntries(files.map((file) => [file.name, reportOf(file)]));
    assert.deepEqual(found, JSON.parse(readFileSync(reportsFile, 'utf8')));
    assert.ok(files.length >= 30);
  });

  it('[imp 2] pass the check of configurations, and no client refuses one of their tools', () => {
    for (const { name, text } of files) {
      const { tools } = configOf(answeredPlan(text));
      assert.ok(tools.length > 0, name);
      const refusals = tools.flatMap((tool) => refusalsOf(tool, toJsonSchema(tool.input_schema)));
      assert.deepEqual(refusals, [], name);
      assert.equal(new Set(tools.map((tool) => tool.name)).size, tools.length, name);
    }
  });

  it('[imp 2] give the same bytes each time', () => {
    for (const { name, text } of files.slice(-10)) {
      assert.equal(JSON.stringify(answeredPlan(text).config), JSON.stringify(answeredPlan(text).config), name);
    }
  });

  it('[imp 3] have a proposal that fits 40 tools and 10,000 tokens', () => {
    for (const { name, text } of files) {
      const { chosen, tokens, proposal } = planOf(text, {});
      assert.ok(chosen.length > 0 && chosen.length <= 40 && tokens <= 10_000, `${name}: ${chosen.length}, ${tokens}`);
      assert.deepEqual([chosen.length, tokens], [proposal.tools, proposal.tokens], name);
    }
  });

  describe('of the largest documents', () => {
    let folder: string;
    before(() => {
      folder = mkdtempSync(join(tmpdir(), 'toolhost-import-'));
    });
    after(() => rmSync(folder, { recursive: true, force: true }));

    for (const [name, tools] of [
      ['stripe.com.json', 452],
      ['github.com/api.github.com.json', 845],
      ['kubernetes.io.json', 839],
    ] as const) {
      it(`[imp 1] ${name} takes less than five seconds of a processor and 500 MB`, async () => {
        const path = join(folder, 'document.json');
        writeFileSync(path, files.find((file) => file.name === name)?.text ?? '');
        const { stdout } = await promisify(execFile)(process.execPath, [measure, path]);
        const used = JSON.parse(stdout) as { tools: number; seconds: number; megabytes: number };
        assert.equal(used.tools, tools);
        assert.ok(used.seconds < 5 && used.megabytes < 500, stdout);
      });
    }
  });
});
