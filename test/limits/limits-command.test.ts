import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { callGetTimes, countStatus } from '../support/tool-calls.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as command, runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

const defaultLimits = { CALLS_PER_SECOND: '60', CONCURRENT_CALLS: '50', CONCURRENT_CALLS_PER_KEY: '20' };

/** Works directly on the database of a running service. */
describe('toolhost limits', async () => {
  const { upstream, toolhost: running, stop } = await startToolhostWithUpstream({ env: defaultLimits });
  const env = { DATA_DIR: running.dataDir };
  await running.createServer(buildServerAt('operated', upstream.url));
  after(stop);

  const limits = (...args: string[]) => runToolhostJson<Json>(['limits', ...args], { env });
  const getJson = async (path: string) => (await running.rest('GET', path)).body;

  it('sets and resets the limits of a workspace and a server, and the running service applies them', async () => {
    const set = await limits('set', '--calls-per-second', '1', '--concurrent-calls', '90');
    assert.deepEqual(set.calls_per_second, { limit: 1, from: 'set', set: 1 });
    assert.deepEqual((await getJson('/workspace/limits')).concurrent_calls, { limit: 90, from: 'set', set: 90 });
    const calls = () => callGetTimes(running, 'operated', 'any-token', 4);
    await eventually(async () => assert.ok(countStatus(await calls(), 429) > 0));
    const serverLimits = await limits('set', '--server', 'operated', '--calls-per-second', '500');
    assert.deepEqual(serverLimits.calls_per_second, { limit: 1, from: 'workspace', set: 500 });
    assert.deepEqual((await limits('reset')).calls_per_second, { limit: 300, from: 'default' });
    const shown = (await limits('show', '--server', 'operated')).calls_per_second;
    assert.deepEqual(shown, { limit: 300, from: 'workspace', set: 500 });
    await limits('reset', '--server', 'operated');
    assert.deepEqual((await getJson('/servers/operated/limits')).calls_per_second, { limit: 60, from: 'default' });
    const events = (await getJson('/audit')).events as Json[];
    assert.ok(events.some((event) => event.operation === 'setWorkspaceLimits' && event.actor_kind === 'operator'));
  });

  it('prints limits as text, with defaults from its environment', async () => {
    const ownEnv = { ...env, CALLS_PER_SECOND: '0', CONCURRENT_CALLS: '7' };
    const { stdout } = await command(['limits', 'show'], { env: ownEnv });
    assert.match(stdout, /^calls per second +none +environment default$/m);
    assert.match(stdout, /^concurrent calls +35 +environment default$/m);
  });

  it('lists the allowed values when an argument is invalid', async () => {
    for (const [args, expectedCode, message] of [
      ['set --calls-per-second 0', 2, /allowed: a whole number from 1 to 100000/],
      ['set', 2, /pass one or more of --calls-per-second, --concurrent-calls/],
      ['show --server unknown', 1, /there is no such server in this workspace/],
      ['show --workspace wsp_none', 1, /there is no workspace "wsp_none"/],
    ] as const) {
      const { code, stderr } = await command(['limits', ...args.split(' ')], { env });
      assert.equal(code, expectedCode, stderr);
      assert.match(stderr, message);
    }
  });

  it('[find C6] sets quotas of a workspace, a server, and a key', async () => {
    const run = async (line: string) => {
      const { code, stdout, stderr } = await command(line.split(' '), { env });
      assert.equal(code, 0, stderr);
      return stdout;
    };
    assert.match(await run('limits set --calls-per-day 1000'), /^calls per day +1000 +set$/m);
    const setServerQuota = 'limits set --server operated --calls-per-minute 7';
    assert.match(await run(setServerQuota), /^calls per minute +7 +set$/m);
    assert.match(await run('limits show --server operated'), /^calls per day +1000 +workspace limit$/m);
    await run('limits reset');
    assert.doesNotMatch(await run('limits show'), /calls per day/);
    await run('keys create --name k --scopes call --calls-per-day 5');
    const { keys } = (await running.rest('GET', '/keys?limit=200')).body as { keys: Json[] };
    const created = keys.find(({ name }) => name === 'k') as Json;
    assert.deepEqual(created.limits, { calls_per_day: 5 });
    const changeKey = `keys limit ${created.id} --calls-per-day 0 --calls-per-second 2`;
    assert.match(await run(changeKey), /2 calls per second\./);
  });
});
