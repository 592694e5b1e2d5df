import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { openApi } from '../support/import/import-plans.ts';
import { startImports } from '../support/import/import-service.ts';
import { pluck } from '../support/pluck.ts';
import { inPath, integer, listOf, object, text } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

type Plan = Json & {
  proposal: { include: string[]; tools: number; reason: string };
  questions: { name: string; required: boolean }[];
  secrets: { name: string }[];
  report: { operation: string; outcome: string }[];
  created?: { server: { slug: string; tool_count: number }; next_steps: string[] };
};

/** Returns an API with fifty read and fifty write operations in ten tags. */
function createShop(address: string): Json {
  const paths: Json = {};
  for (let index = 0; index < 50; index++) {
    const tags = [`tag ${index % 10}`];
    paths[`/things${index}/{id}`] = {
      parameters: [inPath('id')],
      get: { operationId: `getThing${index}`, summary: `Get one of the things number ${index}`, tags },
      put: { operationId: `putThing${index}`, summary: `Replace one of the things number ${index}`, tags },
    };
  }
  const securitySchemes = { key: { type: 'apiKey', in: 'header', name: 'X-Shop-Key' } };
  return openApi(paths, { servers: [{ url: address }], components: { securitySchemes }, security: [{ key: [] }] });
}

const summary = 'Something to read here';

