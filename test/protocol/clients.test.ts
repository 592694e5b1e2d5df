import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { isFullSuite } from '../sets.ts';
import { type McpClient, type McpClientKind, mcpClients } from '../support/mcp-clients.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';

const largeFile = Buffer.alloc(400_000, 0xfe);
const storedCredential = 'the-credential-of-the-upstream';

/** All clients in the full test set, otherwise only the client that detects the protocol version of a server. */
const clients = isFullSuite ? mcpClients : mcpClients.filter(({ name }) => name === 'SDK v2, auto');

/** Creates a server configuration. Clients of version 2026-07-28 mirror the argument `item` into a header. */
function createConfig(slug: string, upstream: string, authentication: object, more: object = {}) {
  const item = { type: 'string', description: 'Name of the item.', 'x-mcp-header': 'Item' };
  const properties = { item: { type: 'string' }, count: { type: 'integer' } };
  const note = { text: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } } };
  const tool = (name: string, description: string, path: string, options: object = {}) => {
    return { name, description, method: 'GET', url: upstream + path, input_schema: { item }, ...options };
  };
  const tools = [
    tool('read_item', 'Reads an item.', '/items/:item', {
      output_schema: { type: 'object', properties, required: ['item', 'count'] },
    }),
    tool('add_note', 'Adds a note to an item.', '/items/:item/notes', {
      ...{ method: 'POST', input_schema: { item, ...note }, response_transform: 'notes' },
    }),
    tool('read_missing', 'Reads an item that is not there.', '/missing/:item'),
  ];
  return { name: `Items (${slug})`, slug, authentication, tools, ...more };
}

function respond({ url, body }: RecordedRequest) {
  const [, resource, item = '', notes] = url.split('/');
  if (resource === 'file' && body.length > 0) return { body: { bytes: body.length } };
  if (resource === 'file') return { headers: { 'content-type': 'application/pdf' }, body: largeFile };
  if (resource !== 'items') return { status: 404, body: { error: 'There is no such item.' } };
  if (notes) return { status: 201, body: { notes: [JSON.parse(body.toString())] } };
  return { body: { item: decodeURIComponent(item), count: 3 } };
}

function getText(content: { text?: string }[]): string {
  return content.map((block) => block.text ?? '').join('\n');
}

