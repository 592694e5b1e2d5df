import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { getToolNames, patchServer } from '../support/server-requests.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerConfig, buildToolConfig } from '../support/valid-configs.ts';

const authentication = { type: 'Bearer', token: 'of-the-upstream' };
const getErrorMessage = ({ body }: Reply) => (body.error as { message: string } | undefined)?.message;

describe('access to views', () => {
  const { toolhost, upstream } = useToolhostWithUpstream();
  before(() => upstream.on('*', () => ({ body: {} })));

  const tool = (name: string, overrides: Json = {}) =>
    buildToolConfig({ name, url: `${upstream.url}/${name}`, ...overrides });
  const serve = (slug: string, views: Json, tools: Json[]) =>
    toolhost.createServer(buildServerConfig({ slug, authentication, views, tools }));
  const requestKey = (body: Json, key?: string) =>
    toolhost.rest('POST', '/keys', { body: { name: 'test', scopes: ['call'], ...body }, ...(key && { key }) });
  const createKey = async (body: Json) => {
    const reply = await requestKey(body);
    assert.equal(reply.status, 201, reply.text);
    return String(reply.body.key);
  };
  const list = (address: string, key: string) => toolhost.rpc(address, key, 'tools/list');

  it('is limited to the views of a key, and every other URL rejects it [agent 2]', async () => {
    await serve('desk', { support: { tools: ['one'] }, finance: { tools: ['two'] } }, [tool('one'), tool('two')]);
    await serve('other', { support: { tools: ['one'] } }, [tool('one')]);
    const key = await createKey({ views: ['desk/support'] });
    assert.deepEqual(getToolNames(await list('desk/support', key)), ['one']);
    const none = await toolhost.createKey({ scopes: ['call'], servers: ['nothing'] });
    const toComparable = ({ status, text, headers }: Reply) => [status, text, headers.get('www-authenticate')];
    for (const address of ['desk', 'desk/finance', 'other', 'other/support']) {
      const rejected = toComparable(await list(address, key));
      assert.equal(rejected[0], 403, `${address} ${rejected}`);
      assert.deepEqual(rejected, toComparable(await list(address, none)), address);
    }
    assert.equal((await list('manage', key)).status, 403);
    for (const path of ['/servers', '/servers/desk', '/calls'])
      assert.equal((await toolhost.rest('GET', path, { key })).status, 403, path);
    const trialCall = await toolhost.rest('POST', '/servers/desk/tools/one/call', { key, body: { arguments: {} } });
    assert.equal(trialCall.status, 404);
  });

  it('ends when the view is removed, and a key for a server includes its views [agent 2]', async () => {
    await serve('moved', { before: { tools: ['one'] } }, [tool('one')]);
    const viewKey = await createKey({ views: ['moved/before'] });
    const serverKey = await createKey({ servers: ['moved'] });
    for (const key of [viewKey, serverKey]) assert.equal((await list('moved/before', key)).status, 200);
    await patchServer(toolhost, 'moved', { views: { after: { tools: ['one'] } } });
    assert.equal((await list('moved/before', viewKey)).status, 404);
    assert.equal((await list('moved/after', viewKey)).status, 403);
    assert.equal((await list('moved/after', serverKey)).status, 200);
  });

  it('is restored with a view of the same name, by an edit or a restored version, unless the key was revoked [agent 2]', async () => {
    const views = { desk: { tools: ['one'] } };
    await serve('again', views, [tool('one'), tool('two')]);
    const retained = (await requestKey({ views: ['again/desk'] })).body;
    const revoked = (await requestKey({ views: ['again/desk'] })).body;
    const listWith = ({ key }: Json) => list('again/desk', String(key));
    await patchServer(toolhost, 'again', { views: null });
    assert.equal((await toolhost.rest('DELETE', `/keys/${revoked.id}`)).status, 200);
    assert.equal((await listWith(retained)).status, 404);
    await patchServer(toolhost, 'again', { views: { desk: { tools: ['two'] } } });
    assert.deepEqual(getToolNames(await listWith(retained)), ['two']);
    await patchServer(toolhost, 'again', { views: null });
    assert.equal((await toolhost.rest('POST', '/servers/again/versions/1/restore', { body: {} })).status, 200);
    assert.deepEqual(getToolNames(await listWith(retained)), ['one']);
    assert.equal((await listWith(revoked)).status, 401);
  });

  it('ends when the server is deleted, and its slug cannot be reused [agent 2]', async () => {
    await serve('ended', { desk: { tools: ['one'] } }, [tool('one')]);
    const key = await createKey({ views: ['ended/desk'] });
    assert.equal((await toolhost.rest('DELETE', '/servers/ended')).status, 200);
    const body = buildServerConfig({ slug: 'ended', authentication });
    const recreated = await toolhost.rest('POST', '/servers', { body });
    assert.ok(recreated.status >= 400, recreated.text);
    assert.equal((await list('ended/desk', key)).status, 404);
  });

  it('is shown with the key and can be granted only for views of the workspace [agent 2]', async () => {
    await serve('mine', { v: { tools: ['one'] } }, [tool('one')]);
    const created = await requestKey({ servers: ['desk'], views: ['mine/v', 'mine/v'] });
    const { key: _, ...record } = created.body;
    assert.deepEqual([record.servers, record.views], [['desk'], ['mine/v']]);
    const keys = (await toolhost.rest('GET', '/keys')).body.keys as Json[];
    const listed = keys.find(({ id }) => id === record.id);
    assert.deepEqual(listed, record);
    // An older release without views compares these values with slugs and so rejects the view.
    const { db } = toolhost.running.app.runner;
    const rows = await db.selectFrom('api_keys').select('servers').where('id', '=', String(record.id)).execute();
    assert.equal(rows[0]?.servers, '["desk","mine/v"]');
    const only = await requestKey({ views: ['mine/v'] });
    assert.deepEqual([only.body.servers, only.body.views], [undefined, ['mine/v']]);

    const problems = async (body: Json, key?: string) => {
      const reply = await requestKey(body, key);
      assert.equal(reply.status, 400, reply.text);
      return (reply.body.problems as Json[]).map(({ path, message }) => `${path}: ${message}`);
    };
    assert.deepEqual(await problems({ views: ['mine/w', 'mine', 'mine/v/x', 'nowhere/v', 'mine/constructor'] }), [
      'views[0]: there is no view "mine/w" in this workspace; allowed: slug/view; did you mean `mine/v`?',
      'views[1]: there is no view "mine" in this workspace; allowed: slug/view; did you mean `mine/v`?',
      'views[2]: there is no view "mine/v/x" in this workspace; allowed: slug/view; did you mean `mine/v`?',
      'views[3]: there is no view "nowhere/v" in this workspace; allowed: slug/view',
      'views[4]: there is no view "mine/constructor" in this workspace; allowed: slug/view; it has: mine/v',
    ]);
    assert.deepEqual(await problems({ views: ['mine/v'], scopes: ['call', 'manage:read'] }), [
      'scopes: a key that is limited to views can only call tools; found manage:read; allowed: call',
    ]);
    const foreignKey = await toolhost.createKey({ workspace: 'ws_other' });
    const [foreignProblem] = await problems({ views: ['mine/v'] }, foreignKey);
    assert.equal(foreignProblem, 'views[0]: there is no view "mine/v" in this workspace; allowed: slug/view');
    const foreignCallKey = await toolhost.createKey({ workspace: 'ws_other', scopes: ['call'] });
    assert.equal((await list('mine/v', foreignCallKey)).status, 401);
  });

  it('is the same for tools/list and for calls, whatever selects the tools of the view [agent 2]', async () => {
    const red = { tags: ['red'] };
    const post = { method: 'POST' };
    const tools = [
      tool('a'),
      tool('b', red),
      tool('c', { ...red, ...post }),
      tool('d', { ...post, annotations: { readOnlyHint: true } }),
      tool('e', { annotations: { readOnlyHint: false } }),
      tool('f', { ...red, disabled: true }),
    ];
    const selections: Record<string, [view: Json, names: string[]]> = {
      both: [{ tools: ['e', 'a'], ...red }, ['e', 'a', 'b', 'c']],
      filtered: [{ tools: ['a', 'c', 'd', 'e'], read_only: true }, ['a', 'd']],
      tagged: [{ ...red, read_only: true }, ['b']],
    };
    const views = Object.fromEntries(Object.entries(selections).map(([name, [view]]) => [name, view]));
    await serve('selected', views, tools);
    const key = await createKey({ servers: ['selected'] });
    for (const [view, [, names]] of Object.entries(selections)) {
      assert.deepEqual(getToolNames(await list(`selected/${view}`, key)).toSorted(), names.toSorted(), view);
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
        const reply = await toolhost.rpc(`selected/${view}`, key, 'tools/call', { name });
        if (names.includes(name)) assert.equal((reply.body.result as Json).isError, undefined, reply.text);
        else assert.match(String(getErrorMessage(reply)), /^there is no tool/);
      }
    }
  });
});
