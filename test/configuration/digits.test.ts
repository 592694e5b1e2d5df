import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type OneTool, startOneTool, textOf } from '../support/one-tool.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';

const id = '1092839482938472939';

/** Returns a configuration number with exactly these digits. */
const number = (digits: string): unknown => JSON.rawJSON(digits);

describe('[conf 9] number digits in a configuration', () => {
  let one: OneTool;
  let folder: string;
  let env: Record<string, string>;
  before(async () => {
    one = await startOneTool();
    folder = mkdtempSync(join(tmpdir(), 'toolhost-digits-'));
    env = { TOOLHOST_URL: one.toolhost.url, TOOLHOST_API_KEY: await one.toolhost.key() };
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await one.stop();
  });

  const body = `{"text":"hi","channel":${id},"price":1.10}`;
  const tool = (more: Json = {}) => ({
    name: 'run',
    description: 'Posts a text.',
    method: 'POST',
    url: `${one.upstream.url}/messages`,
    input_schema: {
      text: { type: 'string' },
      channel: { type: 'integer', value: number(id) },
      price: { type: 'number', default: number('1.10'), minimum: number('1.0') },
    },
    timeout_ms: number('1e4'),
    ...more,
  });
  const sent = async (slug: string, args: Json = { text: 'hi' }) => (await one.sent(slug, args)).body.toString();
  const rest = async (method: string, path: string, config?: Json): Promise<Reply> => {
    const reply = await one.toolhost.rest(method, `/servers${path}`, { body: config });
    assert.ok(reply.status < 300, reply.text);
    return reply;
  };
  /** Stores a configuration. */
  const create = (slug: string, tools: readonly Json[], more: Json = {}) =>
    rest('POST', '', { name: 'Digits', slug, tools, ...more });

  it('reach the upstream in constants, defaults, and templates, from either form of a schema', async () => {
    await create('forms', [tool()]);
    assert.equal(await sent('forms'), body);
    const { input_schema: properties } = tool();
    await create('json-schema', [tool({ input_schema: { type: 'object', properties, required: ['text'] } })]);
    assert.equal(await sent('json-schema'), body);
    const template = { to: { channel: number(id) }, list: [number('1e400'), ':text', number('-0')] };
    await create('template', [tool({ input_schema: { text: { type: 'string' } }, body_template: template })]);
    assert.equal(await sent('template'), `{"to":{"channel":${id}},"list":[1e400,"hi",-0]}`);
    await create('huge', [tool({ input_schema: { n: { type: 'number', default: number('1e400') } } })]);
    assert.equal(await sent('huge', {}), '{"n":1e400}');
  });

  it('are preserved in a configuration that is parsed on a thread, and in one that is parsed in chunks', async () => {
    const many = Array.from({ length: 150 }, (_, i) => tool({ name: `t${i}`, description: 'long '.repeat(400) }));
    await create('large', [tool(), ...many]);
    assert.equal(await sent('large'), body);
    await rest('PATCH', '/large', { description: 'Changed.' });
    await rest('PATCH', '/large/tools/t3', { title: 'Changed' });
    assert.equal(await sent('large'), body);
    assert.equal((await rest('GET', '/large')).text.split(id).length, many.length + 2);
  });

  it('are preserved when a server or a tool is changed, shown, compared, and restored', async () => {
    await create('changed', [tool({ input_schema: {}, url: `${one.upstream.url}/old` })]);
    await rest('PATCH', '/changed', { tools: [tool()] });
    assert.equal(await sent('changed'), body);
    await rest('PATCH', '/changed/tools/run', { input_schema: { n: { type: 'integer', value: number(`${id}0`) } } });
    assert.equal(await sent('changed', {}), `{"n":${id}0}`);
    const { text } = await rest('GET', '/changed');
    assert.match(text, new RegExp(`"value":${id}0`));
    await rest('POST', '/changed/tools', tool({ name: 'other' }));
    await rest('POST', '/changed/versions/2/restore', {});
    assert.equal(await sent('changed'), body);
    const preview = await rest('POST', '/changed/tools/run/preview', { arguments: { text: 'hi' } });
    assert.match(preview.text, new RegExp(id));
    await rest('PUT', '/changed', JSON.parse((await rest('GET', '/changed')).text, keepDigits).config);
    assert.equal(await sent('changed'), body);
  });

  it('are preserved in fixed arguments of a view, and in the schemas that agents see', async () => {
    const views = { part: { tools: [{ name: 'run', arguments: { price: number('2.50') } }] } };
    await create('viewed', [tool()], { views });
    one.upstream.take();
    await one.toolhost.callTool('viewed/part', 'caller-token-0123456789', 'run', { text: 'hi' });
    assert.equal(one.upstream.take()[0]?.body.toString(), `{"text":"hi","channel":${id},"price":2.50}`);
    const { text } = await one.toolhost.rpc('viewed', 'caller-token-0123456789', 'tools/list');
    assert.match(text, /"default":1\.10,"minimum":1\.0/);
  });

  it('decide if an argument is among the enum values of a schema', async () => {
    const values = [number(id), number('1.0')];
    const slug = await one.serve({ method: 'POST', input_schema: { n: { type: 'number', enum: values } } });
    const given = async (digits: string) => textOf(await one.callText(slug, `{"n":${digits}}`));
    one.upstream.take();
    for (const digits of [id, '1.0', '1', '1.00']) await given(digits);
    assert.deepEqual(
      one.upstream.take().map((request) => request.body.toString()),
      [id, '1.0', '1', '1.00'].map((digits) => `{"n":${digits}}`),
    );
    assert.match(await given('1092839482938472940'), new RegExp(`found 1092839482938472940; allowed: ${id}, 1.0`));
  });

  it('decide within combinations, references, and conditions too', async () => {
    const listed = { enum: [number(id)] };
    const schemas = [
      { allOf: [listed] },
      { anyOf: [{ type: 'string' }, listed] },
      { oneOf: [listed, { type: 'string' }] },
      { $ref: '#/$defs/listed' },
      { not: { enum: [number('1092839482938472940')] } },
      { if: listed, else: false },
    ];
    for (const schema of schemas) {
      const input_schema = { type: 'object', properties: { n: schema }, $defs: { listed } };
      const slug = await one.serve({ method: 'POST', input_schema });
      const given = (digits: string) => one.callText(slug, `{"n":${digits}}`);
      one.upstream.take();
      await given(id);
      assert.equal((await given('1092839482938472940')).isError, true, JSON.stringify(schema));
      assert.deepEqual(
        one.upstream.take().map((request) => request.body.toString()),
        [`{"n":${id}}`],
        JSON.stringify(schema),
      );
    }
  });

  it('are preserved by the management server and shown in its results', async () => {
    const key = await one.toolhost.key();
    const call = async (name: string, args: Json) => {
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
      return (await one.toolhost.post('manage', message, { token: key })).text;
    };
    await call('createMcpServer', { name: 'Digits', slug: 'managed', tools: [tool()] });
    assert.equal(await sent('managed'), body);
    assert.match(await call('getMcpServer', { slug: 'managed' }), new RegExp(`"value\\\\":${id}`));
    await call('updateTool', {
      slug: 'managed',
      tool: 'run',
      body_template: { id: number(`${id}1`) },
      input_schema: {},
    });
    assert.equal(await sent('managed', {}), `{"id":${id}1}`);
  });

  it('are preserved in JSON and YAML files that commands read and write', async () => {
    const run = async (...args: string[]) => {
      const ended = await toolhost(args, { env });
      assert.equal(ended.code, 0, ended.stderr);
      return ended.stdout;
    };
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const config = (slug: string) => JSON.stringify({ name: 'Digits', slug, tools: [tool()] });
    await run('servers', 'create', file('created.json', config('from-json')));
    assert.equal(await sent('from-json'), body);
    await run('apply', file('applied.json', config('applied')), '--yes');
    assert.equal(await sent('applied'), body);
    const shown = await run('servers', 'get', 'applied');
    assert.match(shown, new RegExp(`value: ${id}\n`));
    await run('apply', file('again.yaml', shown.replace('slug: applied', 'slug: from-yaml')), '--yes');
    assert.equal(await sent('from-yaml'), body);
    const exported = join(folder, 'exported');
    await run('export', 'from-yaml', '--out', exported);
    assert.match(readFileSync(join(exported, 'from-yaml.yaml'), 'utf8'), new RegExp(`value: ${id}\n`));
    await run('apply', exported, '--yes');
    assert.equal(await sent('from-yaml'), body);
    const notJson = file('not-json.yaml', 'name: A\nslug: not-json\nlimits: { concurrency: .inf }\ntools: []\n');
    assert.match((await toolhost(['check', notJson], { env })).stdout, /\.inf is not a JSON number/);
  });

  it('are preserved by an import and a re-import', async () => {
    const description = (fallback: string) => `openapi: 3.0.0
info: { title: Digits, version: 1.0 }
servers: [{ url: '${one.upstream.url}' }]
paths:
  /messages:
    post:
      operationId: post_message
      parameters:
        - { name: channel, in: query, schema: { type: integer, enum: [${fallback}, 1] } }
      responses: { '200': { description: ok } }
`;
    const imported = await one.toolhost.rest('POST', '/import', {
      body: { document: description(id), slug: 'imported', mode: 'create' },
    });
    assert.ok(imported.status < 300, imported.text);
    assert.match((await rest('GET', '/imported')).text, new RegExp(`"enum":\\[${id},1\\]`));
    const again = await one.toolhost.rest('POST', '/servers/imported/import', {
      body: { document: description('1092839482938472930'), mode: 'apply' },
    });
    assert.ok(again.status < 300, again.text);
    assert.match((await rest('GET', '/imported')).text, /"enum":\[1092839482938472930,1\]/);
  });
});

function keepDigits(_name: string, value: unknown, { source }: { source?: string } = {}): unknown {
  return typeof value === 'number' && source !== undefined ? JSON.rawJSON(source) : value;
}
