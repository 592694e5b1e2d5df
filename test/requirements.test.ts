import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { root, testFiles } from './files.ts';
import { requirements } from './requirements.ts';
import { runsOnEveryChange } from './sets.ts';

const citationPattern = /\[((?:spec|behaviour|mcp|sec|find|conf|imp|agent|play|rest|ship) [^\]\n]{1,30})\]/g;

/** Returns every citation in a test title, with its file. */
function findCitations(): { id: string; file: string }[] {
  return testFiles().flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(citationPattern)].map((match) => ({
      id: match[1] as string,
      file,
    })),
  );
}

describe('the list of requirements', () => {
  const cited = findCitations();

  it('includes every id that a test title cites', () => {
    const unknown = cited.filter(({ id }) => !Object.hasOwn(requirements, id));
    assert.deepEqual(unknown, [], 'add these ids to test/requirements.ts');
  });

  it('has no requirement without a test that runs on every change', () => {
    const ids = new Set(cited.filter(({ file }) => runsOnEveryChange(file)).map(({ id }) => id));
    assert.deepEqual(
      Object.keys(requirements).filter((id) => !ids.has(id)),
      [],
      'no test of `npm test` covers these requirements: add a test or remove the requirement',
    );
  });
});
