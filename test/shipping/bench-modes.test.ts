import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readingOperations } from '../../bench/reports-requests.ts';
import { root } from '../files.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';

const quickRows = [
  'tools/call, 1 KB | bare relay',
  'tools/call, 1 KB | API key',
  "tools/call, 1 KB | caller's token",
  'tools/call, 20 KB | bare relay',
  'tools/call, 20 KB | text and structured',
  'tools/list, 200 tools, [0-9]+ KB | node:http, fixed answer',
  'tools/list, 200 tools, [0-9]+ KB | the service',
  'p99 at ',
  'CPU of a call with two workers',
  'memory added by calls to more servers',
  'first call to one of them',
  'resident memory, idle',
  'resident memory, highest',
  'the same of the bare relay',
  'create a server through the management server',
  'ready after `bin/toolhost serve`',
];

/** The arguments of each mode, and the beginnings of the rows in its report, as patterns in which | is a character. */
const modes: [args: string[], rows: string[]][] = [
  [[], [...quickRows, 'tools/call, 1 KB | API key, MCP 2026-07-28', 'tools/call, 20 KB | text only']],
  [['--quick'], quickRows],
  [
    ['--against', 'HEAD'],
    [
      'tools/call, 1 KB, API key',
      "tools/call, 1 KB, caller's token",
      'tools/call, 20 KB, API key',
      'tools/list, 200 tools',
      'resident memory, highest',
    ],
  ],
  [
    ['--soak'],
    [
      'alone',
      'beside the hostile one',
      'resident memory before the load',
      'highest',
      'after it',
      'slope of memory',
      'p99 of the others',
      'sockets before, at most, after',
      'pools and connections to upstreams, after',
      'what tool calls got',
      'what calls with large answers got',
      'what configurations got',
      'what reports got',
      'what made-up bearers got',
      'what refused requests got',
    ],
  ],
  [
    ['--reports'],
    ['sqlite', 'postgres'].flatMap((engine) => [
      ...readingOperations.flatMap(({ name }) => ['large', 'older'].map((asker) => `${engine} | ${name} | ${asker}`)),
      `${engine} | servers |`,
      `${engine} | [0-9]+ |`,
    ]),
  ],
  [['--imports'], ['stripe.com', 'github.com', 'kubernetes.io']],
];

async function run(args: string[]): Promise<string> {
  const { code, stdout, stderr } = await toolhost(args, { program: process.execPath, cwd: root });
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  return stdout;
}

describe('the bench in its smallest size', () => {
  for (const [args, rows] of modes) {
    it(`[ship bench] ends with every row of its report: ${['npm run bench', ...args].join(' ')}`, async () => {
      const stdout = await run(['bench/main.ts', '--smallest', ...args]);
      const missing = rows.filter((row) => !new RegExp(`^| ${row}`.replaceAll('|', '\\|'), 'm').test(stdout));
      assert.deepEqual(missing, [], stdout);
    });
  }

  it('[ship bench] ends with the functions and files of a profile: bench/profile.ts', async () => {
    const stdout = await run(['bench/profile.ts', '1k', '1', '--smallest']);
    for (const title of ['own time, by function', 'own time, by file', 'with what they call, our functions'])
      assert.match(stdout, new RegExp(`^${title}\n +[0-9.]+ %  `, 'm'));
  });
});
