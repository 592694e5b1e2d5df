import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getKnownInputs } from '../../bench/reports-inputs.ts';
import { buildRequests, readOperations } from '../../bench/reports-requests.ts';
import { buildFillStatements, scaleCounts } from '../../bench/reports-rows.ts';
import { fillStore } from '../../bench/reports-store.ts';
import { root } from '../files.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const quickRows = [
  'tools/call, 1 KB | bare relay',
  'tools/call, 1 KB | API key',
  "tools/call, 1 KB | caller's token",
  'tools/call, 20 KB | bare relay',
  'tools/call, 20 KB | text and structured',
  'tools/list, 200 tools, [0-9]+ KB | node:http, fixed response',
  'tools/list, 200 tools, [0-9]+ KB | the service',
  'p99 at ',
  'CPU per call with two workers',
  'memory growth after calls to more servers',
  'first call to one of them',
  'resident memory, idle',
  'peak resident memory at the end',
  'peak resident memory of the bare relay',
  'create a server through the management server',
  'ready after `bin/toolhost serve`',
];

/**
 * Arguments of each mode, and the beginnings of the rows in its report, as patterns in which | is a literal character.
 */
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
      'peak resident memory',
    ],
  ],
  [
    ['--start', 'HEAD'],
    ['CPU time until ready', 'time until ready', 'resident memory, idle'],
  ],
  [
    ['--soak'],
    [
      'alone',
      'during the attack',
      'resident memory before the load',
      'peak resident memory',
      'resident memory after the load',
      'memory slope',
      'p99 ratio of honest calls',
      'sockets before, maximum, after',
      'upstream pools and connections after the load',
      'responses to tool calls',
      'responses to calls with large responses',
      'responses to configurations',
      'responses to reports',
      'responses to invalid bearer tokens',
      'responses to rejected requests',
    ],
  ],
  [
    ['--reports'],
    ['sqlite', 'postgres'].flatMap((engine) => [
      ...readOperations.flatMap(({ name }) => ['large', 'older'].map((asker) => `${engine} | ${name} | ${asker}`)),
      `${engine} | servers |`,
      `${engine} | [0-9]+ |`,
    ]),
  ],
  [['--imports'], ['stripe.com', 'github.com', 'kubernetes.io']],
];

async function runBench(args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runToolhostCommand(args, { program: process.execPath, cwd: root });
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  return stdout;
}

describe('the smallest benchmark', () => {
  for (const [args, rows] of modes)
    it(`[ship bench] prints every row of its report: ${['npm run bench', ...args].join(' ')}`, async () => {
      const stdout = await runBench(['bench/main.ts', '--smallest', ...args]);
      const missing = rows.filter((row) => !new RegExp(`^| ${row}`.replaceAll('|', '\\|'), 'm').test(stdout));
      assert.deepEqual(missing, [], stdout);
    });

  it('[ship bench] prints the functions and files of a profile: bench/profile.ts', async () => {
    const stdout = await runBench(['bench/profile.ts', '1k', '1', '--smallest']);
    for (const title of ['self time, by function', 'self time, by file', 'total time, by function of this repository'])
      assert.match(stdout, new RegExp(`^${title}\n +[0-9.]+ %  `, 'm'));
  });
});

const upstream = 'http://127.0.0.1:9';

describe('the report benchmark', () => {
  const world = scaleCounts(0.00001, Date.now());

  const folder = useFixtures().folder();

  it('fills every table of its data set without an error', async () => {
    const store = await fillStore('sqlite', folder, world, await buildFillStatements(world, upstream));
    await store.stop();
  });

  it('has a value for each input of every reading operation', () => {
    const requests = readOperations.flatMap((op) => buildRequests(op, getKnownInputs(world, upstream)));
    assert.ok(requests.length > readOperations.length);
  });
});
