import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { personRequest } from '../support/browser/person-request.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

describe('names in the audit log and session information', () => {
  let world: LoginWorld;
  before(async () => {
    world = await startLoginWorld({ env: { CALL_RETENTION_DAYS: '12' } });
  });
  after(() => world.stop());

  const requestAs = (session: string, method: string, path: string, body?: Json) =>
    personRequest(world.toolhost, session, method, path, body);
  const getNewestEvent = async () => {
    const { body } = await world.toolhost.rest('GET', '/audit?limit=1');
    const [event] = body.events as Json[];
    return event ?? assert.fail();
  };

  it('names a key even after it was revoked', async () => {
    const { toolhost } = world;
    const created = await toolhost.rest('POST', '/keys', { body: { name: 'of the build', scopes: ['manage'] } });
    const { key, id } = created.body as { key: string; id: string };
    await toolhost.rest('POST', '/servers', { key, body: buildServerAt('by-key', 'https://api.example') });
    await toolhost.rest('DELETE', `/keys/${id}`);
    const { body } = await toolhost.rest('GET', '/audit?limit=2');
    const event = (body.events as Json[])[1];
    assert.deepEqual([event?.actor_kind, event?.actor_id, event?.actor_name], ['api_key', id, 'of the build']);
  });

  it('[find D4] names the author of a version and the caller of a tool', async () => {
    const { toolhost } = world;
    const created = await toolhost.rest('POST', '/keys', {
      body: { name: 'of the robot', scopes: ['manage', 'call'] },
    });
    const { key, id } = created.body as { key: string; id: string };
    const session = await createPersonSession(toolhost, { name: 'Vera' });
    await toolhost.rest('POST', '/servers', { key, body: buildServerAt('with-authors', 'https://api.example') });
    await requestAs(session, 'PATCH', '/servers/with-authors', { description: 'By a person' });
    await toolhost.rest('DELETE', `/keys/${id}`);
    const { body } = await requestAs(session, 'GET', '/servers/with-authors/versions');
    assert.deepEqual(
      (body.versions as Json[]).map(({ created_by_name }) => created_by_name),
      ['Vera', 'of the robot'],
    );
    await requestAs(session, 'POST', '/servers/with-authors/tools/get/call', {});
    const calls = (await toolhost.rest('GET', '/calls?slug=with-authors')).body.calls as Json[];
    const call = await requestAs(session, 'GET', `/calls/${calls[0]?.id}`);
    assert.equal(call.body.caller_name, 'Vera');
  });

  it('names the key that a change affects, and filters changes by key, target, operation, and time', async () => {
    const { toolhost } = world;
    const created = await toolhost.rest('POST', '/keys', { body: { name: 'of the agent', scopes: ['manage'] } });
    const { key, id } = created.body as { key: string; id: string };
    const startedAt = new Date((await getNewestEvent()).at as string).toISOString();
    await toolhost.rest('POST', '/servers', { key, body: buildServerAt('by-agent', 'https://api.example') });
    await toolhost.rest('PATCH', '/servers/by-agent', { body: { description: 'By another one' } });
    const findEvents = async (query: string) => {
      const { body } = await toolhost.rest('GET', `/audit?${query}`);
      return (body.events as Json[]).map((event) => [event.operation, event.target_name ?? event.target]);
    };
    assert.deepEqual(await findEvents(`actor_id=${id}`), [['createMcpServer', 'by-agent']]);
    assert.deepEqual(await findEvents(`target=${id}`), [['createApiKey', 'of the agent']]);
    assert.deepEqual(await findEvents('target=by-agent&operation=updateMcpServer'), [['updateMcpServer', 'by-agent']]);
    assert.deepEqual(await findEvents(`actor_id=${id}&until=${startedAt}`), []);
    assert.deepEqual(await findEvents(`actor_id=${id}&since=${startedAt}`), [['createMcpServer', 'by-agent']]);
  });

  it('names people by their current names even after they left', async () => {
    const { toolhost } = world;
    const [anna, bob] = [
      await createPersonSession(toolhost, { name: 'Anna' }),
      await createPersonSession(toolhost, { name: 'Bob' }),
    ];
    assert.equal((await requestAs(bob, 'PATCH', '/workspace', { name: 'Renamed' })).status, 200);
    assert.equal((await requestAs(anna, 'DELETE', `/members/usr_${bob}`)).status, 200);
    const { body } = await requestAs(anna, 'GET', '/audit?limit=2');
    assert.deepEqual(
      (body.events as Json[]).map(({ actor_name }) => actor_name),
      ['Anna', 'Bob'],
    );
  });

  it('names a client by the name it registered with', async () => {
    const client = await world.registerClient(await world.createServer(), { name: 'Agent Smith' });
    await world.logIn(client);
    const event = await getNewestEvent();
    assert.deepEqual([event.actor_kind, event.operation, event.actor_name], ['client', 'login', 'Agent Smith']);
  });

  it('omits the name of an actor that has none', async () => {
    await world.toolhost.createKey();
    const event = await getNewestEvent();
    assert.deepEqual([event.actor_kind, 'actor_name' in event], ['operator', false]);
  });

  it('shows a person how long call records are retained', async () => {
    const session = await createPersonSession(world.toolhost, { name: 'Cleo' });
    assert.equal((await requestAs(session, 'GET', '/session')).body.call_retention_days, 12);
  });

  it('reports the found and the allowed value when an invitation has an invalid address', async () => {
    const session = await createPersonSession(world.toolhost, { name: 'Dora' });
    const reply = await requestAs(session, 'POST', '/invitations', { email: 'nobody', role: 'viewer' });
    const message = 'found "nobody"; allowed: one email address, such as anna@example.com';
    assert.deepEqual([reply.status, reply.body.problems], [400, [{ path: 'email', message }]]);
  });
});
