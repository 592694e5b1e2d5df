import assert from 'node:assert/strict';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createRestClient } from '../../apps/cli/src/connection/rest-client.ts';
import { listEntries, respondJson, startAdversarialService } from '../support/toolhost/adversarial-service.ts';
import { createTestFolder } from '../support/toolhost/command-world.ts';
import { type CommandResult, runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

/** Every command that reads lists or versions of a service to their end. */
const commands: readonly string[][] = [
  ['servers', 'list'],
  ['logins', 'list'],
  ['versions', 'one'],
  ['versions', 'show', 'one', '7'],
  ['versions', 'diff', 'one', '7'],
  ['calls', '--limit', '10000'],
  ['calls', '--follow'],
  ['audit', '--since', '2020-01-01', '--limit', '10000'],
  ['audit', '--follow', '--json'],
  ['export'],
  ['diff', '--label', 'mine', 'empty.yaml'],
  ['apply', '--label', 'mine', '--prune', '--yes', 'empty.yaml'],
];

type GetPage = (page: number, limit: number) => { entries: number; next: string };

/** Other lists without an end. All commands follow cursors through one file, which the last test checks. */
const endlessLists: { [name: string]: GetPage } = {
  'pages without entries': (page) => ({ entries: 0, next: `c${page}` }),
  'a cursor that is too long': (page) => ({ entries: 1, next: `c${page}`.padEnd(501, 'x') }),
  'pages that are larger than asked for': (page, limit) => ({ entries: limit + 1, next: `c${page}` }),
};

describe('commands that read lists of an adversarial service', async () => {
  const service = await startAdversarialService();
  after(() => service.close());
  const folder = createTestFolder();
  writeFileSync(join(folder, 'empty.yaml'), '---\n# no server\n---\n');
  const run = (args: readonly string[]) => runToolhostCommand(args, { env: service.env, cwd: folder });
  const assertRefused = ({ code, stdout, stderr }: CommandResult, reason: RegExp, args: readonly string[]) => {
    const context = `${args.join(' ')}: ${stderr.slice(0, 500)}`;
    assert.deepEqual([code, stdout], [1, ''], context);
    assert.match(stderr, reason, context);
    assert.match(stderr, args.includes('--json') ? /^\{.*\}\n$/ : /^error: [^\n]+\n$/, context);
  };
  const serveList = (getPage: GetPage) => {
    let pages = 0;
    service.respondWith(
      respondJson((path, query) => {
        const list = listEntries[path];
        if (!list) return undefined;
        const { entries, next } = getPage(pages++, Number(query.get('limit')));
        const first = pages * 1000;
        const listItems = Array.from({ length: entries }, (_, index) => list.entry(first + index));
        return { [list.field]: listItems, next_cursor: next };
      }),
    );
  };

  /** Runs a command on a list without an end, and asserts that the command stops. */
  async function assertStops(args: readonly string[], getPage: GetPage) {
    serveList(getPage);
    assertRefused(await run(args), /the service returned/, args);
    assert.ok(service.requests.length <= 110, `${args.join(' ')}: ${service.requests.length} requests`);
  }

  it('[sec R1] stop at a repeated cursor', async () => {
    for (const args of commands) await assertStops(args, (page) => ({ entries: 1, next: `c${page % 3}` }));
  });

  for (const [name, getPage] of Object.entries(endlessLists)) {
    it(`[sec R1] stop at ${name}`, () => assertStops(['servers', 'list'], getPage));
  }

  it('[sec R1] stop after 2,000 pages that each have an entry and a new cursor', async () => {
    serveList((page) => ({ entries: 1, next: `c${page}` }));
    assertRefused(await run(['servers', 'list']), /more than 2000 pages/, ['servers', 'list']);
    assert.equal(service.requests.length, 2000);
  });

  it('[sec R1] reject a response that is too large, too deeply nested, or has too many values, with any status', async () => {
    const respondEndlessly = (chunk: string, status: number) =>
      service.respondWith((_request, response) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        const text = chunk.repeat(Math.ceil(65_536 / chunk.length));
        const write = () => {
          while (!response.destroyed && response.write(text));
        };
        response.on('drain', write);
        response.write('[');
        write();
      });
    for (const status of [200, 500]) {
      respondEndlessly('"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",', status);
      assertRefused(await run(['servers', 'get', 'one']), /larger than 64 MB/, [String(status)]);
    }
    const respondWith = (text: string) => service.respondWith((_request, response) => void response.end(text));
    respondWith('['.repeat(200_000) + ']'.repeat(200_000));
    assertRefused(await run(['servers', 'get', 'one']), /nested deeper than 128 levels/, ['deep']);
    respondWith(`[${'[],'.repeat(5_000_000)}0]`);
    assertRefused(await run(['servers', 'get', 'one']), /more than 1000000 values/, ['rich']);
  });

  it('[sec R1] time out on a response that never ends, before and within its body', async () => {
    const credential = { token: 'some-key' };
    for (const start of ['', '{"servers":']) {
      service.respondWith((_request, response) => {
        if (start !== '') response.write(start);
        const timer = setInterval(() => start !== '' && response.write(' '), 20);
        response.on('close', () => clearInterval(timer));
      });
      const client = createRestClient({ url: service.url, credential }, 300);
      await assert.rejects(client.run('listMcpServers', { limit: 1 }), /the response was not complete in time/);
    }
    service.respondWith((_request, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('{', () => response.destroy());
    });
    assertRefused(await run(['servers', 'list']), /cannot be reached: /, ['broken off']);
  });

  it('[sec R1] follow cursors in one source file and read responses in another', () => {
    const root = join(import.meta.dirname, '../../apps/cli/src');
    const filesMatching = (pattern: RegExp) =>
      globSync('**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] })
        .filter((file) => pattern.test(readFileSync(join(root, file), 'utf8')))
        .toSorted();
    assert.deepEqual(filesMatching(/\bcursor = /), ['connection/lists.ts']);
    const reading = /\.(?:json|text|arrayBuffer|blob|bytes)\(\)|\.body\b[^;]*\?\?/;
    assert.deepEqual(filesMatching(reading), ['connection/rest-client.ts']);
  });
});
