import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { before, describe, it } from 'node:test';
import { root } from '../files.ts';
import { assertNone } from '../support/assert-lists.ts';
import { type Block, getSkipReason, isShell, readBlocks } from '../support/pages/blocks.ts';
import { runBlocks, type Shell, signalProcessGroup, startShell } from '../support/pages/run-page.ts';
import { findFreeNeighbors, findFreePort } from '../support/upstreams/listener.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/** Returns a person's environment: the Node of the machine, and the npm settings. */
function environment(folder: string): Record<string, string> {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(?:npm_(?!config_)|NODE_|TOOLHOST_)/.test(name));
  const path = (process.env.PATH ?? '').split(delimiter).filter((entry) => !entry.includes('node_modules'));
  const ownVariables = { PATH: path.join(delimiter), XDG_CONFIG_HOME: folder, npm_config_prefer_offline: 'true' };
  return { ...(Object.fromEntries(inherited) as Record<string, string>), ...ownVariables };
}

/** Resolves once the service is ready. @throws Error with the output of the commands if they exit first */
async function waitUntilReady(child: ReturnType<typeof startShell>): Promise<void> {
  const stderr = text(child.stderr);
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (line.startsWith('toolhost ready ')) return void child.stdout.resume();
  }
  throw new Error(`${lines.join('\n')}\n${await stderr}`);
}

describe('a fresh clone', () => {
  const folder = useFixtures().folder();
  const clone = join(folder, 'toolhost');
  before(() => void execFileSync('git', ['clone', '--quiet', root, clone]));

  /**
   * Runs the commands of a page in two terminals: the first block starts the service, after the page's API, if it has
   * one. The other blocks run next to it.
   */
  async function runPageCommands(page: string): Promise<{ stdout: string; failure: string | undefined }> {
    const shouldRun = (why: string | undefined) => why === undefined || why.includes('fresh-clone.test.ts');
    const blocks = readBlocks(page).filter((block) => isShell(block) && shouldRun(getSkipReason(block)));
    const isApi = (block: Block) => getSkipReason(block)?.includes('starts it first') ?? false;
    const [start, ...otherBlocks] = blocks.filter((block) => !isApi(block));
    const startCommands = [...blocks.filter(isApi), ...(start ? [start] : [])].map(({ text: commands }) => commands);
    const port = await findFreeNeighbors();
    const replacements = new Map([
      // One installation is enough for all pages.
      ...(existsSync(join(clone, 'node_modules')) ? [['npm ci', ':'] as const] : []),
      ['127.0.0.1:8080', `127.0.0.1:${port}`],
      ['127.0.0.1:8081', `127.0.0.1:${port + 1}`],
      ['8000', String(await findFreePort())],
    ]);
    const shell: Shell = { replacements, cwd: clone, env: { ...environment(folder), PORT: String(port) } };
    rmSync(join(clone, 'data'), { recursive: true, force: true });
    const service = startShell(startCommands.join('\n'), shell);
    const closed = once(service, 'close');
    try {
      await waitUntilReady(service);
      return await runBlocks(otherBlocks, shell);
    } finally {
      signalProcessGroup(service, 'SIGTERM');
      await closed;
    }
  }

  /** Returns the output that a page shows. The service of the test has other ports. A line may end with "…". */
  const getShownOutput = (page: string) =>
    readBlocks(page)
      .filter(({ note }) => note === 'output')
      .flatMap(({ text: shown }) => shown.trim().split('\n'))
      .map((line) => line.replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT').replace(/…$/, ''));

  const pages = {
    'README.md': [/Website relaunch/, /^\[\{"id":.*"title":"Measure the loading time"/m],
    'docs/tutorial.md': [/"id":"7"/, /^Changed the tool "refund_order"/m],
  };
  for (const [page, results] of Object.entries(pages))
    it(`[ship 8] produces the documented results of ${page} when its commands are run one after another`, async () => {
      let { stdout, failure } = await runPageCommands(page);
      // A busy machine overloads the service, which then refuses calls.
      while (failure !== undefined && /service is overloaded/.test(stdout + failure))
        ({ stdout, failure } = await runPageCommands(page));
      assert.equal(failure, undefined);
      for (const result of results) assert.match(stdout, result);
      const printed = stdout.replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT');
      assertNone(getShownOutput(page), (line) => !printed.includes(`\n${line}`), 'the commands did not print these');
    });
});
