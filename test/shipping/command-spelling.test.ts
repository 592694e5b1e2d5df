import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { isPublished, passages, published, switchedPages, withRepository } from '../../docs/command-spelling.ts';
import { root } from '../files.ts';
import { assertNone } from '../support/assert-lists.ts';
import { userPages } from '../support/pages/blocks.ts';

const pages = switchedPages.map((page) => ({ page, text: readFileSync(join(root, page), 'utf8') }));

const findMatches = (list: readonly { page: string; text: string }[], pattern: RegExp) =>
  list.flatMap(({ page, text }) => [...text.matchAll(pattern)].map(([match]) => `${page}: ${match}`));

describe('the documentation', () => {
  // Operators install the package.
  const guides = pages.filter(({ page }) => !/^docs\/(?:operations\/|tutorial-operator)/.test(page));
  const publishedPages = pages.map(({ page, text }) => ({ page, text: published(page, text) }));

  it('[ship 8] uses bin/toolhost until the changelog has a version, and npx toolhost from then on', () => {
    if (isPublished()) return assert.deepEqual(pages, publishedPages, 'run node docs/command-spelling.ts');
    const earlySpellings = findMatches(guides, /npx toolhost (?!serve` will follow).*/g);
    assert.deepEqual(earlySpellings, [], 'the package is not published; write bin/toolhost');
    const missingPassages = passages.filter(([checkout]) => !pages.some(({ text }) => text.includes(checkout)));
    assert.deepEqual(missingPassages, [], 'no page has these passages of docs/command-spelling.ts');
  });

  it('[ship 8] uses no third spelling of the command in the README, the guides, and the examples', () => {
    const examples = userPages().filter((page) => page.startsWith('examples/'));
    const allPages = [...guides, ...examples.map((page) => ({ page, text: readFileSync(join(root, page), 'utf8') }))];
    assert.deepEqual(
      findMatches(
        allPages,
        /(?<!bin\/|npx |docker exec toolhost |[\w./-])toolhost (?!completion |toolhost )[a-z][a-z-]+(?![\w:]).*/g,
      ),
      [],
    );
  });

  it('[ship 8] shows badges and the published image in the README once there is a repository', () => {
    if (isPublished()) return;
    const [readme] = pages;
    const text = withRepository(readme?.text ?? '', 'https://github.com/Example/toolhost');
    assert.match(text, /^# Toolhost\n\n\[!\[CI\]\(https:\/\/github\.com\/Example\/toolhost\/actions\//);
    assert.match(text, /`docker run --rm .* ghcr\.io\/example\/toolhost:[\d.]+`/);
    assert.doesNotMatch(text, /docker build/);
    assert.equal(withRepository(text, 'https://github.com/Example/toolhost'), text);
  });

  it('[ship 8] needs no checkout after docs/command-spelling.ts has run', () => {
    const checkout = /.*(?:bin\/toolhost|npm (?:ci|start)|not published|checkout of this).*/g;
    const checkoutPages = /installation\.md|upgrades\.md/;
    assertNone(findMatches(publishedPages, checkout), (match) => !checkoutPages.test(match.split(':')[0] ?? ''));
  });
});
