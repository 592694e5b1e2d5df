import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { callGet, callGetTimes, countStatus, getErrorMessage } from '../support/tool-calls.ts';
import { createMovableClock } from '../support/toolhost/movable-clock.ts';
import { runOperatorOperation } from '../support/toolhost/run-operator-operation.ts';
import { type Json, type Reply, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const stored = { authentication: { type: 'Bearer', token: 'stored' } };
const minuteMs = 60_000;
const noon = Date.parse('2026-11-20T12:00:00Z');
/** Asserts the numbers of served and limited calls, and the message of the limited ones. Returns the last of those. */
function assertLimited(replies: readonly Reply[], counts: [served: number, limited: number], message: RegExp): Reply {
  assert.deepEqual([countStatus(replies, 200), countStatus(replies, 429)], counts);
  const refused = replies.findLast(({ status }) => status === 429) ?? assert.fail('no call was limited');
  assert.match(getErrorMessage(refused), message);
  return refused;
}

for (const engine of engines) {
  describe(`call quotas on ${engine}`, async () => {
    let slug: string;
    let now = noon;
    let servers = 0;
    const postgres = engine === 'postgres' ? await startPostgres() : undefined;
    const upstream = await startRecordingUpstream();
    const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-quotas-'));
    const url = await postgres?.createDatabase();
    const clock = url === undefined ? undefined : await createMovableClock(url);
    await clock?.stopAt(now);
    const options = {
      egressPorts: [upstream.port],
      env: { ...(url !== undefined && { DATABASE_URL: url }) },
      runtimeOptions: { now: () => now, clock: () => now - noon, queueMs: 1000 },
      dataDir,
    };
    let toolhost = await startToolhost(options);
    const key = await toolhost.createKey();
    after(async () => {
      await Promise.all([toolhost.stop(), upstream.close()]);
      await postgres?.stop();
      rmSync(dataDir, { recursive: true, force: true });
    });
    beforeEach(async () => {
      slug = `quota-${++servers}`;
      await toolhost.createServer(buildServerAt(slug, upstream.url, stored));
      upstream.take();
    });
    const advanceClock = async (ms: number) => {
      await clock?.stopAt(now + ms);
      now += ms;
      await toolhost.running.app.runner.onCommitted();
    };
    const setLimits = (limits: Json) => toolhost.rest('PATCH', `/servers/${slug}/limits`, { body: limits });

    it("[find C6] rejects calls above a server's quota per minute, with the quota and the time to wait", async () => {
      assert.equal((await setLimits({ calls_per_minute: 5 })).status, 200);
      const message =
        /this server gets at most 5 per minute, and all of them were used\. The call was not made; retry in \d+ s\.$/;
      const { headers } = assertLimited(await callGetTimes(toolhost, slug, key, 8), [5, 3], message);
      const seconds = Number(headers.get('retry-after'));
      assert.ok(seconds >= 1 && seconds <= 60, String(seconds));
      assert.equal(upstream.requests.length, 5);
      const shown = (await toolhost.rest('GET', `/servers/${slug}/limits`)).body;
      assert.deepEqual(shown.calls_per_minute, { limit: 5, from: 'set', set: 5 });
      await advanceClock(minuteMs);
      assert.equal(countStatus(await callGetTimes(toolhost, slug, key, 6), 200), 5);
      assert.equal((await setLimits({ calls_per_minute: null })).body.calls_per_minute, undefined);
      assert.equal((await callGet(toolhost, slug, key)).status, 200);
    });

    it("[find C6] keeps the use of a server's daily quota across a restart, and resets it the next day", async () => {
      await setLimits({ calls_per_day: 6 });
      assert.equal(countStatus(await callGetTimes(toolhost, slug, key, 4), 200), 4);
      await toolhost.stop();
      toolhost = await startToolhost(options);
      const message = /this server gets at most 6 per day, and all of them were used/;
      const refused = assertLimited(await callGetTimes(toolhost, slug, key, 6), [2, 4], message);
      assert.ok(Number(refused.headers.get('retry-after')) > 3600);
      await advanceClock(24 * 60 * minuteMs);
      assert.equal(countStatus(await callGetTimes(toolhost, slug, key, 8), 200), 6);
      await setLimits({ calls_per_day: 7 });
      assert.equal(countStatus(await callGetTimes(toolhost, slug, key, 3), 200), 1);
    });

    it('[find C6] counts all servers of a workspace together against quotas set by the operator', async () => {
      const other = `${slug}-other`;
      await toolhost.createServer(buildServerAt(other, upstream.url, stored));
      await advanceClock(24 * 60 * minuteMs);
      await runOperatorOperation(toolhost, 'setWorkspaceLimits', 'local', { calls_per_day: 6, calls_per_minute: 4 });
      try {
        const replies = [
          await callGetTimes(toolhost, slug, key, 3),
          await callGetTimes(toolhost, other, key, 3),
        ].flat();
        assertLimited(replies, [4, 2], /all servers of this workspace together get at most 4 per minute/);
        await advanceClock(minuteMs);
        assertLimited(await callGetTimes(toolhost, other, key, 5), [2, 3], /together get at most 6 per day/);
        const shown = (await toolhost.rest('GET', `/servers/${slug}/limits`)).body;
        assert.deepEqual(shown.calls_per_day, { limit: 6, from: 'workspace' });
      } finally {
        const none = { calls_per_day: null, calls_per_minute: null };
        await runOperatorOperation(toolhost, 'setWorkspaceLimits', 'local', none);
      }
    });

    it('[find C6] applies a rate, a quota per minute, and a quota per day to a key, set at creation or later', async () => {
      const body = { name: 'limited', scopes: ['call'], calls_per_minute: 3, calls_per_day: 5 };
      const created = (await toolhost.rest('POST', '/keys', { body })).body;
      assert.deepEqual(created.limits, { calls_per_minute: 3, calls_per_day: 5 });
      const limited = String(created.key);
      const family = 'keys created with it together get at most';
      const message = RegExp(`an API key and the ${family} 3 per minute`);
      assertLimited(await callGetTimes(toolhost, slug, limited, 4), [3, 1], message);
      await advanceClock(minuteMs);
      assertLimited(await callGetTimes(toolhost, slug, limited, 3), [2, 1], RegExp(`${family} 5 per day`));
      assert.equal((await callGet(toolhost, slug, key)).status, 200);
      const path = `/keys/${created.id}/limits`;
      const changes = { calls_per_day: null, calls_per_second: 2, calls_per_minute: 100 };
      const changed = await toolhost.rest('PATCH', path, { body: changes });
      assert.deepEqual(changed.body, { id: created.id, limits: { calls_per_second: 2, calls_per_minute: 100 } });
      await eventually(async () => {
        const flood = await callGetTimes(toolhost, slug, limited, 6);
        assert.ok(flood.some((reply) => getErrorMessage(reply).includes(`${family} 2 per second`)));
      });
      const listed = (await toolhost.rest('GET', '/keys?limit=200')).body.keys as Json[];
      assert.deepEqual(listed.find(({ id }) => id === created.id)?.limits, changed.body.limits);
      assert.equal((await toolhost.rest('PATCH', '/keys/key_absent/limits', { body: {} })).status, 404);
      for (const wrong of [0, -1, 1.5, 1_000_000_001])
        assert.equal((await toolhost.rest('PATCH', path, { body: { calls_per_day: wrong } })).status, 400);
    });

    it('counts the calls of a key and of all keys created with it together [find F2]', async () => {
      await advanceClock(24 * 60 * minuteMs);
      const createKey = async (parentKey: string, limits: Json): Promise<{ id: string; key: string }> => {
        const body = { name: 'family', scopes: ['manage', 'call'], ...limits };
        const { status, text, body: created } = await toolhost.rest('POST', '/keys', { key: parentKey, body });
        assert.equal(status, 201, text);
        return created as { id: string; key: string };
      };
      const parent = await createKey(key, { calls_per_day: 6 });
      const child = await createKey(parent.key, { calls_per_day: 2 });
      const grandchild = await createKey(child.key, {});
      const sibling = await createKey(parent.key, {});
      const countSuccessful = async ({ key: callerKey }: { key: string }, times: number) =>
        countStatus(await callGetTimes(toolhost, slug, callerKey, times), 200);
      assert.equal(await countSuccessful(grandchild, 1), 1);
      assert.equal(await countSuccessful(child, 3), 1, 'the child and the grandchild share two calls');
      assert.equal(await countSuccessful(sibling, 3), 3);
      assert.equal(await countSuccessful(parent, 3), 1);
      const refused = await callGet(toolhost, slug, sibling.key);
      assert.match(getErrorMessage(refused), /an API key and the keys created with it together get at most 6 per day/);
      const testCall = { key: sibling.key, body: { arguments: {} } };
      assert.equal((await toolhost.rest('POST', `/servers/${slug}/tools/get/call`, testCall)).status, 429);
      assert.equal((await callGet(toolhost, slug, key)).status, 200);

      const setParentLimits = (limits: Json) => toolhost.rest('PATCH', `/keys/${parent.id}/limits`, { body: limits });
      assert.equal((await setParentLimits({ calls_per_day: 8 })).status, 200);
      await toolhost.running.app.runner.onCommitted();
      assert.equal(await countSuccessful(parent, 3), 2);
      assert.equal((await setParentLimits({ calls_per_day: null, calls_per_second: 2 })).status, 200);
      const removed = { key, body: { calls_per_day: null, calls_per_second: null } };
      assert.equal((await toolhost.rest('PATCH', `/keys/${sibling.id}/limits`, removed)).status, 200);
      await toolhost.running.app.runner.onCommitted();
      assert.equal(await countSuccessful(sibling, 6), 3, 'one second of its rate immediately, and one more call');
      assert.equal(await countSuccessful(parent, 1), 0, 'the child without a limit used up the rate of its parent');
      const change = { key: sibling.key, body: { calls_per_second: null } };
      const refusedChange = await toolhost.rest('PATCH', `/keys/${parent.id}/limits`, change);
      assert.equal(refusedChange.status, 400, refusedChange.text);
    });

    it('[find C6] counts test calls of tools against the key, over REST and over MCP', async () => {
      const body = { name: 'tries', scopes: ['call', 'manage:read'], calls_per_day: 2 };
      const created = (await toolhost.rest('POST', '/keys', { body })).body;
      const limited = String(created.key);
      const input = { slug, tool: 'get', arguments: {} };
      const callOverRest = () =>
        toolhost.rest('POST', `/servers/${slug}/tools/get/call`, { key: limited, body: { arguments: {} } });
      assert.equal((await callOverRest()).status, 200);
      const callOverMcp = () => toolhost.rpc('manage', limited, 'tools/call', { name: 'callTool', arguments: input });
      assert.equal((await callOverMcp()).status, 200);
      const overRest = await callOverRest();
      assert.equal(overRest.status, 429);
      assert.match(
        String(overRest.body.detail),
        /keys created with it together get at most 2 per day, and all of them were used\. .* retry in \d+ s/,
      );
      assert.ok(Number(overRest.headers.get('retry-after')) > 0);
      const overMcp = await callOverMcp();
      assert.equal(overMcp.status, 429);
      assert.match(getErrorMessage(overMcp), /keys created with it together get at most 2 per day/);
      assert.equal(getErrorMessage(await callGet(toolhost, slug, limited)).includes('2 per day'), true);
    });

    it('[find C6] does not count calls that are rejected for another reason', async () => {
      await setLimits({ calls_per_day: 3, concurrent_calls: 1 });
      upstream.on('*', () => 'hold');
      const calls = callGetTimes(toolhost, slug, key, 3);
      const heldRequest = await upstream.waitForRequest();
      upstream.on('*', () => ({ body: {} }));
      await eventually(async () => {
        const { use } = (await toolhost.rest('GET', `/servers/${slug}/limits`)).body as { use: Json };
        assert.equal(use.refused, 2);
      });
      heldRequest.release({ body: {} });
      const statuses = (await calls).map(({ status }) => status).sort();
      assert.deepEqual(statuses, [200, 429, 429]);
      for (const status of [200, 200, 429]) assert.equal((await callGet(toolhost, slug, key)).status, status);
    });
  });
}
