import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { foreignDocument, foreignText } from '../../src/domain/mistakes/foreign-document.ts';
import { serverAt } from '../support/configs.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { toolhost as command } from '../support/toolhost/toolhost-command.ts';

const importing =
  'import it with the operation importApi, or with: toolhost import FILE; it makes a configuration of the operations that you choose';

const documents: [name: string, document: Json, advice: string][] = [
  ['an OpenAPI document', { openapi: '3.1.0', info: { title: 'A', version: '1' }, paths: {} }, importing],
  ['an OpenAPI document', { swagger: '2.0', info: {}, paths: {} }, importing],
  ['a Postman collection', { info: { _postman_id: 'x', name: 'A' }, item: [] }, importing],
  ['a Postman collection', { collection: { info: { name: 'A' }, item: [] } }, importing],
  ['a HAR file', { log: { version: '1.2', entries: [] } }, importing],
  [
    'a file that says which servers a client connects to',
    { mcpServers: { files: { command: 'npx', args: ['-y', 'server'] } } },
    'such a file names MCP servers that exist already, so nothing is made of it; a configuration names an HTTP API and its tools',
  ],
  [
    'a file that says which servers a client connects to',
    { servers: { api: { type: 'http', url: 'https://mcp.example.com' } } },
    'such a file names MCP servers that exist already, so nothing is made of it; a configuration names an HTTP API and its tools',
  ],
  [
    'a list of tools as an MCP server gives it',
    { tools: [{ name: 'a', description: 'A', inputSchema: { type: 'object' } }] },
    'it does not say which HTTP requests the tools make; give each tool a method and a url, and its input_schema',
  ],
  [
    'the answer of getMcpServer',
    { server: { slug: 'a' }, config: { name: 'A', tools: [] }, warnings: [] },
    'send only the value of its field config',
  ],
  [
    'the result of a GraphQL introspection',
    { data: { __schema: { types: [] } } },
    'write a tool for each query: method POST, and the query as an argument with a constant "value"',
  ],
];

const curl = "curl -X POST https://api.example.com/things -H 'Accept: application/json' -d '{\"a\": 1}'";

describe('documents of other programs in place of a configuration', () => {
  let toolhost: TestToolhost;
  let folder: string;
  let env: Record<string, string>;
  before(async () => {
    toolhost = await startToolhost();
    folder = mkdtempSync(join(tmpdir(), 'toolhost-foreign-'));
    env = { TOOLHOST_URL: toolhost.url, TOOLHOST_API_KEY: await toolhost.key() };
    await toolhost.createServer(serverAt('existing', 'https://api.example.com'));
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await toolhost.stop();
  });
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };

  it('[conf 6] get one problem that says what they are and what to do', async () => {
    for (const [name, document, advice] of documents) {
      const message = `this is ${name}, not a configuration; ${advice}`;
      const checked = await toolhost.rest('POST', '/check', { body: document });
      assert.deepEqual(checked.body.problems, [{ path: '', message }], JSON.stringify(document));
      const created = await toolhost.rest('POST', '/servers', { body: document });
      assert.deepEqual([created.status, created.body.problems], [400, [{ path: '', message }]]);
      if ('tools' in document) continue;
      const changed = await toolhost.rest('PATCH', '/servers/existing', { body: document });
      assert.deepEqual([changed.status, changed.body.problems], [400, [{ path: '', message }]]);
      const added = await toolhost.rest('POST', '/servers/existing/tools', { body: document });
      assert.deepEqual([added.status, added.body.problems], [400, [{ path: '', message }]]);
    }
  });

  it('[conf 6] are recognised by the management server', async () => {
    const [, document] = documents[0] ?? assert.fail();
    const refused = await toolhost.callTool('manage', String(env.TOOLHOST_API_KEY), 'createMcpServer', document);
    assert.match(String(refused.content[0]?.text), /this is an OpenAPI document, not a configuration; import it/);
  });

  it('[conf 6] are recognised by the command line, a curl command and YAML too', async () => {
    const files = [
      [file('openapi.json', JSON.stringify(documents[0]?.[1])), 'an OpenAPI document'],
      [file('openapi.yaml', 'openapi: 3.0.3\ninfo: {title: A, version: "1"}\n'), 'an OpenAPI document'],
      [file('request.sh', `${curl}\n`), 'a curl command'],
      [file('request.txt', `$ ${curl.replaceAll(' -', ' \\\n  -')}\n`), 'a curl command'],
    ] as const;
    for (const [path, name] of files) {
      const message = `this is ${name}, not a configuration; ${importing}`;
      const checked = await command(['check', path], { env });
      assert.deepEqual([checked.code, checked.stdout.trim()], [1, `${path}: ${message}`]);
      for (const args of [
        ['servers', 'create', path],
        ['servers', 'update', path],
        ['tools', 'add', 'existing', path],
        ['apply', '--dry-run', path],
      ]) {
        const refused = await command(args, { env });
        assert.deepEqual([refused.code, refused.stderr.includes(`${path}: ${message}`)], [1, true], refused.stderr);
      }
    }
  });

  it('[conf 6] are nothing that a configuration could be', async () => {
    assert.equal(foreignDocument(serverAt('own', 'https://api.example.com')), undefined);
    for (const value of [undefined, null, 1, [], {}, { tools: [] }, { servers: {} }, { info: {} }, { log: {} }]) {
      assert.equal(foreignDocument(value), undefined, JSON.stringify(value));
    }
    for (const text of ['', 'curly: braces', 'name: curl tools', '{"name": "openapi: x"}', 'a: 1\n  openapi: 3']) {
      assert.equal(foreignText(text), undefined, text);
    }
    assert.match(foreignDocument(curl) ?? '', /curl command/);
  });
});
