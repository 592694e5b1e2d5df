import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { getResultText, type OneToolFixture, startOneTool } from '../support/one-tool.ts';
import { object, text } from '../support/schemas.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

const id = '1092839482938472939';

/** Returns a configuration number with exactly these digits. */
const toNumber = (digits: string): unknown => JSON.rawJSON(digits);

describe('[conf 9] number digits in a configuration', () => {
  let oneTool: OneToolFixture;
  let folder: string;
  let env: Record<string, string>;
  before(async () => {
    oneTool = await startOneTool();
    folder = mkdtempSync(join(tmpdir(), 'toolhost-digits-'));
    env = { TOOLHOST_URL: oneTool.toolhost.url, TOOLHOST_API_KEY: await oneTool.toolhost.createKey() };
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await oneTool.stop();
  });

  const body = `{"text":"hi","channel":${id},"price":1.10}`;
  const createTool = (more: Json = {}) => ({
    name: 'run',
    description: 'Posts a text.',
    method: 'POST',
    url: `${oneTool.upstream.url}/messages`,
    input_schema: {
      text,
      channel: { type: 'integer', value: toNumber(id) },
      price: { type: 'number', default: toNumber('1.10'), minimum: toNumber('1.0') },
    },
    timeout_ms: toNumber('1e4'),
    ...more,
  });
  const send = async (slug: string, args: Json = { text: 'hi' }) =>
    (await oneTool.captureRequest(slug, args)).body.toString();
  const requestServers = async (method: string, path: string, config?: Json): Promise<Reply> => {
    const reply = await oneTool.toolhost.rest(method, `/servers${path}`, { body: config });
    assert.ok(reply.status < 300, reply.text);
    return reply;
  };
  const create = (slug: string, tools: readonly Json[], more: Json = {}) =>
    requestServers('POST', '', { name: 'Digits', slug, tools, ...more });
  const takeBodies = () => oneTool.upstream.take().map((request) => request.body.toString());
  const other = '1092839482938472940';

  it('reach the upstream in constants, defaults, and templates, from either form of a schema', async () => {
    await create('forms', [createTool()]);
    assert.equal(await send('forms'), body);
    const { input_schema: properties } = createTool();
    await create('json-schema', [createTool({ input_schema: object(properties, ['text']) })]);
    assert.equal(await send('json-schema'), body);
    const template = { to: { channel: toNumber(id) }, list: [toNumber('1e400'), ':text', toNumber('-0')] };
    await create('template', [createTool({ input_schema: { text }, body_template: template })]);
    assert.equal(await send('template'), `{"to":{"channel":${id}},"list":[1e400,"hi",-0]}`);
    await create('huge', [createTool({ input_schema: { n: { type: 'number', default: toNumber('1e400') } } })]);
    assert.equal(await send('huge', {}), '{"n":1e400}');
  });

  it('are preserved in a configuration that is parsed on a thread, and in one that is parsed in chunks', async () => {
    const many = Array.from({ length: 150 }, (_, i) => createTool({ name: `t${i}`, description: 'long '.repeat(400) }));
    await create('large', [createTool(), ...many]);
    assert.equal(await send('large'), body);
    await requestServers('PATCH', '/large', { description: 'Changed.' });
    await requestServers('PATCH', '/large/tools/t3', { title: 'Changed' });
    assert.equal(await send('large'), body);
    assert.equal((await requestServers('GET', '/large')).text.split(id).length, many.length + 2);
  });

  it('are preserved when a server or a tool is changed, shown, compared, and restored', async () => {
    await create('changed', [createTool({ input_schema: {}, url: `${oneTool.upstream.url}/old` })]);
    await requestServers('PATCH', '/changed', { tools: [createTool()] });
    assert.equal(await send('changed'), body);
    const input_schema = { n: { type: 'integer', value: toNumber(`${id}0`) } };
    await requestServers('PATCH', '/changed/tools/run', { input_schema });
    assert.equal(await send('changed', {}), `{"n":${id}0}`);
    const { text } = await requestServers('GET', '/changed');
    assert.match(text, new RegExp(`"value":${id}0`));
    await requestServers('POST', '/changed/tools', createTool({ name: 'other' }));
    await requestServers('POST', '/changed/versions/2/restore', {});
    assert.equal(await send('changed'), body);
    const preview = await requestServers('POST', '/changed/tools/run/preview', { arguments: { text: 'hi' } });
    assert.match(preview.text, new RegExp(id));
    const shown = JSON.parse((await requestServers('GET', '/changed')).text, reviveWithDigits) as { config: Json };
    await requestServers('PUT', '/changed', shown.config);
    assert.equal(await send('changed'), body);
  });

  it('are preserved in fixed arguments of a view, and in the schemas that agents see', async () => {
    const views = { part: { tools: [{ name: 'run', arguments: { price: toNumber('2.50') } }] } };
    await create('viewed', [createTool()], { views });
    oneTool.upstream.take();
    await oneTool.toolhost.callTool('viewed/part', 'caller-token-0123456789', 'run', { text: 'hi' });
    assert.deepEqual(takeBodies(), [`{"text":"hi","channel":${id},"price":2.50}`]);
    const { text } = await oneTool.toolhost.rpc('viewed', 'caller-token-0123456789', 'tools/list');
    assert.match(text, /"default":1\.10,"minimum":1\.0/);
  });

  it('decide if an argument is among the enum values of a schema', async () => {
    const values = [toNumber(id), toNumber('1.0')];
    const input_schema = { n: { type: 'number', enum: values } };
    const slug = await oneTool.createToolServer({ method: 'POST', input_schema });
    const callWithDigits = async (digits: string) => getResultText(await oneTool.callText(slug, `{"n":${digits}}`));
    const listed = [id, '1.0', '1', '1.00'];
    oneTool.upstream.take();
    for (const digits of listed) await callWithDigits(digits);
    assert.deepEqual(
      takeBodies(),
      listed.map((digits) => `{"n":${digits}}`),
    );
    assert.match(await callWithDigits(other), new RegExp(`found ${other}; allowed: ${id}, 1.0`));
  });

  it('decide within combinations, references, and conditions too', async () => {
    const listed = { enum: [toNumber(id)] };
    const schemas = [
      { allOf: [listed] },
      { anyOf: [text, listed] },
      { oneOf: [listed, text] },
      { $ref: '#/$defs/listed' },
      { not: { enum: [toNumber(other)] } },
      { if: listed, else: false },
    ];
    for (const schema of schemas) {
      const input_schema = { ...object({ n: schema }), $defs: { listed } };
      const slug = await oneTool.createToolServer({ method: 'POST', input_schema });
      const callWithDigits = (digits: string) => oneTool.callText(slug, `{"n":${digits}}`);
      oneTool.upstream.take();
      await callWithDigits(id);
      assert.equal((await callWithDigits(other)).isError, true, JSON.stringify(schema));
      assert.deepEqual(takeBodies(), [`{"n":${id}}`], JSON.stringify(schema));
    }
  });

  it('are preserved by the management server and shown in its results', async () => {
    const key = await oneTool.toolhost.createKey();
    const call = async (name: string, args: Json) => {
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
      return (await oneTool.toolhost.post('manage', message, { token: key })).text;
    };
    await call('createMcpServer', { name: 'Digits', slug: 'managed', tools: [createTool()] });
    assert.equal(await send('managed'), body);
    assert.match(await call('getMcpServer', { slug: 'managed' }), new RegExp(`"value\\\\":${id}`));
    const changed = { body_template: { id: toNumber(`${id}1`) }, input_schema: {} };
    await call('updateTool', { slug: 'managed', tool: 'run', ...changed });
    assert.equal(await send('managed', {}), `{"id":${id}1}`);
  });

  it('are preserved in JSON and YAML files that commands read and write', async () => {
    const run = async (...args: string[]) => {
      const ended = await runToolhostCommand(args, { env });
      assert.equal(ended.code, 0, ended.stderr);
      return ended.stdout;
    };
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const config = (slug: string) => JSON.stringify({ name: 'Digits', slug, tools: [createTool()] });
    await run('servers', 'create', file('created.json', config('from-json')));
    assert.equal(await send('from-json'), body);
    await run('apply', file('applied.json', config('applied')), '--yes');
    assert.equal(await send('applied'), body);
    const shown = await run('servers', 'get', 'applied');
    assert.match(shown, new RegExp(`value: ${id}\n`));
    await run('apply', file('again.yaml', shown.replace('slug: applied', 'slug: from-yaml')), '--yes');
    assert.equal(await send('from-yaml'), body);
    const exported = join(folder, 'exported');
    await run('export', 'from-yaml', '--out', exported);
    assert.match(readFileSync(join(exported, 'from-yaml.yaml'), 'utf8'), new RegExp(`value: ${id}\n`));
    await run('apply', exported, '--yes');
    assert.equal(await send('from-yaml'), body);
    const notJson = file('not-json.yaml', 'name: A\nslug: not-json\nlimits: { concurrency: .inf }\ntools: []\n');
    assert.match((await runToolhostCommand(['check', notJson], { env })).stdout, /\.inf is not a JSON number/);
  });

  it('are preserved by an import and a re-import', async () => {
    const description = (enumValue: string) => `openapi: 3.0.0
info: { title: Digits, version: 1.0 }
servers: [{ url: '${oneTool.upstream.url}' }]
paths:
  /messages:
    post:
      operationId: post_message
      parameters:
        - { name: channel, in: query, schema: { type: integer, enum: [${enumValue}, 1] } }
      responses: { '200': { description: ok } }
`;
    const importFrom = async (path: string, enumValue: string, more: Json) => {
      const body = { document: description(enumValue), ...more };
      const reply = await oneTool.toolhost.rest('POST', path, { body });
      assert.ok(reply.status < 300, reply.text);
      assert.match((await requestServers('GET', '/imported')).text, new RegExp(`"enum":\\[${enumValue},1\\]`));
    };
    await importFrom('/import', id, { slug: 'imported', mode: 'create' });
    await importFrom('/servers/imported/import', '1092839482938472930', { mode: 'apply' });
  });
});

function reviveWithDigits(_name: string, value: unknown, { source }: { source?: string } = {}): unknown {
  return typeof value === 'number' && source !== undefined ? JSON.rawJSON(source) : value;
}
