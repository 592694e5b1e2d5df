import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { pluck } from '../support/pluck.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

for (const engine of engines) {
  describe(`search on ${engine}`, async () => {
    const world = await startToolhostOnEngine(engine);
    const tool = (name: string) => buildToolAt('https://api.example.com/things', { name, description: 'Reads.' });
    const createServer = (slug: string, name: string, tools: string[]) =>
      world.toolhost.createServer({ slug, name, tools: tools.map(tool) });
    await createServer('shop', 'Shop of Zürich', ['list_orders', 'refund_order', 'list_orders_of_day']);
    await createServer('shop-staging', 'Shop, staging', ['list_orders', 'percent_100']);
    await createServer('mail', 'Mail', ['sendMail', 'list']);
    await world.toolhost.rest('PATCH', '/servers/shop', { body: { description: 'Sells.' } });
    const tags = { body: { tags: ['finance', 'Customers', 'finance'] } };
    const tagged = await world.toolhost.rest('PUT', '/servers/mail/tags', tags);
    assert.deepEqual(tagged.body.tags, ['Customers', 'finance']);
    const key = await world.toolhost.createKey({ workspace: 'others' });
    const body = { slug: 'shop-of-others', name: 'Shop of others', tools: [tool('list_orders')] };
    assert.equal((await world.toolhost.rest('POST', '/servers', { body, key })).status, 201);
    after(() => world.stop());

    const findServersAndTools = async (query: string, key?: string) => {
      const path = `/search?query=${encodeURIComponent(query)}`;
      const { body } = await world.toolhost.rest('GET', path, key === undefined ? {} : { key });
      const tools = (body.tools as Json[]).map(({ server, tool: name }) => `${server} ${name}`);
      return { servers: pluck(body.servers, 'slug'), tools };
    };
    const listServers = async (query: string) =>
      pluck((await world.toolhost.rest('GET', `/servers?${query}`)).body.servers, 'slug');

    it('finds servers and tools of one workspace by their words, best match first', async () => {
      assert.deepEqual(await findServersAndTools('list orders'), {
        servers: [],
        tools: ['shop list_orders', 'shop-staging list_orders', 'shop list_orders_of_day'],
      });
      assert.deepEqual(await findServersAndTools('staging LIST'), { servers: [], tools: ['shop-staging list_orders'] });
      assert.deepEqual((await findServersAndTools('shop')).servers, ['shop', 'shop-staging']);
      assert.deepEqual((await findServersAndTools('Customers')).servers, ['mail']);
      assert.deepEqual((await findServersAndTools('sendmail')).tools, ['mail sendMail']);
      assert.deepEqual(await findServersAndTools('percent_100'), { servers: [], tools: ['shop-staging percent_100'] });
      assert.deepEqual(await findServersAndTools('percent%100'), { servers: [], tools: [] });
    });

    it('finds the tool that has both words among many servers that have them in different tools', async () => {
      const { db } = world.toolhost.running.app.runner;
      const server = await db.selectFrom('servers').selectAll().where('slug', '=', 'shop').executeTakeFirstOrThrow();
      const many = Array.from({ length: 250 }, (_, n) => {
        const tool_names = n === 99 ? '\nread_green_apples\n' : '\nread_apples\nread_green\n';
        return { ...server, id: `srv_many-${n}`, slug: `many-${n}`, tool_names };
      });
      await db.insertInto('servers').values(many).execute();
      assert.deepEqual((await findServersAndTools('apples green')).tools, ['many-99 read_green_apples']);
      await db.deleteFrom('servers').where('id', 'like', 'srv_many-%').execute();
    });

    it('finds a key by its name or ID, and a call by its ID', async () => {
      const { toolhost } = world;
      const { body } = await toolhost.rest('POST', '/keys', { body: { name: 'Nightly report', scopes: ['call'] } });
      const findKeys = async (query: string) => (await toolhost.rest('GET', `/search?query=${query}`)).body.keys;
      const expected = [{ id: body.id, name: 'Nightly report', works: true }];
      assert.deepEqual(await findKeys('nightly'), expected);
      assert.deepEqual(await findKeys(String(body.id)), expected);
      const called = await toolhost.rpc('mail', String(body.key), 'tools/call', { name: 'sendMail', arguments: {} });
      const [call] = (await toolhost.rest('GET', '/calls')).body.calls as Json[];
      assert.ok(call, JSON.stringify(called));
      for (const id of [call.id, call.request_id]) {
        const { body: result } = await toolhost.rest('GET', `/search?query=${id}`);
        assert.deepEqual(pluck(result.calls, 'id', 'tool'), [call.id, 'sendMail']);
      }
    });

    it('shows only its server to a key that is limited to one server', async () => {
      const input = { name: 'Of mail', scopes: ['manage:read'], servers: ['mail'] };
      const { body: created } = await world.toolhost.rest('POST', '/keys', { body: input });
      const key = String(created.key);
      assert.deepEqual(await findServersAndTools('list', key), { servers: [], tools: ['mail list'] });
      assert.deepEqual(await findServersAndTools('shop', key), { servers: [], tools: [] });
      const { body } = await world.toolhost.rest('GET', '/search?query=mail', { key });
      assert.deepEqual([(body.servers as Json[]).length, body.keys], [1, []]);
    });

    it('lists servers by words, by tag, and sorted, in pages', async () => {
      assert.deepEqual(await listServers('query=shop%20ZÜRICH'), ['shop']);
      assert.deepEqual(await listServers('query=shop%20z'), ['shop']);
      assert.deepEqual(await listServers('query=finance'), ['mail']);
      assert.deepEqual(await listServers('sort=name'), ['mail', 'shop', 'shop-staging']);
      const first = (await world.toolhost.rest('GET', '/servers?sort=name&limit=2&query=shop')).body;
      assert.equal(first.next_cursor, undefined);
      const pages: unknown[] = [];
      for (let cursor = ''; ; ) {
        const { body } = await world.toolhost.rest('GET', `/servers?sort=name&limit=1${cursor}`);
        const activity = await world.toolhost.rest('GET', `/activity?sort=name&limit=1${cursor}`);
        assert.deepEqual(pluck(activity.body.servers, 'slug'), pluck(body.servers, 'slug'));
        pages.push(...pluck(body.servers, 'slug'));
        if (body.next_cursor === undefined) break;
        cursor = `&cursor=${body.next_cursor}`;
      }
      assert.deepEqual(pages, ['mail', 'shop', 'shop-staging']);
    });
  });
}
