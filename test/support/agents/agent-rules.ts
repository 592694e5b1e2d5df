import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { root } from '../../files.ts';
import type { Json } from '../toolhost/toolhost.ts';
import type { Conversation } from './agent.ts';
import type { AgentKind } from './agent-kinds.ts';
import { type AgentWorld, startAgentWorld } from './agent-world.ts';
import { formatStep, formatTurn } from './stub-model.ts';

/** A PNG of one blue pixel. */
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC',
  'base64',
);
const pdf = Buffer.from('%PDF-1.4\n%\u00e2\u00e3\u00cf\u00d3\ntrailer<<>>\n%%EOF\n', 'latin1');

const exactNumbers = '{"big":12345678901234567890,"price":1.10}';

function createServerConfig({ upstream }: AgentWorld, slug: string, more: Json): Json {
  const tool = (name: string, path: string, input_schema: Json = {}) => {
    const description = `Reads ${path} of the API.`;
    return { name, description, method: 'GET', url: upstream.url + path, input_schema };
  };
  const tools = [
    tool('read_item', '/items/:id', { id: { type: 'string' } }),
    tool('read_numbers', '/numbers'),
    tool('list_names', '/names'),
    tool('read_missing', '/missing'),
    tool('read_picture', '/picture'),
    tool('read_paper', '/paper'),
    tool('who_am_i', '/person'),
  ];
  return { name: `Server ${slug}`, slug, tools, ...more };
}

async function prepare(world: AgentWorld): Promise<void> {
  const { toolhost, upstream, provider } = world;
  const json = { 'content-type': 'application/json' };
  upstream.on('GET /items/a%20b', () => ({ body: { found: 'the item' } }));
  upstream.on('GET /numbers', () => ({ headers: json, body: exactNumbers }));
  upstream.on('GET /names', () => ({ body: ['Ada', 'Bob'] }));
  upstream.on('GET /missing', () => ({ status: 404, body: { problem: 'no such thing' } }));
  upstream.on('GET /picture', () => ({ headers: { 'content-type': 'image/jpg' }, body: png }));
  upstream.on('GET /paper', () => ({ headers: { 'content-type': 'application/pdf' }, body: pdf }));
  upstream.on('GET /person', async ({ headers }) => {
    const token = headers.authorization?.replace('Bearer ', '') ?? '';
    return { body: { person: await provider.getAccount(token) } };
  });
  const oauth = await provider.createOAuthConfig(`${toolhost.url}/mcp/people/callback`);
  await toolhost.createServer(
    createServerConfig(world, 'things', { authentication: { type: 'Bearer', token: 'stored' } }),
  );
  await toolhost.createServer(createServerConfig(world, 'people', { authentication: { type: 'Bearer' }, oauth }));
}

/** Tests an agent against a server, from the point of view of its model. */
export function testAgent(kind: AgentKind): void {
  describe(`${kind.name} ${kind.program.version}`, () => {
    let world: AgentWorld;
    let key: string;
    let conversation: Conversation;
    before(async () => {
      world = await startAgentWorld(kind);
      await prepare(world);
      key = await world.toolhost.createKey();
      await world.connect([{ slug: 'things', key }, { slug: 'people' }, { slug: 'manage', key }]);
      conversation = await world.runPrompt(
        formatStep(kind.getToolName('things', 'read_item'), { id: 'a b' }),
        formatStep(kind.getToolName('things', 'read_numbers')),
        formatStep(kind.getToolName('things', 'list_names')),
        formatStep(kind.getToolName('things', 'read_missing')),
      );
    });
    after(() => world?.stop());

    it('[ship 6] connects with the snippet and lists the tools', () => {
      const names = ['read_item', 'read_numbers', 'list_names', 'read_missing', 'who_am_i'];
      const missing = names
        .map((name) => kind.getToolName('things', name))
        .filter((name) => !conversation.tools.includes(name));
      assert.deepEqual(missing, [], conversation.tools.join(' '));
    });

    it('[ship 6] has its tested version on the clients page', () => {
      const page = readFileSync(join(root, 'docs', 'clients.md'), 'utf8');
      assert.ok(page.includes(`${kind.name} ${kind.program.version}`));
    });

    it('[spec 5.2] calls a tool with an API key', () => {
      assert.match(conversation.results[0] ?? '', /"found":"the item"/);
      const [request] = world.upstream.requests;
      assert.deepEqual([request?.url, request?.headers.authorization], ['/items/a%20b', 'Bearer stored']);
    });

    it('[behaviour The tool result] shows the model every digit of a number, once', () => {
      const result = conversation.results[1] ?? '';
      assert.ok(result.includes(exactNumbers), result);
      assert.equal(result.match(/big/g)?.length, 1, result);
    });

    it('[behaviour The tool result] shows the model a list', () => {
      assert.match(conversation.results[2] ?? '', /\["Ada","Bob"\]/);
    });

    it('[behaviour The tool result] shows the model why the API rejected a call', () => {
      assert.match(conversation.results[3] ?? '', /404 Not Found.*no such thing/s);
    });

    it('[behaviour Arguments] runs two calls that the model makes in one turn', async () => {
      world.upstream.take();
      const { results } = await world.runPrompt(
        formatTurn(
          formatStep(kind.getToolName('things', 'read_item'), { id: 'a b' }),
          formatStep(kind.getToolName('things', 'list_names')),
        ),
      );
      assert.deepEqual(
        [results.length, /the item/.test(results[0] ?? ''), /Ada/.test(results[1] ?? '')],
        [2, true, true],
        results.join('\n'),
      );
      const requestedUrls = world.upstream.take().map(({ url }) => url);
      assert.deepEqual(requestedUrls.toSorted(), ['/items/a%20b', '/names']);
    });

    it('[behaviour The tool result] continues after an image and a PDF, each with a text for the model', async () => {
      const { results, request } = await world.runPrompt(
        formatStep(kind.getToolName('things', 'read_picture')),
        formatStep(kind.getToolName('things', 'read_paper')),
        formatStep(kind.getToolName('things', 'list_names')),
      );
      assert.match(results[0] ?? '', /image\/png, \d+ bytes/);
      assert.match(results[1] ?? '', /application\/pdf, \d+ bytes/);
      assert.match(results[2] ?? '', /Ada/);
      assert.match(request, /image\/png/);
    });

    it('[mcp 59] logs a person in at http://localhost and calls a tool with their token', async () => {
      await world.logIn('people');
      const { results } = await world.runPrompt(formatStep(kind.getToolName('people', 'who_am_i')));
      assert.match(results[0] ?? '', new RegExp(`"person":"${world.person.name}"`));
    });

    it('[spec 4.2] creates a server and calls its tool', async () => {
      const config = createServerConfig(world, 'made', {
        authentication: { type: 'Bearer', token: 'stored-by-the-agent' },
      });
      const { results } = await world.runPrompt(formatStep(kind.getToolName('manage', 'createMcpServer'), config));
      assert.match(results[0] ?? '', /\/mcp\/made/);
      await world.connect([{ slug: 'made', key }]);
      const createdConversation = await world.runPrompt(formatStep(kind.getToolName('made', 'list_names')));
      assert.match(createdConversation.results[0] ?? '', /\["Ada","Bob"\]/);
      assert.equal(world.upstream.requests.at(-1)?.headers.authorization, 'Bearer stored-by-the-agent');
    });
  });
}
