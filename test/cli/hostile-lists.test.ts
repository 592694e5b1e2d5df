import assert from 'node:assert/strict';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createRestClient } from '../../src/cli/connection/rest-client.ts';
import {
  answersJson,
  type HostileService,
  listedEntries,
  startHostileService,
} from '../support/toolhost/hostile-service.ts';
import { type Ended, toolhost } from '../support/toolhost/toolhost-command.ts';

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

/** Other lists without an end. All commands follow cursors through one file, which the last test checks. */
const endless: { [name: string]: (page: number, limit: number) => { entries: number; next: string } } = {
  'pages without entries': (page) => ({ entries: 0, next: `c${page}` }),
  'a cursor that is too long': (page) => ({ entries: 1, next: `c${page}`.padEnd(501, 'x') }),
  'pages that are larger than asked for': (page, limit) => ({ entries: limit + 1, next: `c${page}` }),
};

describe('commands that read lists of an adversarial service', () => {
  let hostile: HostileService;
  let folder: string;
  before(async () => {
    hostile = await startHostileService();
    folder = mkdtempSync(join(tmpdir(), 'toolhost-hostile-'));
    writeFileSync(join(folder, 'empty.yaml'), '---\n# no server\n---\n');
  });
  after(() => {
    hostile.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const run = (args: readonly string[]) => toolhost(args, { env: hostile.env, cwd: folder });
  const refused = ({ code, stdout, stderr }: Ended, why: RegExp, args: readonly string[]) => {
    const what = `${args.join(' ')}: ${stderr.slice(0, 500)}`;
    assert.deepEqual([code, stdout], [1, ''], what);
    assert.match(stderr, why, what);
    assert.match(stderr, args.includes('--json') ? /^\{.*\}\n$/ : /^error: [^\n]+\n$/, what);
  };
  const lists = (pageOf: (page: number, limit: number) => { entries: number; next: string }) => {
    let pages = 0;
    hostile.answers(
      answersJson((path, query) => {
        const list = listedEntries[path];
        if (!list) return undefined;
        const { entries, next } = pageOf(pages++, Number(query.get('limit')));
        const first = pages * 1000;
        const found = Array.from({ length: entries }, (_, index) => list.entry(first + index));
        return { [list.field]: found, next_cursor: next };
      }),
    );
  };

  /** Runs a command on a list without an end, and asserts that the command stops. */
  async function ends(
    args: readonly string[],
    pageOf: (page: number, limit: number) => { entries: number; next: string },
  ) {
    lists(pageOf);
    refused(await run(args), /the service returned/, args);
    assert.ok(hostile.requests.length <= 110, `${args.join(' ')}: ${hostile.requests.length} requests`);
  }

  it('[sec R1] stop at a repeated cursor', async () => {
    for (const args of commands) await ends(args, (page) => ({ entries: 1, next: `c${page % 3}` }));
  });

  for (const [name, pageOf] of Object.entries(endless)) {
    it(`[sec R1] stop at ${name}`, () => ends(['servers', 'list'], pageOf));
  }

  it('[sec R1] stop after 2,000 pages that each have an entry and a new cursor', async () => {
    lists((page) => ({ entries: 1, next: `c${page}` }));
    refused(await run(['servers', 'list']), /more than 2000 pages/, ['servers', 'list']);
    assert.equal(hostile.requests.length, 2000);
  });

  it('[sec R1] reject a response that is too large, too deeply nested, or has too many values, with any status', async () => {
    const endlessly = (piece: string, status: number) =>
      hostile.answers((_request, response) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        const text = piece.repeat(Math.ceil(65_536 / piece.length));
        const write = () => {
          while (!response.destroyed && response.write(text));
        };
        response.on('drain', write);
        response.write('[');
        write();
      });
    for (const status of [200, 500]) {
      endlessly('"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",', status);
      refused(await run(['servers', 'get', 'one']), /larger than 64 MB/, [String(status)]);
    }
    const says = (text: string) => hostile.answers((_request, response) => void response.end(text));
    says('['.repeat(200_000) + ']'.repeat(200_000));
    refused(await run(['servers', 'get', 'one']), /nested deeper than 128 levels/, ['deep']);
    says(`[${'[],'.repeat(5_000_000)}0]`);
    refused(await run(['servers', 'get', 'one']), /more than 1000000 values/, ['rich']);
  });

  it('[sec R1] time out on a response that never ends, before and within its body', async () => {
    const credential = { token: 'some-key' };
    for (const start of ['', '{"servers":']) {
      hostile.answers((_request, response) => {
        if (start !== '') response.write(start);
        const timer = setInterval(() => start !== '' && response.write(' '), 20);
        response.on('close', () => clearInterval(timer));
      });
      const client = createRestClient({ url: hostile.url, credential }, 300);
      await assert.rejects(client.run('listMcpServers', { limit: 1 }), /the response was not complete in time/);
    }
    hostile.answers((_request, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('{', () => response.destroy());
    });
    refused(await run(['servers', 'list']), /cannot be reached: /, ['broken off']);
  });

  it('[sec R1] follow cursors in one source file and read responses in another', () => {
    const root = join(import.meta.dirname, '../../src/cli');
    const having = (pattern: RegExp) =>
      globSync('**/*.ts', { cwd: root })
        .filter((file) => pattern.test(readFileSync(join(root, file), 'utf8')))
        .toSorted();
    assert.deepEqual(having(/\bcursor = /), ['connection/lists.ts']);
    assert.deepEqual(having(/\.(?:json|text|arrayBuffer|blob|bytes)\(\)|\.body\b[^;]*\?\?/), [
      'connection/rest-client.ts',
    ]);
  });
});
