import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { type EngineToolhost, startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

for (const engine of engines) {
  describe(`applying a server, on ${engine}`, () => {
    let upstream: RecordingUpstream;
    let service: EngineToolhost;
    before(async () => {
      upstream = await startRecordingUpstream();
      service = await startToolhostOnEngine(engine, {
        egressPorts: [upstream.port],
        env: { QUOTAS: 'writes=0,secrets=2' },
      });
    });
    after(() => Promise.all([service.stop(), upstream.close()]));

    const config = (slug: string, more: Json = {}) =>
      buildServerAt(slug, upstream.url, { authentication: { type: 'Bearer', token: '{{KEY}}' }, ...more });
    const send = (verb: 'plan' | 'apply', slug: string, body: Json) =>
      service.toolhost.rest('POST', `/servers/${slug}/${verb}`, { body });
    const get = async (slug: string) => (await service.toolhost.rest('GET', `/servers/${slug}`)).body;

    it('[imp 6] stores configuration, secrets, limits, and label, and changes nothing when repeated', async () => {
      const request = {
        config: config('whole'),
        secrets: { KEY: 'a-value' },
        limits: { calls_per_day: 5 },
        label: 'team-a',
      };
      const planned = await send('plan', 'whole', request);
      assert.deepEqual([planned.status, planned.body.change, planned.body.version], [200, 'created', 0]);
      assert.equal((await service.toolhost.rest('GET', '/servers/whole')).status, 404);
      const applied = await send('apply', 'whole', { ...request, expected_version: 0 });
      assert.deepEqual([applied.status, applied.body.change], [200, 'created'], applied.text);
      const key = await service.toolhost.createKey();
      await service.toolhost.callTool('whole', key, 'get');
      assert.equal(upstream.take().at(-1)?.headers.authorization, 'Bearer a-value');
      const { server, secrets } = (await get('whole')) as { server: Json; secrets: string[] };
      assert.deepEqual([server.label, server.version, secrets], ['team-a', 1, ['KEY']]);
      const audit = () => service.toolhost.rest('GET', '/audit').then(({ text }) => text);
      const before = await audit();
      const repeated = await send('apply', 'whole', { ...request, expected_version: 1 });
      assert.deepEqual([repeated.body.change, repeated.body.unchanged], ['same', true]);
      assert.equal(await audit(), before);
      assert.doesNotMatch(before, /a-value/);
      // The limits are replaced as a whole, so without a limit the default applies again.
      const fewer = await send('apply', 'whole', { ...request, limits: {} });
      assert.deepEqual(fewer.body.changes, [
        { path: 'limits.calls_per_day', before: 5, text: 'calls per day of the limits removed' },
      ]);
      assert.equal((await service.toolhost.rest('GET', '/servers/whole/limits')).body.calls_per_day, undefined);
    });

    it('[imp 6] stores everything or nothing', async () => {
      await send('apply', 'atomic', { config: config('atomic') });
      const before = await get('atomic');
      const secrets = { KEY: 'one', OTHER: 'two', THIRD: 'three' };
      const refused = await send('apply', 'atomic', {
        config: config('atomic', { description: 'Changed.' }),
        secrets,
        label: 'x',
        limits: { calls_per_second: 1 },
      });
      assert.equal(refused.status, 403, refused.text);
      assert.deepEqual(await get('atomic'), before);
      const limits = await service.toolhost.rest('GET', '/servers/atomic/limits');
      assert.equal((limits.body.calls_per_second as Json).set, undefined);
      const fresh = await send('apply', 'never', { config: config('never'), secrets });
      assert.equal(fresh.status, 403);
      assert.equal((await service.toolhost.rest('GET', '/servers/never')).status, 404);
      const variable = await send('apply', 'never', {
        config: config('never', { variables: { KEY: { value: 'x' } } }),
        secrets: { KEY: 'v4lue' },
      });
      assert.equal(variable.status, 400);
      assert.match(variable.text, /secrets\.KEY/);
      assert.doesNotMatch(variable.text, /v4lue/);
    });

    it('[imp 6] refuses to undo a change made elsewhere, and names each field', async () => {
      const first = config('shared', { description: 'One.' });
      await send('apply', 'shared', { config: first });
      await service.toolhost.rest('PATCH', '/servers/shared', { body: { description: 'Two.' } });
      const plan = await send('plan', 'shared', { config: first });
      assert.deepEqual([plan.body.undone, plan.body.applied_version, plan.body.version], [['description'], 1, 2]);
      const refused = await send('apply', 'shared', { config: first });
      assert.equal(refused.status, 409);
      assert.match(refused.text, /would undo: description/);
      const stale = await send('apply', 'shared', { config: first, overwrite: true, expected_version: 1 });
      assert.equal(stale.status, 409);
      const other = { ...first, description: 'Two.', name: 'Renamed' };
      assert.equal((await send('apply', 'shared', { config: other })).status, 200);
      const moved = await send('apply', 'shared', { config: other, label: 'a' });
      assert.deepEqual(moved.body.changes, [{ path: 'label', after: 'a', text: 'label added' }]);
      assert.equal((await send('apply', 'shared', { config: other, label: 'b' })).status, 409);
      assert.equal((await send('apply', 'shared', { config: other, label: 'b', overwrite: true })).status, 200);
    });

    it('[imp 6] deletes the server and its label only at the expected version', async () => {
      await send('apply', 'gone', { config: config('gone'), label: 'team-a' });
      const path = '/servers/gone';
      const outdated = await service.toolhost.rest('DELETE', path, { body: { expected_version: 2 } });
      assert.equal(outdated.status, 409);
      assert.equal((await service.toolhost.rest('DELETE', path, { headers: { 'if-match': '"1"' } })).status, 200);
      const planned = await send('plan', 'gone', { config: config('gone') });
      assert.deepEqual(
        (planned.body.problems as Json[]).map(({ path: at }) => at),
        ['slug'],
      );
    });
  });
}
