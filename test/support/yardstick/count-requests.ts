/**
 * Counts the files and functions of `src/` that run for a request, with the real service in a separate process and V8's
 * precise coverage. `yardstick.ts` starts it.
 *
 * The counts are exact. Requests run one by one, each until its background work has ended. Only functions that ran in
 * every round count, so a timer or a slow event loop cannot add to them. Intervals are mocked, because polling for
 * changes and writing call records once a second belong to all requests together. Anonymous functions count, modules do
 * not.
 */
import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { mock } from 'node:test';
import { setTimeout as delay, setImmediate as eventsArrived } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { defaultRuntimeOptions } from '../../../apps/server/src/process/start.ts';
import { root } from '../../files.ts';
import { openApi } from '../import/import-plans.ts';
import { startLoginWorld } from '../oauth/login-world.ts';

export type RequestCounts = { [request: string]: { files: number; functions: number } };

const warmUpRounds = 3;
const measuredRounds = 10;
/** Idle time after which the work of a request has ended. */
const idleMs = 20;
const sourceUrls = ['apps', 'packages'].map((folder) => `${pathToFileURL(join(root, folder)).href}/`);

const session = new Session();

/** Returns the functions that ran since the last call, each as its file and offset. */
async function takeCoverage(): Promise<Set<string>> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const run = new Set<string>();
  for (const { url, functions } of result) {
    if (!sourceUrls.some((sourceUrl) => url.startsWith(sourceUrl))) continue;
    for (const { functionName, ranges } of functions) {
      const { startOffset = 0, count = 0 } = ranges[0] ?? {};
      const isModule = functionName === '' && startOffset === 0;
      if (count > 0 && !isModule) run.add(`${url} ${startOffset}`);
    }
  }
  return run;
}

/** Waits until all work has ended and returns the functions that ran. */
async function takeCoverageWhenIdle(): Promise<Set<string>> {
  let all = new Set<string>();
  for (;;) {
    await delay(idleMs);
    await eventsArrived();
    const run = await takeCoverage();
    if (run.size === 0) return all;
    all = all.union(run);
  }
}

async function measureRequest(request: () => Promise<unknown>): Promise<RequestCounts[string]> {
  for (let round = 0; round < warmUpRounds; round++) await request();
  await takeCoverageWhenIdle();
  let inEveryRound: Set<string> | undefined;
  for (let round = 0; round < measuredRounds; round++) {
    await request();
    const run = await takeCoverageWhenIdle();
    inEveryRound = inEveryRound?.intersection(run) ?? run;
  }
  const functions = [...(inEveryRound ?? [])];
  return { files: new Set(functions.map((name) => name.split(' ')[0])).size, functions: functions.length };
}

mock.timers.enable({ apis: ['setInterval'] });
// Uses production settings instead of the test defaults.
const world = await startLoginWorld({
  env: { LOG_LEVEL: 'info', CALLS_PER_SECOND: '60', QUOTAS: '' },
  runtimeOptions: defaultRuntimeOptions,
});
const { toolhost, upstream } = world;
upstream.on('GET /things/7', () => ({ body: { id: 7, name: 'A thing' } }));
const thing = { name: 'run', description: 'Gets a thing by its id.', method: 'GET', url: `${upstream.url}/things/:id` };
const tools = [{ ...thing, input_schema: { id: { type: 'string', description: 'The id of the thing.' } } }];
const storedSecret = { name: 'Things', tools, authentication: { type: 'Bearer', token: '{{KEY}}' } };

await toolhost.createServer({ name: 'Things', slug: 'forwarding', tools, authentication: { type: 'Bearer' } });
await toolhost.createServer({ ...storedSecret, slug: 'storing' });
await toolhost.rest('PUT', '/servers/storing/secrets/KEY', { body: { value: 'the-secret-of-the-upstream' } });
const key = await toolhost.createKey({ scopes: ['call'] });
const loginServer = await world.createServer();
const document = JSON.stringify(
  openApi({ '/a': { get: { operationId: 'readA', summary: 'Reads the thing that is called a.' } } }),
);

async function call(slug: string, token: string): Promise<void> {
  const result = await toolhost.callTool(slug, token, 'run', { id: '7' });
  assert.notEqual(result.isError, true, JSON.stringify(result));
}

async function discover(kind: string): Promise<void> {
  const response = await fetch(`${toolhost.url}/.well-known/${kind}/mcp/${loginServer}`);
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
    await world.getTokens(await world.registerClient(loginServer));
  },
  // Coverage excludes jobs on other threads.
  'import, on the main thread': async () => {
    const { status, text } = await toolhost.rest('POST', '/import', { body: { document } });
    assert.equal(status, 200, text);
  },
};

session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const counts: RequestCounts = {};
for (const [name, request] of Object.entries(requests)) counts[name] = await measureRequest(request);
process.send?.(counts);
session.disconnect();
await world.stop();
