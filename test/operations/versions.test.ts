import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { pluck } from '../support/pluck.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

describe('server versions', async () => {
  const toolhost = await startToolhost();
  after(() => toolhost.stop());

  const request = async (method: string, path: string, body?: Json, status = 200) => {
    const reply = await toolhost.rest(method, `/servers/versioned${path}`, body === undefined ? {} : { body });
    assert.equal(reply.status, status, reply.text);
    return reply.body;
  };

  it('are compared semantically, have messages, and name the version they restore', async () => {
    const config = buildServerAt('versioned', 'https://api.example.com');
    await toolhost.createServer(config);
    const [tool] = config.tools as [Json];
    await request('PATCH', '', { tools: [{ ...tool, timeout_ms: 5000 }], message: 'Shorter' });
    await request('PATCH', '', { tools: [tool, { ...tool, name: 'added', disabled: true }], description: 'Reads.' });
    const getChanges = async (from: number, to: number) =>
      pluck((await request('GET', `/versions/${from}/compare/${to}`)).changes, 'text');
    assert.deepEqual(await getChanges(1, 2), ['get: timeout changed']);
    assert.deepEqual(await getChanges(1, 3), ['description added', 'tool added added']);
    assert.deepEqual(await getChanges(3, 1), ['description removed', 'tool added removed']);
    assert.deepEqual(await getChanges(2, 2), []);
    await request('GET', '/versions/2/compare/9', undefined, 404);
    await request('PATCH', '/versions/3', { message: 'With another tool' });
    await request('PATCH', '/versions/9', { message: 'None' }, 404);
    await request('PATCH', '/versions/1', { message: 'two\nlines' }, 400);
    await request('PATCH', '', { description: 'Other.', message: 'x'.repeat(201) }, 400);
    await request('POST', '/versions/2/restore');
    const { versions } = await request('GET', '/versions');
    assert.deepEqual(pluck(versions, 'message'), ['Restores version 2', 'With another tool', 'Shorter', undefined]);
  });
});
