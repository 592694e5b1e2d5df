import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { outcomes } from '@toolhost/errors/errors';
import { root } from '../files.ts';
import { isFullSuite } from '../sets.ts';
import { assertNone } from '../support/assert-lists.ts';
import { type Block, getSkipReason, isShell, readBlocks, userPages } from '../support/pages/blocks.ts';
import { checkConfigurations } from '../support/pages/check-configurations.ts';
import { runPage } from '../support/pages/run-page.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const advice = 'explain why in a comment before the block, <!-- not run: … -->, or make it run';
/** Commands that exist on the reader's machine, but that a test cannot provide for every page. */
const unavailableCommands = /^(?:sudo |docker |kubectl |helm |npm |npx (?!toolhost )|claude |systemctl |brew )/m;

/** A described API. The upstream echoes every other request. */
const apiDescription = {
  openapi: '3.1.0',
  info: { title: 'Shop', version: '1' },
  paths: {
    '/orders': { get: { operationId: 'listOrders', summary: 'List the orders', tags: ['orders'], responses: {} } },
  },
};

describe('the commands on the documentation pages', { concurrency: 2 }, () => {
  const upstream = useFixtures().start(startRecordingUpstream);
  before(() =>
    upstream.on('GET /openapi.json', () => ({ body: { ...apiDescription, servers: [{ url: upstream.url }] } })),
  );

  for (const page of isFullSuite ? userPages() : ['README.md', 'docs/rest-api.md']) {
    const blocks = readBlocks(page);
    const shellBlocks = blocks.filter(isShell).filter((block) => getSkipReason(block) === undefined);
    if (shellBlocks.length > 0) {
      it(`[ship 8] runs the commands of ${page} unchanged`, async () => {
        const blocksToMark = shellBlocks
          .filter(({ text }) => unavailableCommands.test(text))
          .map(({ line }) => `${page}:${line}`);
        assert.deepEqual(blocksToMark, [], advice);
        const failure = await runPage(shellBlocks, upstream);
        assert.equal(failure, undefined, `${failure}\n${advice}`);
      });
    }
  }

  it('[ship 8] finds shell commands only in blocks that are marked as shell blocks', () => {
    const looksLikeShell = ({ text }: Block) => /^\$ |^(?:bin\/)?toolhost \w|^curl |^npm |^docker /m.test(text);
    const unmarkedBlocks = userPages()
      .flatMap(readBlocks)
      .filter((block) => block.language === '' && looksLikeShell(block) && getSkipReason(block) === undefined)
      .map(({ page, line }) => `${page}:${line}`);
    assert.deepEqual(unmarkedBlocks, [], `start these blocks with \`\`\`sh, or ${advice}`);
  });

  it('[ship 8] finds no page that needs jq, which many machines do not have', () => {
    const pages = [...userPages(), 'docs/reference/command-line.md'];
    assertNone(pages, (page) => /\bjq\b/.test(readFileSync(join(root, page), 'utf8')));
  });

  it('[ship 8] finds every test that a page names for its commands', () => {
    const missing = userPages()
      .flatMap(readBlocks)
      .flatMap((block) =>
        [...(getSkipReason(block) ?? '').matchAll(/test\/[\w/.-]+\.ts/g)].map(([path]) => ({ block, path })),
      )
      .filter(({ path }) => !existsSync(join(root, path)))
      .map(({ block: { page, line }, path }) => `${page}:${line} ${path}`);
    assert.deepEqual(missing, []);
  });

  it('[ship 8] finds a remedy for each outcome of a call', () => {
    const page = readFileSync(join(root, 'docs', 'troubleshooting.md'), 'utf8');
    assertNone(outcomes, (outcome) => outcome !== 'ok' && !page.includes(`\n| \`${outcome}\` |`));
  });

  it('[ship 8] accepts every configuration on the pages', async () => {
    const configErrors: unknown[] = [];
    for (const page of userPages()) configErrors.push(...(await checkConfigurations(readBlocks(page))));
    assert.deepEqual(configErrors, []);
  });
});
