import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { referencePages } from '../docs/generate.ts';
import { variables } from '../src/config.ts';

const folder = resolve(import.meta.dirname, '..', 'docs', 'reference');

describe('the reference pages', () => {
  for (const [name, text] of Object.entries(referencePages())) {
    it(`${name} says what the code says (npm run docs)`, () => {
      assert.ok(readFileSync(join(folder, name), 'utf8') === text, `docs/reference/${name} is stale`);
    });
  }

  it('count at most 30 environment variables', () => {
    assert.ok(Object.keys(variables).length <= 30);
  });
});