describe('importApi', () => {
  const imports = useFixture(startImports);
  const at = (path: string) => `${imports.upstream.url}${path}`;
  before(() => {
    const { upstream } = imports;
    upstream.on('*', () => ({ status: 404 }));
    upstream.on('GET /openapi.json', () => ({ body: createShop(upstream.url) }));
    upstream.on('GET /moved', () => ({ status: 302, headers: { location: '/openapi.json' } }));
    upstream.on('GET /inside', () => ({
      status: 302,
      headers: { location: 'http://169.254.169.254/latest/meta-data' },
    }));
  });

  const rest = (method: string, path: string, body?: Json) => imports.toolhost.rest(method, path, body && { body });
  const importDocument = async (body: Json, status = 200): Promise<Plan> => {
    const reply = await rest('POST', '/import', body);
    assert.equal(reply.status, status, reply.text);
    return reply.body as Plan;
  };
  const getConfig = async (slug = '') =>
    (await rest('GET', `/servers/${slug}`)).body.config as Json & { tools: Json[] };
  const describeApi = (paths: Json) => JSON.stringify(openApi(paths, { servers: [{ url: imports.upstream.url }] }));

  it('[imp 3] plans without storing anything, and proposes at most 40 tools', async () => {
    const plan = await importDocument({ url: at('/openapi.json') });
    assert.deepEqual(plan.operations, { operations: 100, whole: 100, loosened: 0, partial: 0, skipped: 0 });
    assert.equal((plan.groups as unknown[]).length, 10);
    assert.deepEqual([plan.proposal.tools, (plan.chosen as { tools: number }).tools], [40, 40]);
    const { proposal } = await importDocument({ url: at('/openapi.json'), for: 'get thing 7' });
    assert.ok(proposal.include.includes('GET /things7/{id}'), proposal.include.join());
    assert.match(proposal.reason, /match the sentence/);
    assert.deepEqual(pluck(plan.secrets, 'name'), ['KEY']);
    assert.equal(plan.created, undefined);
    assert.deepEqual((await rest('GET', '/servers')).body.servers, []);
    const events = (await rest('GET', '/audit')).body.events as { operation: string }[];
    assert.ok(!events.some(({ operation }) => operation === 'importApi'));
  });

  it('[imp 4] lets an agent create a server in three calls, and its tools send the requests of the description', async () => {
    const { toolhost, upstream } = imports;
    const key = await toolhost.createKey();
    const use = async (name: string, args: Json, slug = 'manage') => {
      const result = await toolhost.callTool(slug, key, name, args);
      assert.notEqual(result.isError, true, JSON.stringify(result));
      return String(result.content[0]?.text);
    };
    const url = at('/moved');
    assert.match(await use('importApi', { url }), /100 operations; 100 complete/);
    const choices = { include: ['tag 3', 'GET /things7/{id}'], read_only: true, slug: 'shop' };
    assert.match(await use('importApi', { mode: 'create', url, ...choices }), /Imported 6 tools/);
    await use('setSecret', { slug: 'shop', name: 'KEY', value: 'the-shop-key' });
    upstream.on('GET /things7/a%2Fb', () => ({ body: {} }));
    upstream.take();
    await use('get_thing7', { id: 'a/b' }, 'shop');
    const [sent] = upstream.take();
    assert.deepEqual([sent?.method, sent?.url, sent?.headers['x-shop-key']], ['GET', '/things7/a%2Fb', 'the-shop-key']);
  });

  it('[agent 1] copies the tags of an operation to its tool, and search finds the tool by tag', async () => {
    const tags = ['Things\u202e', ' Things ', '\u2028', 'x'.repeat(80)];
    const document = describeApi({ '/a': { get: { operationId: 'readA', summary, tags } } });
    assert.ok((await importDocument({ mode: 'create', document, slug: 'tagged' })).created);
    assert.deepEqual((await getConfig('tagged')).tools[0]?.tags, ['Things', 'x'.repeat(60)]);
    const searched = await rest('PATCH', '/servers/tagged', { tool_mode: 'search' });
    assert.equal(searched.status, 200, searched.text);
    const { content } = await imports.toolhost.callTool('tagged', 'any', 'search_tools', { tag: 'things' });
    assert.match(content[0]?.text ?? '', /- read_a \(reads\)/);
  });

  it('[imp 3] proposes response fields for a large response, and stores them in the tool on request', async () => {
    const links = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`part${index}_url`, text]));
    const person = object({ ...links, id: text, login: text, html_url: text, bio: text });
    const fields = { ...links, id: text, title: text, state: text, author: person, labels: listOf(person) };
    const createOperation = (schema: Json) => ({
      summary: 'Lists all of the things',
      responses: { 200: { description: '', content: { 'application/json': { schema } } } },
    });
    const document = describeApi({
      '/things': { get: createOperation(object({ total: integer, items: listOf(object(fields)) })) },
      '/small': { get: createOperation(object({ id: text })) },
    });
    const [large, small] = (await importDocument({ document, report: 'chosen' })).report as unknown as Json[];
    const { paths: kept, ...tokens } = (large?.answer ?? {}) as { paths: string[]; tokens: number; kept: number };
    const author = ['id', 'login', 'html_url'].map((name) => `author.${name}`);
    const labels = ['id', 'login', 'html_url', 'bio'].map((name) => `labels.${name}`);
    const ofItems = ['id', 'title', 'state', ...author, ...labels].map((name) => `items.${name}`);
    assert.deepEqual(kept, ['total', ...ofItems]);
    assert.ok(tokens.tokens > 1000 && tokens.kept < 200, JSON.stringify(tokens));
    assert.equal(small?.answer, undefined);
    await importDocument({ mode: 'create', document, slug: 'whole-answers' });
    assert.equal((await getConfig('whole-answers')).tools[0]?.response_fields, undefined);
    await importDocument({ mode: 'create', document, slug: 'kept-fields', fields: true });
    assert.deepEqual((await getConfig('kept-fields')).tools[0]?.response_fields, kept);
    const changed = { document: document.replace('all of', 'each of'), mode: 'apply' };
    assert.equal((await rest('POST', '/servers/kept-fields/import', changed)).status, 200);
    const [tool] = (await getConfig('kept-fields')).tools;
    assert.deepEqual([tool?.description, tool?.response_fields], ['Lists each of the things', kept]);
  });

  it('[imp 3] asks required questions, and rejects the import until they are answered', async () => {
    const document = JSON.stringify(openApi({ '/a': { get: { summary } } }, { servers: [{ url: '/api' }] }));
    const { questions } = await importDocument({ document });
    const asked = questions.map(({ name, required }) => `${name} ${required}`);
    assert.deepEqual(asked, ['server true', 'credential false']);
    const refused = await importDocument({ mode: 'create', document }, 400);
    assert.match(JSON.stringify(refused), /answers\.server/);
    const unknown = await importDocument({ document, answers: { sever: 'https://x.example.com' } }, 400);
    assert.match(JSON.stringify(unknown), /did you mean `server`/);
    const answers = { server: 'https://api.example.com/v2', credential: 'header:X-Key' };
    const { created } = await importDocument({ mode: 'create', document, answers });
    const { base_url, authentication } = await getConfig(created?.server.slug);
    assert.equal(base_url, 'https://api.example.com/v2');
    assert.deepEqual(authentication, { type: 'ApiKey', header: 'X-Key', token: '{{X_KEY}}' });
  });

  it('[imp 1] fetches a URL only where tools may call, including redirects', async () => {
    for (const [url, message] of [
      ['http://169.254.169.254/latest/meta-data', /not on the public internet|allowed: https/],
      ['file:///etc/passwd', /allowed: https/],
      ['https://localhost/openapi.json', /not a public name/],
      [at('/inside'), /allowed: https|not on the public internet/],
      [at('/none'), /HTTP 404/],
      [imports.toolhost.url, /cannot call this service itself/],
      ['not a url', /not a URL/],
    ] as const) {
      const refused = await importDocument({ url }, 400);
      assert.match(JSON.stringify(refused), message, url);
    }
  });

  it('[imp 4] limits a workspace to two concurrent imports', async () => {
    const { upstream } = imports;
    upstream.on('GET /held.json', () => 'hold');
    upstream.take();
    const body = { url: at('/held.json') };
    const running = [1, 2].map(() => rest('POST', '/import', body));
    const heldRequests = [await upstream.waitForRequest(1), await upstream.waitForRequest(2)];
    const third = await rest('POST', '/import', body);
    assert.deepEqual([third.status, third.headers.get('retry-after')], [429, '5']);
    for (const request of heldRequests) request.release({ body: createShop(upstream.url) });
    assert.deepEqual(pluck(await Promise.all(running), 'status'), [200, 200]);
    await importDocument({ url: at('/openapi.json') });
  });

  it('[imp 1] reads UTF-16 documents, with and without a byte order mark', async () => {
    const littleEndian = Buffer.from(JSON.stringify(openApi({ '/é': { get: { summary } } })), 'utf16le');
    for (const body of [
      Buffer.concat([Buffer.from([0xff, 0xfe]), littleEndian]),
      Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(littleEndian).swap16()]),
      littleEndian,
    ]) {
      imports.upstream.on('GET /utf16', () => ({ body }));
      const { report } = await importDocument({ url: at('/utf16'), report: 'all' });
      assert.deepEqual(pluck(report, 'operation'), ['GET /é']);
    }
  });
});
