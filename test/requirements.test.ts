import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { testFiles } from './files.ts';
import { requirements } from './requirements.ts';
import { runsWithEveryChange } from './sets.ts';

const citation = /\[((?:spec|behaviour|mcp|sec|find|conf|imp|agent|play|rest|ship) [^\]\n]{1,30})\]/g;

/** Every citation in the titles of the tests, with its file. */
function citations(): { id: string; file: string }[] {
  return testFiles().flatMap((file) =>
    [...readFileSync(join(import.meta.dirname, file), 'utf8').matchAll(citation)].map((match) => ({
      id: match[1] as string,
      file,
    })),
  );
}

describe('the requirements', () => {
  const cited = citations();

  it('are the only ones that tests cite', () => {
    const unknown = cited.filter(({ id }) => !Object.hasOwn(requirements, id));
    assert.deepEqual(unknown, [], 'add these ids to test/requirements.ts');
  });

  it('are each cited by a test that runs with every change', () => {
    const ids = new Set(cited.filter(({ file }) => runsWithEveryChange(file)).map(({ id }) => id));
    assert.deepEqual(
      Object.keys(requirements).filter((id) => !ids.has(id)),
      [],
      'no test of npm test proves these; write one, or remove the requirement',
    );
  });
});
