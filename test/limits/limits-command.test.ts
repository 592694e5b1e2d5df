import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as command, runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const defaultLimits = { CALLS_PER_SECOND: '60', CONCURRENT_CALLS: '50', CONCURRENT_CALLS_PER_KEY: '20' };

/** Works directly on the database of a running service. */
describe('toolhost limits', () => {
  let upstream: RecordingUpstream;
  let running: TestToolhost;
  let env: Record<string, string>;
  before(async () => {
    upstream = await startRecordingUpstream();
    running = await startToolhost({ egressPorts: [upstream.port], env: defaultLimits });
    env = { DATA_DIR: running.dataDir };
    await running.createServer(buildServerAt('operated', upstream.url));
  });
  after(() => Promise.all([running.stop(), upstream.close()]));

  const limits = (...args: string[]) => runToolhostJson<Json>(['limits', ...args], { env });
  const getJson = async (path: string) => (await running.rest('GET', path)).body;

  it('sets and resets the limits of a workspace and a server, and the running service applies them', async () => {
    const set = await limits('set', '--calls-per-second', '1', '--concurrent-calls', '90');
    assert.deepEqual(set.calls_per_second, { limit: 1, from: 'set', set: 1 });
    assert.deepEqual((await getJson('/workspace/limits')).concurrent_calls, { limit: 90, from: 'set', set: 90 });
    const calls = () =>
      Promise.all(
        Array.from({ length: 4 }, () =>
          running.rpc('operated', 'any-token', 'tools/call', { name: 'get', arguments: {} }),
        ),
      );
    await eventually(async () => assert.ok((await calls()).some((reply) => reply.status === 429)));
    const serverLimits = await limits('set', '--server', 'operated', '--calls-per-second', '500');
    assert.deepEqual(serverLimits.calls_per_second, { limit: 1, from: 'workspace', set: 500 });
    assert.deepEqual((await limits('reset')).calls_per_second, { limit: 300, from: 'default' });
    assert.deepEqual((await limits('show', '--server', 'operated')).calls_per_second, {
      limit: 300,
      from: 'workspace',
      set: 500,
    });
    await limits('reset', '--server', 'operated');
    assert.deepEqual((await getJson('/servers/operated/limits')).calls_per_second, { limit: 60, from: 'default' });
    const events = (await getJson('/audit')).events as Json[];
    assert.ok(events.some((event) => event.operation === 'setWorkspaceLimits' && event.actor_kind === 'operator'));
  });

  it('prints limits as text, with defaults from its environment', async () => {
    const { stdout } = await command(['limits', 'show'], {
      env: { ...env, CALLS_PER_SECOND: '0', CONCURRENT_CALLS: '7' },
    });
    assert.match(stdout, /^calls per second +none +environment default$/m);
    assert.match(stdout, /^concurrent calls +35 +environment default$/m);
  });

  it('lists the allowed values when an argument is invalid', async () => {
    const [zero, nothing, slug, workspace] = await Promise.all([
      command(['limits', 'set', '--calls-per-second', '0'], { env }),
      command(['limits', 'set'], { env }),
      command(['limits', 'show', '--server', 'unknown'], { env }),
      command(['limits', 'show', '--workspace', 'wsp_none'], { env }),
    ]);
    assert.deepEqual(
      [zero, nothing, slug, workspace].map((ended) => ended.code),
      [2, 2, 1, 1],
    );
    assert.match(zero.stderr, /allowed: a whole number from 1 to 100000/);
    assert.match(nothing.stderr, /pass one or more of --calls-per-second, --concurrent-calls/);
    assert.match(slug.stderr, /there is no such server in this workspace/);
    assert.match(workspace.stderr, /there is no workspace "wsp_none"/);
  });

  it('[find C6] sets quotas of a workspace, a server, and a key', async () => {
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await command(args, { env });
      assert.equal(code, 0, stderr);
      return stdout;
    };
    assert.match(await run('limits', 'set', '--calls-per-day', '1000'), /^calls per day +1000 +set$/m);
    assert.match(
      await run('limits', 'set', '--server', 'operated', '--calls-per-minute', '7'),
      /^calls per minute +7 +set$/m,
    );
    assert.match(await run('limits', 'show', '--server', 'operated'), /^calls per day +1000 +workspace limit$/m);
    await run('limits', 'reset');
    assert.doesNotMatch(await run('limits', 'show'), /calls per day/);
    await run('keys', 'create', '--name', 'k', '--scopes', 'call', '--calls-per-day', '5');
    const { keys } = (await running.rest('GET', '/keys?limit=200')).body as { keys: Json[] };
    const created = keys.find(({ name }) => name === 'k') as Json;
    assert.deepEqual(created.limits, { calls_per_day: 5 });
    assert.match(
      await run('keys', 'limit', String(created.id), '--calls-per-day', '0', '--calls-per-second', '2'),
      /2 calls per second\./,
    );
  });
});
