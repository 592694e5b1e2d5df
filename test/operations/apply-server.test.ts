import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { pluck } from '../support/pluck.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

for (const engine of engines) {
  describe(`applying a server, on ${engine}`, async () => {
    const upstream = await startRecordingUpstream();
    const env = { QUOTAS: 'writes=0,secrets=2' };
    const service = await startToolhostOnEngine(engine, { egressPorts: [upstream.port], env });
    after(() => Promise.all([service.stop(), upstream.close()]));

    const config = (slug: string, more: Json = {}) =>
      buildServerAt(slug, upstream.url, { authentication: { type: 'Bearer', token: '{{KEY}}' }, ...more });
    const send = (verb: 'plan' | 'apply', slug: string, body: Json) =>
      service.toolhost.rest('POST', `/servers/${slug}/${verb}`, { body });
    const get = async (slug: string) => (await service.toolhost.rest('GET', `/servers/${slug}`)).body;

    it('[imp 6] stores configuration, secrets, limits, and label, and changes nothing when repeated', async () => {
      const more = { secrets: { KEY: 'a-value' }, limits: { calls_per_day: 5 }, label: 'team-a' };
      const request = { config: config('whole'), ...more };
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
      const before = (await service.toolhost.rest('GET', '/audit')).text;
      const repeated = await send('apply', 'whole', { ...request, expected_version: 1 });
      assert.deepEqual([repeated.body.change, repeated.body.unchanged], ['same', true]);
      assert.equal((await service.toolhost.rest('GET', '/audit')).text, before);
      assert.doesNotMatch(before, /a-value/);
      // The limits are replaced as a whole, so without a limit the default applies again.
      const fewer = await send('apply', 'whole', { ...request, limits: {} });
      const change = { path: 'limits.calls_per_day', before: 5, text: 'calls per day of the limits removed' };
      assert.deepEqual(fewer.body.changes, [change]);
      assert.equal((await service.toolhost.rest('GET', '/servers/whole/limits')).body.calls_per_day, undefined);
    });

    it('[imp 6] stores everything or nothing', async () => {
      await send('apply', 'atomic', { config: config('atomic') });
      const before = await get('atomic');
      const secrets = { KEY: 'one', OTHER: 'two', THIRD: 'three' };
      const changed = config('atomic', { description: 'Changed.' });
      const input = { config: changed, secrets, label: 'x', limits: { calls_per_second: 1 } };
      const refused = await send('apply', 'atomic', input);
      assert.equal(refused.status, 403, refused.text);
      assert.deepEqual(await get('atomic'), before);
      const limits = await service.toolhost.rest('GET', '/servers/atomic/limits');
      assert.equal((limits.body.calls_per_second as Json).set, undefined);
      const fresh = await send('apply', 'never', { config: config('never'), secrets });
      assert.equal(fresh.status, 403);
      assert.equal((await service.toolhost.rest('GET', '/servers/never')).status, 404);
      const withVariable = config('never', { variables: { KEY: { value: 'x' } } });
      const variable = await send('apply', 'never', { config: withVariable, secrets: { KEY: 'v4lue' } });
      assert.match(`${variable.status} ${variable.text}`, /^400 .*secrets\.KEY/);
      assert.doesNotMatch(variable.text, /v4lue/);
    });

    it('[imp 6] refuses to undo a change made elsewhere, and names each field', async () => {
      const first = config('shared', { description: 'One.' });
      await send('apply', 'shared', { config: first });
      await service.toolhost.rest('PATCH', '/servers/shared', { body: { description: 'Two.' } });
      const plan = await send('plan', 'shared', { config: first });
      assert.deepEqual([plan.body.undone, plan.body.applied_version, plan.body.version], [['description'], 1, 2]);
      const refused = await send('apply', 'shared', { config: first });
      assert.match(`${refused.status} ${refused.text}`, /^409 .*would undo: description/);
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
      const deleteServer = async (options: object) =>
        (await service.toolhost.rest('DELETE', '/servers/gone', options)).status;
      assert.equal(await deleteServer({ body: { expected_version: 2 } }), 409);
      assert.equal(await deleteServer({ headers: { 'if-match': '"1"' } }), 200);
      const planned = await send('plan', 'gone', { config: config('gone') });
      assert.deepEqual(pluck(planned.body.problems, 'path'), ['slug']);
    });
  });
}
