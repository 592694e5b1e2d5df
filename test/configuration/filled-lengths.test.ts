import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { reachableBytes } from '../support/collect-garbage.ts';
import { toolAt } from '../support/configs.ts';
import { textOf } from '../support/one-tool.ts';
import { scrape } from '../support/toolhost/scrape.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const V = { V: { value: 'v'.repeat(500) } };
const times = (count: number) => '{{V}}'.repeat(count);
const constant = (count: number) => ({ input_schema: { a: { type: 'string', value: times(count) } } });

describe('the length of what variables and secrets fill', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let key: string;
  let count = 0;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egress: [upstream.port] });
    key = await toolhost.key();
  });
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  const tool = (more: Json = {}) => toolAt(`${upstream.url}/thing`, more);
  const post = (more: Json = {}) => tool({ method: 'POST', ...more });
  const many = (length: number, make: (n: number) => Json) =>
    Array.from({ length }, (_, n) => ({ ...make(n), name: `tool_${n}` }));
  const create = async (config: Json) => {
    const slug = `filled-${++count}`;
    await toolhost.createServer({ name: 'Filled', slug, variables: V, ...config });
    return slug;
  };
  const problemsOf = async (config: Json) => {
    const body = { name: 'Filled', slug: 'refused', variables: V, ...config };
    const reply = await toolhost.rest('POST', '/servers', { body });
    assert.equal(reply.status, 400, reply.text.slice(0, 300));
    return (reply.body.problems as { path: string; message: string }[]).map((one) => `${one.path}: ${one.message}`);
  };
  /** Stores a configuration as if it was stored before it had a limit. */
  const storeAnyway = async (config: Json) => {
    const slug = await create({ tools: config.tools === undefined ? [tool()] : many(1, () => tool()) });
    const { config: text } = await toolhost.running.app.runner.db
      .selectFrom('servers')
      .select('config')
      .where('slug', '=', slug)
      .executeTakeFirstOrThrow();
    const older = { ...JSON.parse(text), ...config };
    const defaults = { headers: {}, input_schema: {}, response_transform: '.', timeout_ms: 10_000 };
    older.tools = older.tools.map((one: Json) => ({ ...defaults, ...one }));
    await toolhost.running.app.runner.db
      .updateTable('servers')
      .set({ config: JSON.stringify(older) })
      .where('slug', '=', slug)
      .execute();
    return slug;
  };
  const client = (more: Json) => ({
    tools: [tool()],
    authentication: {
      type: 'ClientCredentials',
      token_url: `${upstream.url}/token`,
      client_id: 'me',
      client_secret: '{{S}}',
      ...more,
    },
  });
  const filled = (length: number, most: number) => `has ${length} characters when filled; allowed: ${most}`;

  it('[conf 3] has a limit in every field, which the check of a configuration names', async () => {
    assert.deepEqual((await problemsOf({ headers: { 'x-0': times(490) }, tools: [tool()] })).slice(0, 1), [
      `headers.x-0: ${filled(245_000, 16_384)}`,
    ]);
    const headers = Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`x-${n}`, times(30)]));
    assert.match((await problemsOf({ headers, tools: [tool()] }))[0] ?? '', /^headers: variables fill 75000 /);
    const ofTool: [Json, string][] = [
      [{ headers: { 'x-0': times(33) } }, `headers.x-0: ${filled(16_500, 16_384)}`],
      [{ url: `${upstream.url}/${times(5)}` }, `url: ${filled(upstream.url.length + 2501, 2048)}`],
      [constant(132), 'input_schema: variables fill 66000 characters of it; allowed: 65536'],
      [{ body_template: [{ a: times(66) }, times(66)] }, 'body_template: variables fill 66000 characters of it'],
    ];
    for (const [more, expected] of ofTool) {
      const [found = '', ...others] = await problemsOf({ tools: [post(more)] });
      assert.deepEqual([others, found.slice(0, `tools[0].${expected}`.length)], [[], `tools[0].${expected}`]);
    }
    const ofCredential: [Json, string][] = [
      [{ token_url: `${upstream.url}/${times(5)}` }, `token_url: ${filled(upstream.url.length + 2501, 2048)}`],
      [{ audience: times(3) }, `audience: ${filled(1500, 1000)}`],
      [{ resource: times(3) }, `resource: ${filled(1500, 1000)}`],
      [{ client_id: times(2) }, `client_id: ${filled(1000, 500)}`],
      [{ scopes: ['a', times(1)] }, `scopes[1]: ${filled(500, 200)}`],
      [{ extra_params: { a: times(3) } }, `extra_params.a: ${filled(1500, 1000)}`],
    ];
    for (const [more, expected] of ofCredential)
      assert.deepEqual(await problemsOf(client(more)), [`authentication.${expected}`]);
    const view = (value: string) => ({
      tools: [post({ input_schema: { a: { type: 'string' } } })],
      views: { one: { tools: [{ name: 'get', arguments: { a: value } }] } },
    });
    assert.match((await problemsOf(view(times(132))))[0] ?? '', /^views\.one.*a: variables fill 66000 characters/);
    await create({ ...view(times(131)), headers: { 'x-0': times(32) } });
  });

  it('[conf 3] has a limit in all fields together, also when a tool is added', async () => {
    const full = (tools: number) => ({ tools: many(tools, () => post(constant(131))) });
    const slug = await create(full(64));
    const whole = 'variables and base_url fill 4257500 characters in all fields together; allowed: 4194304';
    assert.ok((await problemsOf(full(65)))[0]?.startsWith(`: ${whole}`));
    const added = await toolhost.rest('POST', `/servers/${slug}/tools`, { body: post(constant(131)) });
    assert.deepEqual([added.status, added.text.includes(whole)], [400, true], added.text);
    const base = { base_url: `${upstream.url}/${'b'.repeat(1900)}` };
    await create({ ...base, tools: many(300, (n) => toolAt(`/${n}`)) });
    const crowded = { variables: { V: { value: '' } }, tools: many(51, () => post(constant(990))) };
    assert.deepEqual(await problemsOf(crowded), [
      ': has 50490 placeholders {{NAME}} in all fields together; allowed: 50000',
    ]);
  });

  it('[conf 3] has a limit of a call where secrets fill a header or a credential', async () => {
    const secrets = { S: 's'.repeat(6000) };
    const failing: [Json, RegExp][] = [
      [{ tools: [tool({ headers: { 'x-0': '{{S}}{{S}}{{S}}' } })] }, /header x-0 has more than 16384 characters/],
      [
        { tools: [tool()], authentication: { type: 'Bearer', token: '{{S}}{{S}}{{S}}' } },
        /token of authentication has more than 16384 characters/,
      ],
    ];
    for (const [config, expected] of failing) {
      const slug = await create(config);
      for (const [name, value] of Object.entries(secrets))
        await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
      const result = await toolhost.callTool(slug, key, 'get');
      assert.equal(result.isError, true);
      assert.match(textOf(result), expected);
    }
    assert.deepEqual(upstream.take(), []);
  });

  it('[sec M8] does not hide an error where a request holds a secret many times', async () => {
    const slug = await create({ tools: [post({ body_template: Array(150).fill('{{S}}') })] });
    const body = { value: 'a-secret-of-this-test' };
    await toolhost.rest('PUT', `/servers/${slug}/secrets/S`, { body });
    const said = `no ${body.value} here, ${'because of this and that. '.repeat(240)}`;
    upstream.on('POST /thing', () => ({ status: 422, body: { said } }));
    const text = textOf(await toolhost.callTool(slug, key, 'get'));
    upstream.take();
    assert.match(text, /no \[redacted\] here, because of this and that/);
    assert.ok(!text.includes(body.value));
  });

  it('[conf 3] leaves a configuration readable that was stored before, and its calls say what is too long', async () => {
    const olds: [Json, RegExp][] = [
      [{ headers: { 'x-0': times(490) } }, /headers\.x-0 has 245000 characters when filled; allowed: 16384/],
      [{ tools: [post(constant(990))] }, /input_schema variables fill 495000 characters of it; allowed: 65536/],
      [{ tools: [post({ body_template: times(990) })] }, /body_template variables fill 495000 characters/],
      [{ tools: many(70, () => post(constant(131))) }, /the configuration of the server variables and base_url fill/],
      [client({ token_url: `${upstream.url}/${times(99)}` }), /authentication\.token_url has \d+ characters when/],
    ];
    for (const [config, expected] of olds) {
      const slug = await storeAnyway(config);
      const name = (config.tools as Json[] | undefined)?.[0]?.name ?? 'get';
      assert.equal((await toolhost.rest('GET', `/servers/${slug}`)).status, 200);
      const result = await toolhost.callTool(slug, key, String(name));
      assert.equal(result.isError, true);
      assert.match(textOf(result), /this tool cannot be called until its configuration is changed: /);
      assert.match(textOf(result), expected);
      const preview = await toolhost.rest('POST', `/servers/${slug}/tools/${String(name)}/preview`, { body: {} });
      assert.equal(preview.status < 500, true, preview.text);
    }
    assert.deepEqual(upstream.take(), []);
  });

  it('[find A1] takes memory once for all tools of a server, and for all views', async () => {
    const headers = Object.fromEntries([1, 2, 3, 4].map((n) => [`x-${n}`, times(32)]));
    const slug = await create({ headers, tools: many(200, () => tool()) });
    const schema = { ...constant(131).input_schema, b: { type: 'string' } };
    const names = Array.from({ length: 20 }, (_, n) => `view-${n}`);
    const views = Object.fromEntries(
      names.map((name) => [name, { tools: [...Array(20).keys()].map((n) => fixedTool(n)) }]),
    );
    const viewed = await create({ tools: many(20, () => post({ input_schema: schema })), views });
    const callAll = async (at: string, tools: number) => {
      for (let n = 0; n < tools; n++) {
        // This upstream refuses so many headers, which it has received then.
        const said = textOf(await toolhost.callTool(at, key, `tool_${n}`));
        assert.match(said, at === slug ? /HTTP 431/ : /\{\}/);
      }
      upstream.take();
    };
    upstream.on('POST /thing', () => ({ body: {} }));
    await callAll(slug, 1);
    for (const name of names) await callAll(`${viewed}/${name}`, 1);
    const before = reachableBytes();
    await callAll(slug, 200);
    const afterTools = reachableBytes();
    for (const name of names) await callAll(`${viewed}/${name}`, 20);
    const afterViews = reachableBytes();
    // Filled for each tool, the headers would take 13 MB, and the constants for each view 26 MB.
    const megabytes = [afterTools - before, afterViews - afterTools].map((bytes) => bytes / 1e6);
    assert.ok((megabytes[0] ?? 0) < 8, `the tools of a server took ${megabytes[0]} MB`);
    assert.ok((megabytes[1] ?? 0) < 16, `the tools of views took ${megabytes[1]} MB`);
  });

  it('[find A1] counts in the cache', async () => {
    const tools = many(64, () => post(constant(131)));
    const slugs: string[] = [];
    for (let n = 0; n < 9; n++) slugs.push(await create({ tools }));
    for (const slug of slugs) await toolhost.rpc(slug, key, 'tools/list');
    const entries = (await scrape(toolhost.url)).value('toolhost_cache_entries', { cache: 'servers' });
    // 30 million characters of 4.3 million each.
    assert.ok(entries >= 1 && entries <= 7, String(entries));
  });
});

function fixedTool(n: number): Json {
  return { name: `tool_${n}`, arguments: { b: 'x' } };
}