describe('real clients', { concurrency: 2 }, async () => {
  const home = mkdtempSync(join(tmpdir(), 'toolhost-clients-'));
  const { upstream, toolhost, stop } = await startToolhostWithUpstream();
  upstream.on('*', respond);
  const createServer = (slug: string, authentication: object, more?: object) =>
    toolhost.createServer(createConfig(slug, upstream.url, authentication, more));
  const forwarded = { type: 'ApiKey', header: 'X-Api-Key' };
  const authentication = { type: 'Bearer', token: storedCredential };
  await createServer('stored', { type: 'Bearer', token: '{{SERVICE_KEY}}' });
  await createServer('searched', forwarded, { tool_mode: 'search' });
  await createServer('forwarding', forwarded);
  const deskTools = ['add_note', { name: 'read_item', title: 'Read', arguments: { item: 'of the desk' } }];
  await createServer('viewed', authentication, { views: { desk: { tools: deskTools } } });
  const file = { description: 'Moves a file.', url: `${upstream.url}/file` };
  const upload = { input_schema: { file: { type: 'string', content: 'base64' } }, body: 'file' };
  const fileTools = [
    { ...file, name: 'get_file', method: 'GET' },
    { ...file, name: 'send_file', method: 'POST', ...upload },
  ];
  await createServer('filed', authentication, {
    tools: fileTools,
    views: { view: { tools: ['get_file', 'send_file'] } },
  });
  const secret = { body: { value: storedCredential } };
  assert.equal((await toolhost.rest('PUT', '/servers/stored/secrets/SERVICE_KEY', secret)).status, 200);
  after(async () => {
    await stop();
    rmSync(home, { recursive: true, force: true });
  });

  /** Creates an API key that is limited to a view. */
  async function createViewKey(view: string): Promise<string> {
    const { body } = await toolhost.rest('POST', '/keys', { body: { name: 'view', scopes: ['call'], views: [view] } });
    return String(body.key);
  }

  async function withClient(
    kind: McpClientKind,
    slug: string,
    token: string,
    use: (client: McpClient) => Promise<void>,
  ) {
    const client = await kind.connect({ url: `${toolhost.url}/mcp/${slug}`, token, home });
    try {
      await use(client);
    } finally {
      await client.close();
    }
  }

  /** Calls every tool and returns the resulting upstream requests, which the unique item name identifies. */
  async function callAllTools(client: McpClient, item: string): Promise<RecordedRequest[]> {
    assert.deepEqual(await client.toolNames(), ['read_item', 'add_note', 'read_missing']);

    const read = await client.callTool('read_item', { item });
    assert.notEqual(read.isError, true, getText(read.content));
    assert.deepEqual(read.structuredContent, { item, count: 3 });
    assert.deepEqual(JSON.parse(getText(read.content)), { item, count: 3 });

    const note = { text: 'Grüße, "quoted"\nand a second line', tags: ['a', 'b c'] };
    const added = await client.callTool('add_note', { item, ...note });
    assert.deepEqual(JSON.parse(getText(added.content)), [note]);

    const missing = await client.callTool('read_missing', { item });
    assert.equal(missing.isError, true);
    assert.equal(missing.structuredContent, undefined);
    assert.match(getText(missing.content), /^HTTP 404 Not Found\n.*There is no such item/);

    const path = encodeURIComponent(item);
    const requests = upstream.requests.filter(({ url }) => url.includes(path));
    const lines = requests.map(({ method, url }) => `${method} ${url}`);
    assert.deepEqual(lines, [`GET /items/${path}`, `POST /items/${path}/notes`, `GET /missing/${path}`]);
    return requests;
  }

  for (const kind of clients) {
    it(`${kind.name} calls a server with a stored credential by an API key`, async () => {
      const key = await toolhost.createKey({ scopes: ['call'], servers: ['stored'] });
      await withClient(kind, 'stored', key, async (client) => {
        assert.equal(await client.revision(), kind.revision);
        for (const request of await callAllTools(client, `Zürich, ${kind.name}`)) {
          assert.equal(request.headers.authorization, `Bearer ${storedCredential}`);
          assert.ok(!request.rawHeaders.join('\n').includes(key), 'the API key reached the upstream');
        }
      });
    });

    it(`${kind.name} calls a server that forwards the caller's own token`, async () => {
      const token = `own-token-of-${kind.name.replace(/\W+/g, '-')}`;
      await withClient(kind, 'forwarding', token, async (client) => {
        for (const request of await callAllTools(client, `Genève, ${kind.name}`)) {
          assert.equal(request.headers['x-api-key'], token);
          assert.equal(request.headers.authorization, undefined);
        }
      });
    });

    it(`${kind.name} searches, describes, and calls the tools of a server in search mode [agent 1]`, async () => {
      await withClient(kind, 'searched', 'token-of-a-search', async (client) => {
        assert.deepEqual(await client.toolNames(), ['search_tools', 'describe_tool', 'call_tool']);
        const searchResult = await client.callTool('search_tools', { query: 'read an item' });
        assert.match(getText(searchResult.content), /^- read_item \(reads\)/m);
        const described = await client.callTool('describe_tool', { names: ['read_item'] });
        assert.match(getText(described.content), /"inputSchema"/);
        const item = `Basel, ${kind.name}`;
        const read = await client.callTool('call_tool', { name: 'read_item', arguments: { item } });
        assert.deepEqual(JSON.parse(getText(read.content)), { item, count: 3 });
        const missing = await client.callTool('call_tool', { name: 'read_itm' });
        assert.equal(missing.isError, true);
        assert.match(getText(missing.content), /did you mean `read_item`/);
      });
    });

    it(`${kind.name} calls a view by an API key that is limited to it [agent 2]`, async () => {
      await withClient(kind, 'viewed/desk', await createViewKey('viewed/desk'), async (client) => {
        assert.equal(await client.revision(), kind.revision);
        assert.deepEqual(await client.toolNames(), ['add_note', 'read_item']);
        const read = await client.callTool('read_item', {});
        assert.deepEqual(JSON.parse(getText(read.content)), { item: 'of the desk', count: 3 });
        const overridden = await client.callTool('read_item', { item: 'another' });
        assert.equal(overridden.isError, true);
        assert.match(getText(overridden.content), /item: is fixed in this view/);
        // Some clients throw when a tool is missing, and others return a result with isError.
        const missing = await client.callTool('read_missing', { item: 'x' }).catch(() => ({ isError: true }));
        assert.equal(missing.isError, true);
      });
    });

    it(`${kind.name} gets a link to a large file, downloads it, and passes it to another tool with a key of a view [agent 4]`, async () => {
      const key = await createViewKey('filed/view');
      await withClient(kind, 'filed/view', key, async (client) => {
        const { content } = await client.callTool('get_file', {});
        const { type, uri, size } = content[1] ?? assert.fail();
        assert.deepEqual([type, size], ['resource_link', largeFile.length]);
        for (const headers of [{}, { authorization: `Bearer ${key}` }]) {
          const reply = await fetch(String(uri), { headers });
          assert.ok(largeFile.equals(Buffer.from(await reply.arrayBuffer())));
        }
        const sent = await client.callTool('send_file', { file: uri });
        assert.equal(getText(sent.content), `{"bytes":${largeFile.length}}`);
      });
    });

    it(`${kind.name} manages servers by an API key`, async () => {
      await withClient(kind, 'manage', await toolhost.createKey({ scopes: ['manage'] }), async (client) => {
        const names = await client.toolNames();
        assert.ok(['createMcpServer', 'listMcpServers', 'getMcpServer'].every((name) => names.includes(name)));
        const { content } = await client.callTool('listMcpServers', { slug: 'stored' });
        const { servers } = JSON.parse(getText(content)) as { servers: { slug: string; access: string }[] };
        const shown = servers.map(({ slug, access }) => `${slug} ${access}`);
        assert.deepEqual(shown, ['stored api_key']);
        const unknown = await client.callTool('getMcpServer', { slug: 'nowhere' });
        assert.equal(unknown.isError, true);
        assert.match(getText(unknown.content), /no such server/);
      });
    });

    it(`${kind.name} reports that its API key was rejected`, async () => {
      const attempt = withClient(kind, 'stored', 'not-a-key', async (client) => void (await client.toolNames()));
      await assert.rejects(attempt, (error: Error) => kind.refusalPattern.test(error.message));
    });
  }
});
