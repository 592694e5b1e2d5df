import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { variables } from '../apps/server/src/variables.ts';
import { declaredFile, formatDeclarations } from '../docs/declared.ts';
import { referencePages } from '../docs/generate.ts';

const folder = resolve(import.meta.dirname, '..', 'docs', 'reference');

describe('the reference documentation', () => {
  for (const [name, text] of Object.entries(referencePages())) {
    it(`matches the code in ${name} (npm run docs)`, () => {
      assert.ok(readFileSync(join(folder, name), 'utf8') === text, `docs/reference/${name} is stale`);
    });
  }

  it('lists each field of a nested object exactly once', () => {
    const page = referencePages()['operations.md'] ?? '';
    for (const field of ['servers[].open', 'response.status', 'members[].email'])
      assert.equal(page.split(`| \`${field}\` |`).length - 1, 1, field);
    assert.match(page, /Fields: as `servers\[\]` of \[listMcpServers\]\(#listmcpservers\)/);
  });

  it('matches the generated file of the dashboard (npm run docs)', () => {
    assert.ok(readFileSync(declaredFile, 'utf8') === formatDeclarations(), `${declaredFile} is stale`);
  });

  it('documents at most 39 environment variables', () => {
    assert.ok(Object.keys(variables).length <= 39);
  });
});
