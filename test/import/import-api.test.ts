import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { openApi } from '../support/import/import-plans.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

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
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
      get: { operationId: `getThing${index}`, summary: `Get one of the things number ${index}`, tags },
      put: { operationId: `putThing${index}`, summary: `Replace one of the things number ${index}`, tags },
    };
  }
  const securitySchemes = { key: { type: 'apiKey', in: 'header', name: 'X-Shop-Key' } };
  return openApi(paths, { servers: [{ url: address }], components: { securitySchemes }, security: [{ key: [] }] });
}

/** A document, or the location that it redirects to. */
type DocumentResponse = string | Buffer | { redirect: string };

/** Starts a web server that serves documents by path. */
async function startDocuments(
  documents: Map<string, DocumentResponse>,
): Promise<{ url: string; port: number; server: Server; asked: string[] }> {
  const requestedPaths: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    requestedPaths.push(path);
    const found = documents.get(path);
    if (typeof found === 'object' && 'redirect' in found) response.writeHead(302, { location: found.redirect }).end();
    else response.writeHead(found === undefined ? 404 : 200).end(found);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, server, asked: requestedPaths };
}

describe('importApi', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let documents: Awaited<ReturnType<typeof startDocuments>>;
  const files = new Map<string, DocumentResponse>();
  before(async () => {
    upstream = await startRecordingUpstream();
    documents = await startDocuments(files);
    toolhost = await startToolhost({ egressPorts: [upstream.port, documents.port] });
    files.set('/openapi.json', JSON.stringify(createShop(upstream.url)));
    files.set('/moved', { redirect: '/openapi.json' });
    files.set('/inside', { redirect: 'http://169.254.169.254/latest/meta-data' });
  });
  after(async () => {
    await toolhost.stop();
    await upstream.close();
    documents.server.close();
  });

  const importDocument = async (body: Json, status = 200): Promise<Plan> => {
    const reply = await toolhost.rest('POST', '/import', { body });
    assert.equal(reply.status, status, reply.text);
    return reply.body as Plan;
  };

  it('[imp 3] plans without storing anything, and proposes at most 40 tools', async () => {
    const plan = await importDocument({ url: `${documents.url}/openapi.json` });
    assert.deepEqual(plan.operations, { operations: 100, whole: 100, loosened: 0, partial: 0, skipped: 0 });
    assert.equal((plan.groups as unknown[]).length, 10);
    assert.deepEqual([plan.proposal.tools, (plan.chosen as { tools: number }).tools], [40, 40]);
    const { proposal } = await importDocument({ url: `${documents.url}/openapi.json`, for: 'get thing 7' });
    assert.ok(proposal.include.includes('GET /things7/{id}'), proposal.include.join());
    assert.match(proposal.reason, /match the sentence/);
    assert.deepEqual(
      plan.secrets.map(({ name }) => name),
      ['KEY'],
    );
    assert.equal(plan.created, undefined);
    assert.deepEqual((await toolhost.rest('GET', '/servers')).body.servers, []);
    const events = (await toolhost.rest('GET', '/audit')).body.events as { operation: string }[];
    assert.ok(!events.some(({ operation }) => operation === 'importApi'));
  });

  it('[imp 4] lets an agent create a server in three calls, and its tools send the requests of the description', async () => {
    const key = await toolhost.createKey();
    const use = (name: string, args: Json) => toolhost.callTool('manage', key, name, args);
    const url = `${documents.url}/moved`;
    const plan = await use('importApi', { url });
    assert.match(String(plan.content[0]?.text), /100 operations; 100 complete/);
    const created = await use('importApi', {
      mode: 'create',
      url,
      include: ['tag 3', 'GET /things7/{id}'],
      read_only: true,
      slug: 'shop',
    });
    assert.notEqual(created.isError, true, JSON.stringify(created));
    assert.match(String(created.content[0]?.text), /Imported 6 tools/);
    await use('setSecret', { slug: 'shop', name: 'KEY', value: 'the-shop-key' });
    const result = await toolhost.callTool('shop', key, 'get_thing7', { id: 'a/b' });
    assert.notEqual(result.isError, true, JSON.stringify(result));
    const [sent] = upstream.take();
    assert.deepEqual([sent?.method, sent?.url, sent?.headers['x-shop-key']], ['GET', '/things7/a%2Fb', 'the-shop-key']);
  });

  it('[agent 1] copies the tags of an operation to its tool, and search finds the tool by tag', async () => {
    const tags = ['Things\u202e', ' Things ', '\u2028', 'x'.repeat(80)];
    const paths = { '/a': { get: { operationId: 'readA', summary: 'Something to read here', tags } } };
    const document = JSON.stringify(openApi(paths, { servers: [{ url: upstream.url }] }));
    const { created } = await importDocument({ mode: 'create', document, slug: 'tagged' });
    assert.ok(created);
    const { body } = await toolhost.rest('GET', '/servers/tagged');
    const { tools } = body.config as { tools: Json[] };
    assert.deepEqual(tools[0]?.tags, ['Things', 'x'.repeat(60)]);
    const searched = await toolhost.rest('PATCH', '/servers/tagged', { body: { tool_mode: 'search' } });
    assert.equal(searched.status, 200, searched.text);
    const { content } = await toolhost.callTool('tagged', 'any', 'search_tools', { tag: 'things' });
    assert.match(content[0]?.text ?? '', /- read_a \(reads\)/);
  });

  it('[imp 3] proposes response fields for a large response, and stores them in the tool on request', async () => {
    const text = { type: 'string' };
    const object = (properties: Json) => ({ type: 'object', properties });
    const links = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`part${index}_url`, text]));
    const person = object({ ...links, id: text, login: text, html_url: text, bio: text });
    const fields = {
      ...links,
      id: text,
      title: text,
      state: text,
      author: person,
      labels: { type: 'array', items: person },
    };
    const largeSchema = object({ total: { type: 'integer' }, items: { type: 'array', items: object(fields) } });
    const createOperation = (schema: Json) => ({
      summary: 'Lists all of the things',
      responses: { 200: { description: '', content: { 'application/json': { schema } } } },
    });
    const paths = {
      '/things': { get: createOperation(largeSchema) },
      '/small': { get: createOperation(object({ id: text })) },
    };
    const document = JSON.stringify(openApi(paths, { servers: [{ url: upstream.url }] }));
    const [large, small] = (await importDocument({ document, report: 'chosen' })).report as unknown as Json[];
    const { paths: kept, ...tokens } = (large?.answer ?? {}) as { paths: string[]; tokens: number; kept: number };
    const inner = [
      'author.id',
      'author.login',
      'author.html_url',
      'labels.id',
      'labels.login',
      'labels.html_url',
      'labels.bio',
    ];
    assert.deepEqual(kept, ['total', ...['id', 'title', 'state', ...inner].map((name) => `items.${name}`)]);
    assert.ok(tokens.tokens > 1000 && tokens.kept < 200, JSON.stringify(tokens));
    assert.equal(small?.answer, undefined);
    const getTools = async (slug: string) =>
      ((await toolhost.rest('GET', `/servers/${slug}`)).body.config as { tools: Json[] }).tools;
    await importDocument({ mode: 'create', document, slug: 'whole-answers' });
    assert.equal((await getTools('whole-answers'))[0]?.response_fields, undefined);
    await importDocument({ mode: 'create', document, slug: 'kept-fields', fields: true });
    assert.deepEqual((await getTools('kept-fields'))[0]?.response_fields, kept);
    const reimport = { document: document.replace('all of', 'each of'), mode: 'apply' };
    assert.equal((await toolhost.rest('POST', '/servers/kept-fields/import', { body: reimport })).status, 200);
    const [tool] = await getTools('kept-fields');
    assert.deepEqual([tool?.description, tool?.response_fields], ['Lists each of the things', kept]);
  });

  it('[imp 3] asks required questions, and rejects the import until they are answered', async () => {
    const document = JSON.stringify(
      openApi({ '/a': { get: { summary: 'Something to read here' } } }, { servers: [{ url: '/api' }] }),
    );
    const plan = await importDocument({ document });
    assert.deepEqual(
      plan.questions.map(({ name, required }) => `${name} ${required}`),
      ['server true', 'credential false'],
    );
    const refused = await importDocument({ mode: 'create', document }, 400);
    assert.match(JSON.stringify(refused), /answers\.server/);
    const unknown = await importDocument({ document, answers: { sever: 'https://x.example.com' } }, 400);
    assert.match(JSON.stringify(unknown), /did you mean `server`/);
    const answers = { server: 'https://api.example.com/v2', credential: 'header:X-Key' };
    const created = await importDocument({ mode: 'create', document, answers });
    const { config } = (await toolhost.rest('GET', `/servers/${created.created?.server.slug}`)).body as {
      config: Json;
    };
    assert.deepEqual(
      [config.base_url, config.authentication],
      ['https://api.example.com/v2', { type: 'ApiKey', header: 'X-Key', token: '{{X_KEY}}' }],
    );
  });

  it('[imp 1] fetches a URL only where tools may call, including redirects', async () => {
    for (const [url, message] of [
      ['http://169.254.169.254/latest/meta-data', /not on the public internet|allowed: https/],
      ['file:///etc/passwd', /allowed: https/],
      ['https://localhost/openapi.json', /not a public name/],
      [`${documents.url}/inside`, /allowed: https|not on the public internet/],
      [`${documents.url}/none`, /HTTP 404/],
      [toolhost.url, /cannot call this service itself/],
      ['not a url', /not a URL/],
    ] as const) {
      const { status, text } = await toolhost.rest('POST', '/import', { body: { url } });
      assert.equal(status, 400, url);
      assert.match(text, message, url);
    }
  });

  it('[imp 4] limits a workspace to two concurrent imports', async () => {
    upstream.on('GET /held.json', () => 'hold');
    upstream.take();
    const body = { url: `${upstream.url}/held.json` };
    const running = [1, 2].map(() => toolhost.rest('POST', '/import', { body }));
    const heldRequests = [await upstream.waitForRequest(1), await upstream.waitForRequest(2)];
    const third = await toolhost.rest('POST', '/import', { body });
    assert.deepEqual([third.status, third.headers.get('retry-after')], [429, '5']);
    for (const request of heldRequests) request.release({ body: createShop(upstream.url) });
    assert.deepEqual(
      (await Promise.all(running)).map(({ status }) => status),
      [200, 200],
    );
    assert.equal(
      (await toolhost.rest('POST', '/import', { body: { url: `${documents.url}/openapi.json` } })).status,
      200,
    );
  });

  it('[imp 1] decodes escaped names, also after other names in the same object', async () => {
    const operation = (properties: string) =>
      `{"post":{"summary":"Does something","requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":${properties}}}}}}}`;
    const text = '{"type":"string"}';
    const paths = [operation(`{"k":${text},"\\\\":${text}}`), operation(`{"k":${text},"\\u00e9":${text}}`)];
    const document = `{"openapi":"3.0.0","info":{"title":"Names","version":"1"},"servers":[{"url":"${upstream.url}"}],"paths":{"/a":${paths[0]},"/b":${paths[1]}}}`;
    const body = { document, mode: 'create', slug: 'escaped-names', answers: { credential: 'none' } };
    const reply = await toolhost.rest('POST', '/import', { body });
    assert.ok(reply.status < 300, reply.text);
    assert.match((await toolhost.rest('GET', '/servers/escaped-names')).text, /é/);
  });

  it('[imp 1] reads UTF-16 documents, with and without a byte order mark', async () => {
    const document = JSON.stringify(openApi({ '/é': { get: { summary: 'Something to read here' } } }));
    const littleEndian = Buffer.from(document, 'utf16le');
    files.set('/le', Buffer.concat([Buffer.from([0xff, 0xfe]), littleEndian]));
    files.set('/be', Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(littleEndian).swap16()]));
    files.set('/bare', littleEndian);
    for (const path of ['/le', '/be', '/bare']) {
      const { report } = await importDocument({ url: documents.url + path, report: 'all' });
      assert.deepEqual(
        report.map(({ operation }) => operation),
        ['GET /é'],
        path,
      );
    }
  });
});
