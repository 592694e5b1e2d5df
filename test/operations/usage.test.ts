import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { pluck } from '../support/pluck.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

for (const engine of engines) {
  describe(`usage on ${engine}`, async () => {
    const upstream = await startRecordingUpstream();
    const world = await startToolhostOnEngine(engine, { egressPorts: [upstream.port] });
    after(() => Promise.all([world.stop(), upstream.close()]));

    it('is counted by key, server, and day, as JSON and as CSV', async () => {
      const { toolhost } = world;
      const tools = [buildToolAt(`${upstream.url}/items`)];
      await toolhost.createServer({ name: 'Shop', slug: 'shop', tools });
      await toolhost.createServer({ name: 'Other', slug: 'other', tools });
      const createKey = async (name: string) =>
        (await toolhost.rest('POST', '/keys', { body: { name, scopes: ['call'] } })).body as Record<
          'id' | 'key',
          string
        >;
      const [agent, robot] = [await createKey('=Agent'), await createKey('Robot')];
      const call = (slug: string, token: string, times: number) =>
        Promise.all(Array.from({ length: times }, () => toolhost.callTool(slug, token, 'get')));
      await call('shop', agent.key, 3);
      await call('other', 'token-of-a-caller', 2);
      upstream.on('GET /items', () => ({ status: 500 }));
      await world.advanceTime(24 * 3_600_000);
      await call('shop', agent.key, 1);
      await call('shop', robot.key, 2);
      const { status, body, text } = await toolhost.rest('GET', '/usage?days=2');
      assert.equal(status, 200, text);
      assert.deepEqual(body.by_day, [
        { day: '2026-11-20', calls: 5, errors: 0 },
        { day: '2026-11-21', calls: 3, errors: 3 },
      ]);
      const callerRows = (body.by_caller as Json[]).map((row) => ({ ...row, caller: row.caller_name ?? row.caller }));
      assert.deepEqual(pluck(callerRows, 'server', 'caller', 'calls', 'errors'), [
        ...['shop', '=Agent', 4, 1],
        ...['other', 'caller_token', 2, 0],
        ...['shop', 'Robot', 2, 2],
      ]);
      const csv = await toolhost.rest('GET', '/usage.csv?slug=shop&days=1');
      assert.match(csv.headers.get('content-disposition') ?? '', /usage\.csv/);
      const lines = [`2026-11-21,shop,${agent.id},'=Agent,1,1`, `2026-11-21,shop,${robot.id},Robot,2,2`];
      assert.deepEqual(csv.text.trim().split('\r\n'), ['day,server,caller,caller_name,calls,errors', ...lines.sort()]);
      const limited = await toolhost.createKey({ servers: ['other'] });
      const limitedUsage = await toolhost.rest('GET', '/usage?slug=other', { key: limited });
      assert.deepEqual(pluck(limitedUsage.body.by_caller, 'server'), ['other']);
      assert.equal((await toolhost.rest('GET', '/usage?slug=shop', { key: limited })).status, 404);
    });
  });
}
