import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { root } from '../files.ts';
import { readBlocks } from '../support/pages/blocks.ts';
import { formatTranscript, runScript } from '../support/toolhost/run-script.ts';

const packageNames = readdirSync(join(root, 'packages'));

function getModules(name: string): string[] {
  const manifest = readFileSync(join(root, 'packages', name, 'package.json'), 'utf8');
  const { exports } = JSON.parse(manifest) as { exports: Record<string, string> };
  return Object.keys(exports).map((key) => key.replace(/^\.\//, ''));
}

/** Returns the names in the module table of a README: cells of code, each followed by a description. */
function readModuleTable(name: string): string[] {
  const page = readFileSync(join(root, 'packages', name, 'README.md'), 'utf8');
  return [...page.matchAll(/(?<=^\|.*)(?<=\| )`([^`]+)`(?= \| [^|\s])/gm)].map(([, module = '']) => module);
}

describe('the README files of the packages', () => {
  let folder: string;
  before(() => {
    // Node finds `@toolhost/*` only for files inside the repository.
    const cache = join(root, 'node_modules', '.cache');
    mkdirSync(cache, { recursive: true });
    folder = mkdtempSync(join(cache, 'package-readmes-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const name of packageNames) {
    it(`lists every public module of @toolhost/${name} in the table of its README, and no others`, () => {
      assert.deepEqual(readModuleTable(name).toSorted(), getModules(name).toSorted());
    });

    it(`runs the example in the README of @toolhost/${name} and gets the output that its comments show`, async () => {
      const examples = readBlocks(`packages/${name}/README.md`).filter(({ language }) => language === 'ts');
      assert.equal(examples.length, 1, 'the README needs exactly one ts block');
      const [{ text: code } = assert.fail()] = examples;
      assert.match(code, new RegExp(`from '@toolhost/${name}/`));
      const expectedLines = [...code.matchAll(/^\/\/ → (.*)$/gm)].map(([, line = '']) => line);
      assert.ok(expectedLines.length > 0, 'the example needs a comment // → with the expected output');
      // Node does not strip types below node_modules, so the examples contain no type annotations.
      const script = join(folder, `${name}.mjs`);
      writeFileSync(script, code);
      const run = await runScript(script, [], folder);
      assert.equal(run.code, 0, formatTranscript(run));
      assert.deepEqual(run.stdout.trimEnd().split('\n'), expectedLines);
    });
  }
});
