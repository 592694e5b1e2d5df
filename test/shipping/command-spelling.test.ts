import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { isPublished, passages, published, switchedPages } from '../../docs/command-spelling.ts';
import { root } from '../files.ts';
import { userPages } from '../support/pages/blocks.ts';

const pages = switchedPages.map((page) => ({ page, text: readFileSync(join(root, page), 'utf8') }));

/** Returns the matches of a pattern, each with its page. */
const matches = (list: readonly { page: string; text: string }[], pattern: RegExp) =>
  list.flatMap(({ page, text }) => [...text.matchAll(pattern)].map(([found]) => `${page}: ${found}`));

describe('the documentation', () => {
  const guides = pages.filter(({ page }) => !page.startsWith('docs/operations/'));
  const afterwards = pages.map(({ page, text }) => ({ page, text: published(page, text) }));

  it('[ship 8] uses bin/toolhost until the changelog has a version, and npx toolhost from then on', () => {
    if (isPublished()) return assert.deepEqual(pages, afterwards, 'run node docs/command-spelling.ts');
    const early = matches(guides, /npx toolhost (?!serve` will follow).*/g);
    assert.deepEqual(early, [], 'the package is not published; write bin/toolhost');
    const gone = passages.filter(([checkout]) => !pages.some(({ text }) => text.includes(checkout)));
    assert.deepEqual(gone, [], 'no page has these passages of docs/command-spelling.ts');
  });

  it('[ship 8] uses no third spelling of the command in the README, the guides, and the examples', () => {
    const examples = userPages().filter((page) => page.startsWith('examples/'));
    const all = [...guides, ...examples.map((page) => ({ page, text: readFileSync(join(root, page), 'utf8') }))];
    assert.deepEqual(matches(all, /(?<!bin\/|npx |[\w./-])toolhost (?!completion )[a-z][a-z-]+(?![\w:]).*/g), []);
  });

  it('[ship 8] needs no checkout after docs/command-spelling.ts has run', () => {
    const checkout = /.*(?:bin\/toolhost|npm (?:ci|start)|not published|checkout of this).*/g;
    const ofCheckout = /installation\.md|upgrades\.md/;
    assert.deepEqual(
      matches(afterwards, checkout).filter((found) => !ofCheckout.test(found.split(':')[0] ?? '')),
      [],
    );
  });
});
