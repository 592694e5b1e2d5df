/**
 * Counts the files and functions of `src/` that run for a request: the real service in a process of its own, by V8's
 * precise coverage. `yardstick.ts` starts it.
 *
 * The counts are exact. One request is made at a time, up to the end of the work that it leaves behind. Only what ran in
 * every round counts, not what a timer or a slow turn of the event loop adds to some of them. Intervals stand still: the
 * looks for changes, and the writing of records once a second, are done for all requests together. Functions count with
 * a name or without, and modules themselves do not.
 */
import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { mock } from 'node:test';
import { setTimeout as delay, setImmediate as eventsArrived } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { defaultRuntimeOptions } from '../../../src/process/start.ts';
import { root } from '../../files.ts';
import { openApi } from '../import/plan-of.ts';
import { startLoginWorld } from '../oauth/login-world.ts';

export type RequestCounts = { [request: string]: { files: number; functions: number } };

const warmUpRounds = 3;
const measuredRounds = 10;
/** Nothing of `src/` runs for so long when the work of a request has ended. */
const quietMs = 20;
const source = `${pathToFileURL(join(root, 'src')).href}/`;

const session = new Session();

/** The functions that ran since the last look, each as its file and its offset there. */
async function takeRun(): Promise<Set<string>> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const run = new Set<string>();
  for (const { url, functions } of result) {
    if (!url.startsWith(source)) continue;
    for (const { functionName, ranges } of functions) {
      const { startOffset = 0, count = 0 } = ranges[0] ?? {};
      const isModule = functionName === '' && startOffset === 0;
      if (count > 0 && !isModule) run.add(`${url} ${startOffset}`);
    }
  }
  return run;
}

/** The functions that ran, once the work that is under way has ended. */
async function takeRunToItsEnd(): Promise<Set<string>> {
  let all = new Set<string>();
  for (;;) {
    await delay(quietMs);
    await eventsArrived();
    const run = await takeRun();
    if (run.size === 0) return all;
    all = all.union(run);
  }
}

async function countOf(request: () => Promise<unknown>): Promise<RequestCounts[string]> {
  for (let round = 0; round < warmUpRounds; round++) await request();
  await takeRunToItsEnd();
  let inEvery: Set<string> | undefined;
  for (let round = 0; round < measuredRounds; round++) {
    await request();
    const run = await takeRunToItsEnd();
    inEvery = inEvery?.intersection(run) ?? run;
  }
  const functions = [...(inEvery ?? [])];
  return { files: new Set(functions.map((name) => name.split(' ')[0])).size, functions: functions.length };
}

mock.timers.enable({ apis: ['setInterval'] });
// The settings of operators instead of those that are usual in tests.
const world = await startLoginWorld({
  env: { LOG_LEVEL: 'info', CALLS_PER_SECOND: '60', QUOTAS: '' },
  surroundings: defaultRuntimeOptions,
});
const { toolhost, upstream } = world;
upstream.on('GET /things/7', () => ({ body: { id: 7, name: 'A thing' } }));
const thing = { name: 'run', description: 'Gets a thing by its id.', method: 'GET', url: `${upstream.url}/things/:id` };
const tools = [{ ...thing, input_schema: { id: { type: 'string', description: 'The id of the thing.' } } }];
const storedSecret = { name: 'Things', tools, authentication: { type: 'Bearer', token: '{{KEY}}' } };

await toolhost.createServer({ name: 'Things', slug: 'forwarding', tools, authentication: { type: 'Bearer' } });
await toolhost.createServer({ ...storedSecret, slug: 'storing' });
await toolhost.rest('PUT', '/servers/storing/secrets/KEY', { body: { value: 'the-secret-of-the-upstream' } });
const key = await toolhost.key({ scopes: ['call'] });
const loginServer = await world.serve();
const document = JSON.stringify(
  openApi({ '/a': { get: { operationId: 'readA', summary: 'Reads the thing that is called a.' } } }),
);

async function call(slug: string, token: string): Promise<void> {
  const result = await toolhost.callTool(slug, token, 'run', { id: '7' });
  assert.notEqual(result.isError, true, JSON.stringify(result));
}

async function discover(what: string): Promise<void> {
  const response = await fetch(`${toolhost.url}/.well-known/${what}/mcp/${loginServer}`);
  assert.equal(response.status, 200, await response.text());
}

let created = 0;
const requests: { [name: string]: () => Promise<unknown> } = {
  "call with the caller's token": () => call('forwarding', 'token-of-the-caller'),
  'call with a key and a stored secret': () => call('storing', key),
  'createMcpServer over REST': () => toolhost.createServer({ ...storedSecret, slug: `made-${++created}` }),
  'login from discovery to token': async () => {
    await discover('oauth-protected-resource');
    await discover('oauth-authorization-server');
    await world.tokens(await world.client(loginServer));
  },
  // Jobs on other threads do not count.
  'import, on the main thread': async () => {
    const { status, text } = await toolhost.rest('POST', '/import', { body: { document } });
    assert.equal(status, 200, text);
  },
};

session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const counts: RequestCounts = {};
for (const [name, request] of Object.entries(requests)) counts[name] = await countOf(request);
process.send?.(counts);
session.disconnect();
await world.stop();
