import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { type EngineToolhost, startOn } from '../support/toolhost/engine-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

for (const engine of engines) {
  describe(`search on ${engine}`, () => {
    let world: EngineToolhost;
    before(async () => {
      world = await startOn(engine);
      const tool = (name: string) => ({
        name,
        description: 'Reads.',
        method: 'GET',
        url: 'https://api.example.com/things',
        input_schema: {},
      });
      const serve = (slug: string, name: string, tools: string[]) =>
        world.toolhost.createServer({ slug, name, tools: tools.map(tool) });
      await serve('shop', 'Shop of Zürich', ['list_orders', 'refund_order', 'list_orders_of_day']);
      await serve('shop-staging', 'Shop, staging', ['list_orders', 'percent_100']);
      await serve('mail', 'Mail', ['sendMail', 'list']);
      await world.toolhost.rest('PATCH', '/servers/shop', { body: { description: 'Sells.' } });
      const tags = { body: { tags: ['finance', 'Customers', 'finance'] } };
      assert.deepEqual((await world.toolhost.rest('PUT', '/servers/mail/tags', tags)).body.tags, [
        'Customers',
        'finance',
      ]);
      const key = await world.toolhost.key({ workspace: 'others' });
      const body = { slug: 'shop-of-others', name: 'Shop of others', tools: [tool('list_orders')] };
      assert.equal((await world.toolhost.rest('POST', '/servers', { body, key })).status, 201);
    });
    after(() => world?.stop());

    const found = async (query: string, key?: string) => {
      const path = `/search?query=${encodeURIComponent(query)}`;
      const { body } = await world.toolhost.rest('GET', path, key === undefined ? {} : { key });
      const tools = (body.tools as Json[]).map(({ server, tool: name }) => `${server} ${name}`);
      return { servers: (body.servers as Json[]).map(({ slug }) => slug), tools };
    };
    const listed = async (query: string) => {
      const { body } = await world.toolhost.rest('GET', `/servers?${query}`);
      return (body.servers as Json[]).map(({ slug }) => slug).filter((slug) => slug !== 'projects');
    };

    it('finds servers and tools of one workspace by their words, best match first', async () => {
      assert.deepEqual(await found('list orders'), {
        servers: [],
        tools: ['shop list_orders', 'shop-staging list_orders', 'shop list_orders_of_day'],
      });
      assert.deepEqual(await found('staging LIST'), { servers: [], tools: ['shop-staging list_orders'] });
      assert.deepEqual((await found('shop')).servers, ['shop', 'shop-staging']);
      assert.deepEqual((await found('Customers')).servers, ['mail']);
      assert.deepEqual((await found('sendmail')).tools, ['mail sendMail']);
      assert.deepEqual(await found('percent_100'), { servers: [], tools: ['shop-staging percent_100'] });
      assert.deepEqual(await found('percent%100'), { servers: [], tools: [] });
    });

    it('finds the tool that has both words among many servers that have them in different tools', async () => {
      const { db } = world.toolhost.running.app.runner;
      const server = await db.selectFrom('servers').selectAll().where('slug', '=', 'shop').executeTakeFirstOrThrow();
      const many = Array.from({ length: 250 }, (_, n) => ({
        ...server,
        id: `srv_many-${n}`,
        slug: `many-${n}`,
        tool_names: n === 99 ? '\nread_green_apples\n' : '\nread_apples\nread_green\n',
      }));
      await db.insertInto('servers').values(many).execute();
      assert.deepEqual((await found('apples green')).tools, ['many-99 read_green_apples']);
      await db.deleteFrom('servers').where('id', 'like', 'srv_many-%').execute();
    });

    it('finds a key by its name or ID, and a call by its ID', async () => {
      const { toolhost } = world;
      const { body } = await toolhost.rest('POST', '/keys', { body: { name: 'Nightly report', scopes: ['call'] } });
      const keysFor = async (query: string) => (await toolhost.rest('GET', `/search?query=${query}`)).body.keys;
      const own = [{ id: body.id, name: 'Nightly report', works: true }];
      assert.deepEqual(await keysFor('nightly'), own);
      assert.deepEqual(await keysFor(String(body.id)), own);
      const called = await toolhost.rpc('mail', String(body.key), 'tools/call', { name: 'sendMail', arguments: {} });
      const [call] = (await toolhost.rest('GET', '/calls')).body.calls as Json[];
      assert.ok(call, JSON.stringify(called));
      for (const id of [call.id, call.request_id]) {
        const { body: answer } = await toolhost.rest('GET', `/search?query=${id}`);
        assert.deepEqual(
          (answer.calls as Json[]).map((one) => [one.id, one.tool]),
          [[call.id, 'sendMail']],
        );
      }
    });

    it('shows only its server to a key that is limited to one server', async () => {
      const wanted = { name: 'Of mail', scopes: ['manage:read'], servers: ['mail'] };
      const { body: made } = await world.toolhost.rest('POST', '/keys', { body: wanted });
      const key = String(made.key);
      assert.deepEqual(await found('list', key), { servers: [], tools: ['mail list'] });
      assert.deepEqual(await found('shop', key), { servers: [], tools: [] });
      const { body } = await world.toolhost.rest('GET', '/search?query=mail', { key });
      assert.deepEqual([(body.servers as Json[]).length, body.keys], [1, []]);
    });

    it('lists servers by words, by tag, and sorted, in pages', async () => {
      assert.deepEqual(await listed('query=shop%20ZÜRICH'), ['shop']);
      assert.deepEqual(await listed('query=shop%20z'), ['shop']);
      assert.deepEqual(await listed('query=finance'), ['mail']);
      assert.deepEqual(await listed('sort=name'), ['mail', 'shop', 'shop-staging']);
      const first = (await world.toolhost.rest('GET', '/servers?sort=name&limit=2&query=shop')).body;
      assert.equal(first.next_cursor, undefined);
      const pages: unknown[] = [];
      for (let cursor = ''; ; ) {
        const { body } = await world.toolhost.rest('GET', `/servers?sort=name&limit=1${cursor}`);
        const activity = await world.toolhost.rest('GET', `/activity?sort=name&limit=1${cursor}`);
        const slugs = (answer: Json) => (answer.servers as Json[]).map(({ slug }) => slug);
        assert.deepEqual(slugs(activity.body), slugs(body));
        pages.push(...slugs(body));
        if (body.next_cursor === undefined) break;
        cursor = `&cursor=${body.next_cursor}`;
      }
      assert.deepEqual(
        pages.filter((slug) => slug !== 'projects'),
        ['mail', 'shop', 'shop-staging'],
      );
    });
  });
}
