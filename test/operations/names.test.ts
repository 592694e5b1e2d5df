import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { pluck } from '../support/pluck.ts';
import { createKeyClient, createPersonClient } from '../support/toolhost/rest-clients.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

describe('names in the audit log and session information', async () => {
  const world = await startLoginWorld({ env: { CALL_RETENTION_DAYS: '12' } });
  after(() => world.stop());

  const { toolhost } = world;
  const signIn = async (name: string) => {
    const session = await createPersonSession(toolhost, { name });
    return { id: `usr_${session}`, send: createPersonClient(toolhost, session) };
  };
  const createKey = async (name: string) => {
    const { body } = await toolhost.rest('POST', '/keys', { body: { name, scopes: ['manage', 'call'] } });
    const { key, id } = body as { key: string; id: string };
    return { id, send: createKeyClient(toolhost, key) };
  };
  const listEvents = async (limit: number) =>
    (await toolhost.rest('GET', `/audit?limit=${limit}`)).body.events as [Json, Json];

  it('names a key even after it was revoked', async () => {
    const key = await createKey('of the build');
    await key.send('POST', '/servers', buildServerAt('by-key', 'https://api.example'));
    await toolhost.rest('DELETE', `/keys/${key.id}`);
    const [, { actor_kind, actor_id, actor_name }] = await listEvents(2);
    assert.deepEqual([actor_kind, actor_id, actor_name], ['api_key', key.id, 'of the build']);
  });

  it('[find D4] names the author of a version and the caller of a tool', async () => {
    const key = await createKey('of the robot');
    const { send } = await signIn('Vera');
    await key.send('POST', '/servers', buildServerAt('with-authors', 'https://api.example'));
    await send('PATCH', '/servers/with-authors', { description: 'By a person' });
    await toolhost.rest('DELETE', `/keys/${key.id}`);
    const { body } = await send('GET', '/servers/with-authors/versions');
    assert.deepEqual(pluck(body.versions, 'created_by_name'), ['Vera', 'of the robot']);
    await send('POST', '/servers/with-authors/tools/get/call', {});
    const calls = (await toolhost.rest('GET', '/calls?slug=with-authors')).body.calls as Json[];
    const call = await send('GET', `/calls/${calls[0]?.id}`);
    assert.equal(call.body.caller_name, 'Vera');
  });

  it('names the key that a change affects, and filters changes by key, target, operation, and time', async () => {
    const { id, send } = await createKey('of the agent');
    const startedAt = new Date((await listEvents(1))[0].at as string).toISOString();
    await send('POST', '/servers', buildServerAt('by-agent', 'https://api.example'));
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
    const [anna, bob] = [await signIn('Anna'), await signIn('Bob')];
    assert.equal((await bob.send('PATCH', '/workspace', { name: 'Renamed' })).status, 200);
    assert.equal((await anna.send('DELETE', `/members/${bob.id}`)).status, 200);
    const { body } = await anna.send('GET', '/audit?limit=2');
    assert.deepEqual(pluck(body.events, 'actor_name'), ['Anna', 'Bob']);
  });

  it('names a client by the name it registered with', async () => {
    const client = await world.registerClient(await world.createServer(), { name: 'Agent Smith' });
    await world.logIn(client);
    const [event] = await listEvents(1);
    assert.deepEqual([event.actor_kind, event.operation, event.actor_name], ['client', 'login', 'Agent Smith']);
  });

  it('omits the name of an actor that has none', async () => {
    await toolhost.createKey();
    const [event] = await listEvents(1);
    assert.deepEqual([event.actor_kind, 'actor_name' in event], ['operator', false]);
  });

  it('shows a person how long call records are retained', async () => {
    const { send } = await signIn('Cleo');
    assert.equal((await send('GET', '/session')).body.call_retention_days, 12);
  });

  it('reports the found and the allowed value when an invitation has an invalid address', async () => {
    const { send } = await signIn('Dora');
    const reply = await send('POST', '/invitations', { email: 'absent', role: 'viewer' });
    const message = 'found "absent"; allowed: one email address, such as anna@example.com';
    assert.deepEqual([reply.status, reply.body.problems], [400, [{ path: 'email', message }]]);
  });
});

describe('a name that other people see', async () => {
  const toolhost = await startToolhost();
  after(() => toolhost.stop());

  const upstream = 'https://api.example.com';
  const server = (fields: Json) => ({ ...buildServerAt('shop', upstream), ...fields });
  const serverWithTool = (fields: Json) => server({ tools: [{ ...buildToolAt(`${upstream}/items`), ...fields }] });
  const serverWithView = (view: Json) => server({ views: { some: { tools: ['get'], ...view } } });
  const getRequests = (name: string): Record<string, [method: string, path: string, body: Json]> => ({
    server: ['POST', '/servers', server({ name })],
    tool: ['POST', '/servers', serverWithTool({ title: name })],
    'tool annotation': ['POST', '/servers', serverWithTool({ annotations: { title: name } })],
    'tool tag': ['POST', '/servers', serverWithTool({ tags: [name] })],
    view: ['POST', '/servers', serverWithView({ title: name })],
    'tool of a view': ['POST', '/servers', serverWithView({ tools: [{ name: 'get', title: name }] })],
    'server tag': ['PUT', '/servers/known/tags', { tags: [name] }],
    key: ['POST', '/keys', { name, scopes: ['call'] }],
    model: ['PUT', '/models/some', { kind: 'openai', model: name }],
    workspace: ['PATCH', '/workspace', { name }],
  });

  it('is one line of visible text, whatever it names [sec N1]', async () => {
    await toolhost.createServer(buildServerAt('known', upstream));
    const send = createPersonClient(toolhost, await createPersonSession(toolhost, { name: 'Ada' }));
    for (const character of '\n\r\u2028\u2029\u0085\u0007\u202e\u2066\u200b\u00ad')
      for (const [label, request] of Object.entries(getRequests(`Jane${character}Subject: paid`))) {
        const { status, body } = await send(...request);
        assert.match(`${status} ${JSON.stringify(body)}`, /^400 .*invisible character/, label);
      }
    for (const [label, [method, path, body]] of Object.entries(getRequests('Größe 👩‍💻 नमस्ते (v2) & more'))) {
      const { slug } = body;
      const unique = slug === undefined ? body : { ...body, slug: `own-${label.replaceAll(' ', '-')}` };
      const { status, body: result } = await send(method, path, unique);
      assert.ok(status === 200 || status === 201, `${label}: ${JSON.stringify(result)}`);
    }
  });
});
