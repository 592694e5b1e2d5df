import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { pluck } from '../support/pluck.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('a server with versions and duplicates', async () => {
  const [staging, production] = await Promise.all([startRecordingUpstream(), startRecordingUpstream()]);
  const toolhost = await startToolhost({ egressPorts: [staging.port, production.port] });
  after(() => Promise.all([toolhost.stop(), staging.close(), production.close()]));

  const request = async (status: number, method: string, path: string, body?: Json) => {
    const reply = await toolhost.rest(method, path, body === undefined ? {} : { body });
    assert.equal(reply.status, status, reply.text);
    return reply.body;
  };
  const duplicate = (slug: string, body: Json, status = 200) =>
    request(status, 'POST', `/servers/${slug}/duplicate`, body);
  const plan = (slug: string, body: Json) => request(200, 'POST', `/servers/${slug}/duplicate/plan`, body);
  const getConfig = async (slug: string) => (await request(200, 'GET', `/servers/${slug}`)).config as Json;

  it('copies a server to another slug, base URL, and secrets, and applies later changes when repeated', async () => {
    const authentication = { type: 'Bearer', token: 'the-token-of-staging' };
    const more = { authentication, headers: { 'X-Tenant': '{{TENANT}}' } };
    await toolhost.createServer(buildServerAt('shop-staging', staging.url, more));
    const input = { to: 'shop', base_url: production.url };
    const first = await plan('shop-staging', input);
    assert.deepEqual(first.missing, [
      { name: 'authentication.token', why: 'no_value', required: true },
      { name: 'TENANT', why: 'no_value', required: false },
    ]);
    assert.deepEqual([first.change, first.base_url], ['created', production.url]);
    await duplicate('shop-staging', input, 400);
    const secrets = { 'authentication.token': 'the-token-of-production', TENANT: 'acme' };
    await duplicate('shop-staging', { ...input, name: 'Shop', secrets });
    await toolhost.callTool('shop', await toolhost.createKey(), 'get');
    const { authorization, 'x-tenant': tenant } = production.take()[0]?.headers ?? {};
    assert.deepEqual([authorization, tenant], ['Bearer the-token-of-production', 'acme']);
    assert.deepEqual(staging.take(), []);

    const [before] = (await getConfig('shop')).tools as [Json];
    const changed = [{ timeout_ms: 20_000 }, { name: 'another' }].map((fields) => ({
      ...before,
      url: `${staging.url}/thing`,
      ...fields,
    }));
    await request(200, 'PATCH', '/servers/shop-staging', { tools: changed });
    const second = await plan('shop-staging', { to: 'shop' });
    assert.deepEqual(pluck(second.changes, 'text'), ['get: timeout changed', 'tool another added']);
    assert.deepEqual([second.change, second.missing, second.name], ['changed', [], 'Shop']);
    await duplicate('shop-staging', { to: 'shop' });
    assert.equal((await duplicate('shop-staging', { to: 'shop' })).unchanged, true);
    const copiedTools = changed.map((one) => ({ ...one, url: `${production.url}/thing` }));
    assert.deepEqual((await getConfig('shop')).tools, copiedTools);
    const copy = { slug: 'shop', name: 'Shop', version: 2, copied_version: 2 };
    assert.deepEqual((await request(200, 'GET', '/servers/shop-staging')).copies, [copy]);
  });

  it('keeps variable values of the copy, and requires secrets again if their host differs', async () => {
    const more = { headers: { 'X-Region': '{{region}}' }, variables: { region: { value: 'eu' } } };
    const authentication = { type: 'Bearer', token: '{{KEY}}' };
    await toolhost.createServer(buildServerAt('orders-staging', staging.url, { authentication, ...more }));
    await duplicate('orders-staging', { to: 'orders', secrets: { KEY: 'first' } });
    await request(200, 'PATCH', '/servers/orders', { variables: { region: { value: 'us' } } });
    const moved = await plan('orders-staging', { to: 'orders', base_url: production.url });
    assert.deepEqual(moved.missing, [{ name: 'KEY', why: 'other_host', required: false }]);
    await duplicate('orders-staging', { to: 'orders', base_url: production.url, secrets: { KEY: 'second' } });
    assert.deepEqual((await getConfig('orders')).variables, { region: { value: 'us' } });
  });

  it('keeps the people and the clients of the copy, and takes the fields of its login from the original', async () => {
    const fields = [{ name: 'KEY', label: 'Key' }];
    const more = { authentication: { type: 'Bearer', token: '{{KEY}}' } };
    const login = { allow: { members: true }, fields };
    await toolhost.createServer(buildServerAt('people-staging', staging.url, { ...more, login }));
    const first = await plan('people-staging', { to: 'people', base_url: production.url });
    assert.deepEqual([first.missing, first.problems], [[], []]);
    await duplicate('people-staging', { to: 'people', base_url: production.url });
    const own = { allow: { groups: ['support'] }, clients: ['https://client.example/callback'] };
    await request(200, 'PATCH', '/servers/people', { login: { ...own, fields } });
    const changedFields = [{ name: 'KEY', label: 'Another key' }];
    await request(200, 'PATCH', '/servers/people-staging', { login: { ...login, fields: changedFields } });
    await duplicate('people-staging', { to: 'people' });
    assert.deepEqual((await getConfig('people')).login, { ...own, fields: changedFields });
    assert.match(
      JSON.stringify(await duplicate('people-staging', { to: 'people', secrets: { KEY: 'x' } }, 409)),
      /each person provides \{\{KEY\}\} at login/,
    );
  });

  it('replaces a server that is not its copy only with `overwrite`', async () => {
    await toolhost.createServer(buildServerAt('first-one', staging.url));
    await toolhost.createServer(buildServerAt('second-one', production.url));
    const refused = await plan('first-one', { to: 'second-one' });
    assert.match(JSON.stringify(refused.problems), /was not duplicated from first-one/);
    await duplicate('first-one', { to: 'second-one' }, 400);
    await duplicate('first-one', { to: 'first-one' }, 400);
    await duplicate('first-one', { to: 'projects-of-another', base_url: 'nowhere' }, 400);
    await duplicate('first-one', { to: 'second-one', name: 'Replaced', overwrite: true });
    assert.equal((await getConfig('second-one')).name, 'Replaced');
  });

  it('compares versions semantically, and gives them messages that name the version they restore', async () => {
    const config = buildServerAt('versioned', 'https://api.example.com');
    await toolhost.createServer(config);
    const send = (status: number, method: string, path: string, body?: Json) =>
      request(status, method, `/servers/versioned${path}`, body);
    const [tool] = config.tools as [Json];
    await send(200, 'PATCH', '', { tools: [{ ...tool, timeout_ms: 5000 }], message: 'Shorter' });
    await send(200, 'PATCH', '', { tools: [tool, { ...tool, name: 'added', disabled: true }], description: 'Reads.' });
    const getChanges = async (from: number, to: number) =>
      pluck((await send(200, 'GET', `/versions/${from}/compare/${to}`)).changes, 'text');
    assert.deepEqual(await getChanges(1, 2), ['get: timeout changed']);
    assert.deepEqual(await getChanges(1, 3), ['description added', 'tool added added']);
    assert.deepEqual(await getChanges(3, 1), ['description removed', 'tool added removed']);
    assert.deepEqual(await getChanges(2, 2), []);
    await send(404, 'GET', '/versions/2/compare/9');
    await send(200, 'PATCH', '/versions/3', { message: 'With another tool' });
    await send(404, 'PATCH', '/versions/9', { message: 'None' });
    await send(400, 'PATCH', '/versions/1', { message: 'two\nlines' });
    await send(400, 'PATCH', '', { description: 'Other.', message: 'x'.repeat(201) });
    await send(200, 'POST', '/versions/2/restore');
    const { versions } = await send(200, 'GET', '/versions');
    assert.deepEqual(pluck(versions, 'message'), ['Restores version 2', 'With another tool', 'Shorter', undefined]);
  });
});
