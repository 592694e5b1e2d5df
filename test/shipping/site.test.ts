import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { describe, it } from 'node:test';
import { createLinks } from '../../docs/site/links.ts';
import { readChapters } from '../../docs/site/pages.ts';
import { root } from '../files.ts';

describe('the documentation site', () => {
  it('[ship 8] contains every page of docs in its navigation', () => {
    const sources = new Set(readChapters().flatMap(({ pages }) => pages.map(({ source }) => source)));
    const missing = globSync('docs/**/*.md', { cwd: root }).filter((page) => !sources.has(page));
    assert.deepEqual(missing, [], 'add these to docs/site/navigation.ts');
  });

  it('[ship 8] reports dead links when it is built', () => {
    const pages = readChapters().flatMap((chapter) => chapter.pages);
    const page = pages.find(({ source }) => source === 'docs/operations/backup.md') ?? assert.fail();
    const links = createLinks(pages, () => new Set(['there']));
    const targets = ['sizing.md#there', '../../packages/errors/src/errors.ts', 'gone.md', 'sizing.md#gone'].map(
      (href) => links.resolve(page, href),
    );
    assert.deepEqual(targets, ['sizing.html#there', undefined, undefined, 'sizing.html#gone']);
    assert.deepEqual(links.deadLinks, [
      'docs/operations/backup.md: gone.md: there is no such file',
      'docs/operations/backup.md: sizing.md#gone: docs/operations/sizing.md has no such heading',
    ]);
  });
});
