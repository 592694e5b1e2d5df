import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { readConfig } from '../../apps/server/src/config.ts';
import { freshRequest } from '../support/fresh-request.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { checkConfiguration } from '../support/valid-configs.ts';

const icons = [{ src: 'https://example.com/icon.png', mimeType: 'image/png', sizes: ['48x48', '96x96'] }];
const presentation = { icons, website_url: 'https://example.com/orders' };
const cardType = 'application/mcp-server-card+json';

describe('publishing of a server', () => {
  const toolhost = useFixture(() =>
    startToolhost({
      env: { SERVER_HOSTS: '*.tools.localhost', OPENAI_APPS_CHALLENGE: 'shop.tools.localhost=its-token' },
    }),
  );
  let host: string;
  let port: string;
  let key: string;
  before(async () => {
    ({ host, port } = new URL(toolhost.url));
    key = await toolhost.createKey();
  });

  let count = 0;
  const createServer = async (fields: Json) => {
    const slug = `shop-${++count}`;
    const tools = [buildToolAt('https://api.example.com/secret-orders')];
    await toolhost.createServer({ name: 'Orders', slug, tools, ...fields });
    return slug;
  };
  const get = (path: string, headers: Record<string, string> = {}) =>
    freshRequest(`http://127.0.0.1:${port}${path}`, { headers: { host, ...headers } });
  const getCard = async (slug: string) => (await get(`/mcp/${slug}/server-card`)).body;
  const listCatalog = async () => (await get('/.well-known/ai-catalog.json')).body.entries as Json[];
  const getProblems = async (fields: Json) => {
    const config = { name: 'Orders', slug: 'refused', tools: [], ...fields };
    return (await checkConfiguration(toolhost, config)).problems;
  };

  it('shows icons and the website in serverInfo, also of a view and of a server that is not public', async () => {
    const slug = await createServer({ ...presentation, views: { desk: { title: 'Desk', read_only: true } } });
    const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    for (const address of [slug, `${slug}/desk`]) {
      const { serverInfo } = (await toolhost.rpc(address, key, 'initialize', initialize)).body.result as Json;
      const { name, icons: shown, websiteUrl } = serverInfo as Json;
      assert.deepEqual([name, shown, websiteUrl], [address, icons, presentation.website_url]);
    }
  });

  it('serves a server card without tools for a public server', async () => {
    const description = `Finds orders.\n${'x'.repeat(200)}`;
    const slug = await createServer({ public: true, description, ...presentation });
    const reply = await get(`/mcp/${slug}/server-card`, { origin: 'https://directory.example' });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.headers['content-type'], cardType);
    assert.equal(reply.headers['access-control-allow-origin'], '*');
    assert.match(String(reply.headers['cache-control']), /public, max-age=/);
    assert.doesNotMatch(reply.text, /secret-orders|api\.example\.com/);
    const { description: shown, remotes, ...card } = reply.body;
    assert.deepEqual(card, {
      $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
      name: `localhost/${slug}`,
      title: 'Orders',
      version: '1',
      icons,
      websiteUrl: presentation.website_url,
    });
    assert.match(String(shown), /^Finds orders\. x+…$/);
    assert.equal(String(shown).length, 100);
    const [remote] = remotes as [Json];
    assert.deepEqual([remote.type, remote.url], ['streamable-http', `${toolhost.url}/mcp/${slug}`]);
    assert.ok((remote.supportedProtocolVersions as string[]).includes('2026-07-28'));
    assert.deepEqual(
      (remote.headers as Json[]).map(({ name, isSecret }) => [name, isSecret]),
      [['Authorization', true]],
    );
  });

  it('answers a conditional request for an unchanged card with 304', async () => {
    const slug = await createServer({ public: true });
    const { headers } = await get(`/mcp/${slug}/server-card`);
    const cached = await get(`/mcp/${slug}/server-card`, { 'if-none-match': String(headers.etag) });
    assert.deepEqual([cached.status, cached.text], [304, '']);
  });

  it('asks clients of a server with a login for no header', async () => {
    const oauth = { client_id: 'c', client_secret: 's', scopes: [] };
    const urls = { authorization_url: 'https://login.example.com/a', token_url: 'https://login.example.com/t' };
    const authentication = { type: 'Bearer' };
    const slug = await createServer({ public: true, authentication, oauth: { ...oauth, ...urls } });
    const [remote] = (await getCard(slug)).remotes as [Json];
    assert.equal(remote.headers, undefined);
  });

  it('serves a server.json for the MCP registry', async () => {
    const slug = await createServer({ public: true, ...presentation });
    const { status, headers, body } = await get(`/mcp/${slug}/server.json`);
    assert.deepEqual([status, headers['content-type']], [200, 'application/json']);
    assert.match(String(body.$schema), /\/schemas\/2025-12-11\/server\.schema\.json$/);
    assert.deepEqual([body.name, body.version, body.icons], [`localhost/${slug}`, '1', icons]);
    const [remote] = body.remotes as [Json];
    assert.deepEqual(Object.keys(remote), ['type', 'url', 'headers']);
  });

  it('hides a server that is not public like one that does not exist, until it is published', async () => {
    const slug = await createServer(presentation);
    const unknown = await get('/mcp/no-such-server/server-card');
    for (const path of [`/mcp/${slug}/server-card`, `/mcp/${slug}/server.json`]) {
      const reply = await get(path);
      assert.equal(reply.status, 404);
      assert.equal(reply.body.detail, unknown.body.detail);
    }
    const isListed = async () => (await listCatalog()).some(({ url }) => String(url).includes(`/${slug}/`));
    assert.equal(await isListed(), false);
    await toolhost.rest('PATCH', `/servers/${slug}`, { body: { public: true } });
    assert.equal((await get(`/mcp/${slug}/server-card`)).status, 200);
    assert.equal(await isListed(), true);
    await toolhost.rest('DELETE', `/servers/${slug}`);
    assert.equal((await get(`/mcp/${slug}/server-card`)).status, 404);
    assert.equal(await isListed(), false);
  });

  it('lists the cards of public servers in the catalog', async () => {
    const slug = await createServer({ public: true });
    const reply = await get('/.well-known/ai-catalog.json');
    assert.equal(reply.headers['content-type'], 'application/ai-catalog+json');
    assert.equal(reply.body.specVersion, '1.0');
    const url = `${toolhost.url}/mcp/${slug}/server-card`;
    const entry = (reply.body.entries as Json[]).find((candidate) => candidate.url === url);
    assert.deepEqual(entry, { identifier: `urn:air:127.0.0.1:mcp:${slug}`, type: cardType, url });
    assert.equal((await get(new URL(url).pathname)).status, 200);
  });

  it('lists at most 100 public servers of one tenant', async () => {
    for (let i = 0; i <= 100; i++) await createServer({ public: true });
    assert.equal((await listCatalog()).length, 100);
  });

  it('serves card and server.json on the host of the server, with the URL of that host', async () => {
    const slug = await createServer({ public: true });
    const ownHost = `${slug}.tools.localhost:${port}`;
    for (const name of ['server-card', 'server.json']) {
      const { body } = await get(`/mcp/${name}`, { host: ownHost });
      assert.equal((body.remotes as [Json])[0].url, `http://${ownHost}/mcp`);
    }
  });

  it('serves the challenge of OpenAI as plain text on the host that it was set for, and on no other', async () => {
    const path = '/.well-known/openai-apps-challenge';
    const reply = await get(path, { host: `shop.tools.localhost:${port}` });
    assert.deepEqual([reply.status, reply.text], [200, 'its-token']);
    assert.match(String(reply.headers['content-type']), /^text\/plain/);
    assert.equal((await get(path)).status, 404);
    assert.equal((await get(path, { host: `other.tools.localhost:${port}` })).status, 404);
  });

  it('does not publish the duplicate of a public server', async () => {
    const slug = await createServer({ public: true, ...presentation });
    const copy = await toolhost.rest('POST', `/servers/${slug}/duplicate`, { body: { to: `${slug}-copy` } });
    assert.ok(copy.status < 300, copy.text);
    const { config } = (await toolhost.rest('GET', `/servers/${slug}-copy`)).body as { config: Json };
    assert.deepEqual([config.public, config.icons], [undefined, icons]);
  });

  it('rejects icons and websites that are not https, and a view named server-card', async () => {
    const problems = await getProblems({
      icons: [
        { src: 'http://example.com/a.png' },
        { src: 'data:image/png;base64,AA==' },
        { src: 'https://a:b@c.example/' },
      ],
      website_url: 'javascript:alert(1)',
    });
    for (const path of ['icons[0].src', 'icons[1].src', 'icons[2].src', 'website_url'])
      assert.ok(
        problems.some((problem) => problem.startsWith(path)),
        `${path} in ${problems.join('\n')}`,
      );
    const views = await getProblems({ views: { 'server-card': { read_only: true } } });
    assert.match(views.join(), /views\.server-card: .*reserved/);
    const sizes = await getProblems({ icons: [{ src: 'https://example.com/a.png', sizes: ['big'] }] });
    assert.match(sizes.join(), /icons\[0\]\.sizes\[0\].*48x48/);
  });

  it('reports an invalid OPENAI_APPS_CHALLENGE without repeating a token', () => {
    for (const value of ['token-without-host', 'tools.example.com=', 'bad host=t0ken', 'a.example=to ken'])
      assert.throws(
        () => readConfig({ OPENAI_APPS_CHALLENGE: value }, () => ''),
        (error: Error) =>
          /OPENAI_APPS_CHALLENGE: .*host=token/.test(error.message) && !/t0ken|to ken/.test(error.message),
      );
  });
});
