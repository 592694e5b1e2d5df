import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startManagementAgent } from '../support/oauth/management-agent.ts';
import { callGet, callGetTimes, countStatus, getErrorMessage } from '../support/tool-calls.ts';
import { runOperatorOperation } from '../support/toolhost/run-operator-operation.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

const token = 'token-of-the-caller';
const defaultLimits = { CALLS_PER_SECOND: '60', CONCURRENT_CALLS: '50', CONCURRENT_CALLS_PER_KEY: '20' };
const noUse = { running: 0, waiting: 0, refused: 0 };

describe('configured limits', async () => {
  let slug: string;
  let count = 0;
  const { upstream, toolhost, stop } = await startToolhostWithUpstream({ env: defaultLimits });
  const manager = await startManagementAgent(toolhost, await toolhost.createKey());
  after(stop);
  beforeEach(async () => {
    slug = `set-${++count}`;
    await toolhost.createServer(buildServerAt(slug, upstream.url));
    const none = { calls_per_second: null, concurrent_calls: null };
    await runOperatorOperation(toolhost, 'setWorkspaceLimits', 'local', none);
    upstream.on('*', () => ({ body: {} }));
    upstream.take();
  });

  const call = () => callGet(toolhost, slug, token);
  const getLimits = async () => (await toolhost.rest('GET', `/servers/${slug}/limits`)).body;
  const setLimits = (body: Json, key?: string) =>
    toolhost.rest('PATCH', `/servers/${slug}/limits`, { body, ...(key !== undefined && { key }) });

  it('are shown with their origin and current use', async () => {
    assert.deepEqual(await getLimits(), {
      slug,
      calls_per_second: { limit: 60, from: 'default' },
      concurrent_calls: { limit: 50, from: 'default' },
      concurrent_calls_per_key: 20,
      use: noUse,
      workspace: {
        calls_per_second: { limit: 300, from: 'default' },
        concurrent_calls: { limit: 250, from: 'default' },
        use: noUse,
      },
      upstreams: [{ origin: upstream.url, state: 'closed', calls: 0, failures: 0 }],
    });
  });

  it('apply immediately in both directions, and are not part of the configuration', async () => {
    const versionBefore = ((await toolhost.rest('GET', `/servers/${slug}`)).body.server as Json).version;
    const reply = await setLimits({ concurrent_calls: 1 });
    assert.equal(reply.status, 200);
    assert.deepEqual(reply.body.concurrent_calls, { limit: 1, from: 'set', set: 1 });
    upstream.on('*', () => 'hold');
    const calls = [call(), call(), call()];
    const first = await upstream.waitForRequest();
    await eventually(async () => assert.deepEqual((await getLimits()).use, { running: 1, waiting: 2, refused: 0 }));
    assert.equal(upstream.requests.length, 1);
    // The next call finds free slots, but queues behind the waiting calls.
    await setLimits({ concurrent_calls: 100 });
    calls.push(call());
    await upstream.waitForRequest(4);
    upstream.on('*', () => ({ body: {} }));
    for (const request of [first, ...upstream.requests]) request.release({ body: {} });
    assert.equal(countStatus(await Promise.all(calls), 200), 4);
    const { body } = await toolhost.rest('PATCH', `/servers/${slug}`, { body: { description: 'Changed.' } });
    assert.equal((body.server as Json).version, Number(versionBefore) + 1);
    assert.deepEqual((await getLimits()).concurrent_calls, { limit: 100, from: 'set', set: 100 });
    assert.ok(!(await toolhost.rest('GET', `/servers/${slug}/versions`)).text.includes('concurrent'));
  });

  it('reject calls and count the rejections', async () => {
    await setLimits({ calls_per_second: 1 });
    const replies = await callGetTimes(toolhost, slug, token, 30);
    const refused = replies.filter((reply) => reply.status === 429);
    assert.ok(refused.length >= 3, String(refused.length));
    const message = getErrorMessage(refused[0]);
    assert.match(message, /this server gets at most 1 per second\. The call was not made; retry in \d s/);
    assert.equal(((await getLimits()).use as Json).refused, refused.length);
  });

  it('are changed individually and return to the default with null', async () => {
    await setLimits({ calls_per_second: 7, concurrent_calls: 8 });
    await setLimits({ calls_per_second: null });
    assert.equal((await setLimits({})).status, 200);
    const { calls_per_second, concurrent_calls } = await getLimits();
    assert.deepEqual([calls_per_second, (concurrent_calls as Json).limit], [{ limit: 60, from: 'default' }, 8]);
  });

  it('may exceed the default, but are capped by the workspace limits that the operator sets', async () => {
    await setLimits({ calls_per_second: 200, concurrent_calls: 90 });
    const workspace = await runOperatorOperation(toolhost, 'setWorkspaceLimits', 'local', { concurrent_calls: 2 });
    assert.deepEqual(workspace.concurrent_calls, { limit: 2, from: 'set', set: 2 });
    const shown = await getLimits();
    assert.deepEqual(shown.calls_per_second, { limit: 200, from: 'set', set: 200 });
    assert.deepEqual(shown.concurrent_calls, { limit: 2, from: 'workspace', set: 90 });
    upstream.on('*', () => 'hold');
    const calls = [call(), call(), call()];
    await upstream.waitForRequest(2);
    await eventually(async () => assert.equal(((await getLimits()).use as Json).waiting, 1));
    upstream.on('*', () => ({ body: {} }));
    for (const request of upstream.requests) request.release({ body: {} });
    await Promise.all(calls);
    await runOperatorOperation(toolhost, 'setWorkspaceLimits', 'local', { concurrent_calls: null });
    assert.deepEqual((await getLimits()).concurrent_calls, { limit: 90, from: 'set', set: 90 });
  });

  it('report the allowed values when a value is invalid', async () => {
    for (const wrong of [0, -1, 1.5, 100_001, 'five', true]) {
      const { status, body } = await setLimits({ concurrent_calls: wrong });
      assert.deepEqual([status, (body.problems as Json[])[0]?.path], [400, 'concurrent_calls'], String(wrong));
    }
    assert.equal((await setLimits({ concurrent: 5 })).status, 400);
    assert.deepEqual((await getLimits()).concurrent_calls, { limit: 50, from: 'default' });
  });

  it('can be read but not set by a viewer, and set by a key only for its own server', async () => {
    const viewer = await toolhost.createKey({ scopes: ['manage:read'] });
    assert.equal((await toolhost.rest('GET', `/servers/${slug}/limits`, { key: viewer })).status, 200);
    assert.equal((await toolhost.rest('GET', '/workspace/limits', { key: viewer })).status, 200);
    assert.equal((await setLimits({ concurrent_calls: 5 }, viewer)).status, 403);
    const asTool = await manager.callTool('setServerLimits', { slug, concurrent_calls: 5 }, viewer);
    assert.equal(asTool.isError, true);
    assert.deepEqual((await getLimits()).concurrent_calls, { limit: 50, from: 'default' });
    const limited = await toolhost.createKey({ servers: [slug] });
    assert.equal((await setLimits({ concurrent_calls: 5 }, limited)).status, 200);
    assert.equal((await toolhost.rest('GET', '/workspace/limits', { key: limited })).status, 403);
    const other = await toolhost.rest('PATCH', '/servers/set-1x/limits', { key: limited, body: {} });
    assert.equal(other.status, 404);
  });

  it('are available as management server tools, which describe them in words', async () => {
    const { text, output } = await manager.expectSuccess('setServerLimits', { slug, calls_per_second: 5 });
    assert.match(text, /accepts 5 \(set\) calls per second and runs 50 \(default\) concurrently\./);
    assert.deepEqual((output as Json).calls_per_second, { limit: 5, from: 'set', set: 5 });
    const shown = await manager.expectSuccess('getServerLimits', { slug });
    assert.match(shown.text, /Now: 0 running, 0 waiting, 0 refused/);
    const workspace = await manager.expectSuccess('getWorkspaceLimits');
    assert.deepEqual(workspace.output.concurrent_calls, { limit: 250, from: 'default' });
  });

  it('of the workspace cannot be set through any interface', async () => {
    const key = await toolhost.createKey();
    const body = { concurrent_calls: 500 };
    for (const method of ['PATCH', 'PUT', 'POST'])
      assert.equal((await toolhost.rest(method, '/workspace/limits', { key, body })).status, 405, method);
    assert.ok(!manager.tools.has('setWorkspaceLimits'));
    assert.ok(!(await toolhost.rest('GET', '/openapi.json')).text.includes('setWorkspaceLimits'));
  });

  it('are recorded in the audit log', async () => {
    await setLimits({ calls_per_second: 9, concurrent_calls: null });
    const { body } = await toolhost.rest('GET', '/audit');
    const event = (body.events as Json[]).find(({ operation }) => operation === 'setServerLimits');
    assert.deepEqual([event?.target, event?.detail], [slug, { calls_per_second: 9, concurrent_calls: null }]);
  });
});
