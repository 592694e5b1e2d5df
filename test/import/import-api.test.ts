import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { openApi } from '../support/import/plan-of.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

type Plan = Json & {
  proposal: { include: string[]; read_only: boolean };
  questions: { name: string; required: boolean }[];
  secrets: { name: string }[];
  report: { operation: string; outcome: string }[];
  created?: { server: { slug: string; tool_count: number }; next_steps: string[] };
};

/** Fifty reading and fifty writing operations in ten tags. */
function shop(address: string): Json {
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

/** A web server that has documents at paths. */
async function startDocuments(
  documents: Map<string, string | { redirect: string }>,
): Promise<{ url: string; port: number; server: Server; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    const found = documents.get(path);
    if (typeof found === 'object') response.writeHead(302, { location: found.redirect }).end();
    else response.writeHead(found === undefined ? 404 : 200).end(found);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, server, asked };
}

describe('importApi', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let documents: Awaited<ReturnType<typeof startDocuments>>;
  const files = new Map<string, string | { redirect: string }>();
  before(async () => {
    upstream = await startRecordingUpstream();
    documents = await startDocuments(files);
    toolhost = await startToolhost({ egress: [upstream.port, documents.port] });
    files.set('/openapi.json', JSON.stringify(shop(upstream.url)));
    files.set('/moved', { redirect: '/openapi.json' });
    files.set('/inside', { redirect: 'http://169.254.169.254/latest/meta-data' });
  });
  after(async () => {
    await toolhost.stop();
    await upstream.close();
    documents.server.close();
  });

  const imported = async (body: Json, status = 200): Promise<Plan> => {
    const reply = await toolhost.rest('POST', '/import', { body });
    assert.equal(reply.status, status, reply.text);
    return reply.body as Plan;
  };

  it('[imp 3] a plan stores nothing, and proposes what fits 40 tools', async () => {
    const plan = await imported({ url: `${documents.url}/openapi.json` });
    assert.deepEqual(plan.operations, { operations: 100, whole: 100, loosened: 0, partial: 0, skipped: 0 });
    assert.equal((plan.groups as unknown[]).length, 10);
    assert.deepEqual(plan.proposal.include, ['tag 0', 'tag 1', 'tag 2', 'tag 3']);
    assert.equal((plan.chosen as { tools: number }).tools, 40);
    assert.deepEqual(
      plan.secrets.map(({ name }) => name),
      ['KEY'],
    );
    assert.equal(plan.created, undefined);
    assert.deepEqual((await toolhost.rest('GET', '/servers')).body.servers, []);
    const events = (await toolhost.rest('GET', '/audit')).body.events as { operation: string }[];
    assert.ok(!events.some(({ operation }) => operation === 'importApi'));
  });

  it('[imp 4] an agent makes a server in three calls, and its tools send what the description says', async () => {
    const key = await toolhost.key();
    const use = (name: string, args: Json) => toolhost.callTool('manage', key, name, args);
    const url = `${documents.url}/moved`;
    const plan = await use('importApi', { url });
    assert.match(String(plan.content[0]?.text), /100 operations; 100 whole/);
    const made = await use('importApi', {
      mode: 'create',
      url,
      include: ['tag 3', 'GET /things7/{id}'],
      read_only: true,
      slug: 'shop',
    });
    assert.notEqual(made.isError, true, JSON.stringify(made));
    assert.match(String(made.content[0]?.text), /Imported 6 tools/);
    await use('setSecret', { slug: 'shop', name: 'KEY', value: 'the-shop-key' });
    const result = await toolhost.callTool('shop', key, 'get_thing7', { id: 'a/b' });
    assert.notEqual(result.isError, true, JSON.stringify(result));
    const [sent] = upstream.take();
    assert.deepEqual([sent?.method, sent?.url, sent?.headers['x-shop-key']], ['GET', '/things7/a%2Fb', 'the-shop-key']);
  });

  it('[agent 1] tools have the tags of their operations, and a search finds them by these', async () => {
    const tags = ['Things\u202e', ' Things ', '\u2028', 'x'.repeat(80)];
    const paths = { '/a': { get: { operationId: 'readA', summary: 'Something to read here', tags } } };
    const document = JSON.stringify(openApi(paths, { servers: [{ url: upstream.url }] }));
    const { created } = await imported({ mode: 'create', document, slug: 'tagged' });
    assert.ok(created);
    const { body } = await toolhost.rest('GET', '/servers/tagged');
    const { tools } = body.config as { tools: Json[] };
    assert.deepEqual(tools[0]?.tags, ['Things', 'x'.repeat(60)]);
    const searched = await toolhost.rest('PATCH', '/servers/tagged', { body: { tool_mode: 'search' } });
    assert.equal(searched.status, 200, searched.text);
    const { content } = await toolhost.callTool('tagged', 'any', 'search_tools', { tag: 'things' });
    assert.match(content[0]?.text ?? '', /- read_a \(reads\)/);
  });

  it('[imp 4] the text of a document is taken up to 16 MB, from credentials that may write', async () => {
    const description = 'x'.repeat(12 * 1024 * 1024);
    const document = JSON.stringify({ ...shop(upstream.url), info: { title: 'Large', version: '1', description } });
    const made = await imported({ mode: 'create', document, include: ['tag 1'], report: 'chosen' });
    assert.deepEqual(
      [made.created?.server.slug, made.created?.server.tool_count, made.report.length],
      ['large', 10, 10],
    );
    const again = { mode: 'apply', document, offered: 'new' };
    const same = await toolhost.rest('POST', '/servers/large/import', { body: again });
    assert.deepEqual([same.status, same.body.same_document], [200, true], same.text.slice(0, 300));
    const reader = await toolhost.key({ scopes: ['manage:read'] });
    const refused = await toolhost.rest('POST', '/import', { key: reader, body: { document: 'x'.repeat(2_000_000) } });
    assert.equal(refused.status, 403);
  });

  it('[imp 4] a long text that cannot be taken is refused with its field, and nothing else of the body may be long', async () => {
    const most = 16 * 1024 * 1024;
    const long = 'x'.repeat(2_000_000);
    const cases: [Json, number, RegExp][] = [
      [
        { document: 'x'.repeat(most + 1) },
        400,
        new RegExp(`document: found ${most + 1} characters; .* at most ${most} `),
      ],
      [{ document: `${long}\0` }, 400, /holds the character U\+0000/],
      [{ document: 'openapi: 3', slug: long }, 413, /the body without document is larger than 1048576 bytes/],
      [{ document: long, slug: 7 }, 400, /slug: found 7; allowed: a string/],
      [[long] as unknown as Json, 400, /the body must be a JSON object/],
      [{ document: [long] }, 400, /document: allowed: a string, which may be JSON text/],
      [{ document: { openapi: '3.0.0', 'x-long': long } }, 400, /document: allowed: a string/],
      [{ document: long, include: Array(70_000).fill('a') }, 413, /more than 60000 elements/],
    ];
    for (const [body, status, problem] of cases) {
      const refused = await toolhost.rest('POST', '/import', { body });
      assert.equal(refused.status, status, refused.text.slice(0, 300));
      assert.match(refused.text, problem);
    }
  });

  it('[imp 4] a workspace has two long texts read at a time, and the others are refused', async () => {
    const body = { document: `openapi: 3\n${'x'.repeat(3_500_000)}` };
    const answers = await Promise.all(Array.from({ length: 20 }, () => toolhost.rest('POST', '/import', { body })));
    const busy = answers.filter(({ text }) => text.includes('other large bodies are being read'));
    assert.ok(busy.length > 0, answers.map(({ status }) => status).join());
    assert.ok(answers.every(({ status }) => status === 400 || status === 429));
    assert.ok(answers.some(({ status }) => status === 400));
  });

  it('[imp 3] what must be answered is asked, and refused until it is', async () => {
    const document = JSON.stringify(
      openApi({ '/a': { get: { summary: 'Something to read here' } } }, { servers: [{ url: '/api' }] }),
    );
    const plan = await imported({ document });
    assert.deepEqual(
      plan.questions.map(({ name, required }) => `${name} ${required}`),
      ['server true', 'credential false'],
    );
    const refused = await imported({ mode: 'create', document }, 400);
    assert.match(JSON.stringify(refused), /answers\.server/);
    const unknown = await imported({ document, answers: { sever: 'https://x.example.com' } }, 400);
    assert.match(JSON.stringify(unknown), /did you mean `server`/);
    const answers = { server: 'https://api.example.com/v2', credential: 'header:X-Key' };
    const made = await imported({ mode: 'create', document, answers });
    const { config } = (await toolhost.rest('GET', `/servers/${made.created?.server.slug}`)).body as { config: Json };
    assert.deepEqual(
      [config.base_url, config.authentication],
      ['https://api.example.com/v2', { type: 'ApiKey', header: 'X-Key', token: '{{X_KEY}}' }],
    );
  });

  it('[imp 1] an address is fetched only where tools may call, redirects included', async () => {
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

  it('[imp 4] a workspace has two imports at a time', async () => {
    upstream.on('GET /held.json', () => 'hold');
    upstream.take();
    const body = { url: `${upstream.url}/held.json` };
    const running = [1, 2].map(() => toolhost.rest('POST', '/import', { body }));
    const held = [await upstream.waitForRequest(1), await upstream.waitForRequest(2)];
    const third = await toolhost.rest('POST', '/import', { body });
    assert.deepEqual([third.status, third.headers.get('retry-after')], [429, '5']);
    for (const request of held) request.release({ body: shop(upstream.url) });
    assert.deepEqual(
      (await Promise.all(running)).map(({ status }) => status),
      [200, 200],
    );
    assert.equal(
      (await toolhost.rest('POST', '/import', { body: { url: `${documents.url}/openapi.json` } })).status,
      200,
    );
  });

  it('[imp 1] names with escapes are read as what they mean, after others at the same place', async () => {
    const operation = (properties: string) =>
      `{"post":{"summary":"Does something","requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":${properties}}}}}}}`;
    const text = '{"type":"string"}';
    const paths = [operation(`{"k":${text},"\\\\":${text}}`), operation(`{"k":${text},"\\u00e9":${text}}`)];
    const document = `{"openapi":"3.0.0","info":{"title":"Names","version":"1"},"servers":[{"url":"${upstream.url}"}],"paths":{"/a":${paths[0]},"/b":${paths[1]}}}`;
    const body = { document, mode: 'create', slug: 'escaped-names', answers: { credential: 'none' } };
    const made = await toolhost.rest('POST', '/import', { body });
    assert.ok(made.status < 300, made.text);
    assert.match((await toolhost.rest('GET', '/servers/escaped-names')).text, /é/);
  });

  it('[imp 4] all requests of a document together have twenty seconds', async (t) => {
    let aheadMs = 0;
    const runningClock = () => performance.now() + aheadMs;
    const own = await startToolhost({ egress: [upstream.port], surroundings: { runningClock } });
    t.after(() => own.stop());
    upstream.on('GET /moved.json', () => {
      aheadMs += 19_900;
      return { status: 302, headers: { location: '/held.json' } };
    });
    upstream.on('GET /held.json', () => 'hold');
    const { status, text } = await own.rest('POST', '/import', { body: { url: `${upstream.url}/moved.json` } });
    assert.equal(status, 400, text);
    assert.match(text, /could not be fetched: it did not arrive within 20 seconds, with redirects/);
  });

  it('[imp 4] workspaces whose descriptions are slow to come leave a place to the next one', async (t) => {
    let at = 0;
    const own = await startToolhost({
      egress: [upstream.port, documents.port],
      surroundings: { runningClock: () => at },
    });
    t.after(() => own.stop());
    upstream.on('GET /slow.json', () => 'hold');
    upstream.take();
    const keys = await Promise.all([1, 2, 3, 4, 5, 6].map((count) => own.key({ workspace: `slow-${count}` })));
    const importing = (index: number, url: string) =>
      own.rest('POST', '/import', { key: keys[index] as string, body: { url } });
    const slow = `${upstream.url}/slow.json`;
    const quick = `${documents.url}/openapi.json`;
    const held = [0, 1, 2].flatMap((index) => [importing(index, slow), importing(index, slow)]);
    await upstream.waitForRequest(6);
    assert.equal((await importing(3, quick)).status, 200, 'three workspaces leave a place to the fourth');
    held.push(importing(3, slow), importing(4, slow));
    await upstream.waitForRequest(8);
    assert.equal((await importing(5, quick)).status, 429, 'what has just begun stays');
    at += 3000;
    assert.equal((await importing(5, quick)).status, 200, 'what takes long gives way');
    const [first] = held;
    const reply = await first;
    assert.equal(reply?.status, 429);
    assert.match(reply?.text ?? '', /host was slow while others waited/);
    for (const request of upstream.requests) request.release({ body: shop(upstream.url) });
    const statuses = (await Promise.all(held.slice(1))).map(({ status }) => status);
    assert.deepEqual(
      statuses,
      statuses.map(() => 200),
    );
  });
});
