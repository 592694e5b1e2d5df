import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isFullSuite } from '../sets.ts';
import { pluck } from '../support/pluck.ts';
import { listOf, object, text } from '../support/schemas.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as command } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { buildServerConfig, buildToolConfig, findToolProblems, oauthConfig } from '../support/valid-configs.ts';

const api = 'https://api.example.com';

const importAdvice =
  'import it with the operation importApi or the command import FILE, which creates a configuration from the operations that you choose';

const mcpClientAdvice =
  'such a file lists existing MCP servers and cannot be imported; a configuration describes an HTTP API and its tools';

const documents: [name: string, document: Json, advice: string][] = [
  ['an OpenAPI document', { openapi: '3.1.0', info: { title: 'A', version: '1' }, paths: {} }, importAdvice],
  ['an OpenAPI document', { swagger: '2.0', info: {}, paths: {} }, importAdvice],
  ['a Postman collection', { info: { _postman_id: 'x', name: 'A' }, item: [] }, importAdvice],
  ['a Postman collection', { collection: { info: { name: 'A' }, item: [] } }, importAdvice],
  ['a HAR file', { log: { version: '1.2', entries: [] } }, importAdvice],
  [
    'an MCP client configuration',
    { mcpServers: { files: { command: 'npx', args: ['-y', 'server'] } } },
    mcpClientAdvice,
  ],
  [
    'an MCP client configuration',
    { servers: { api: { type: 'http', url: 'https://mcp.example.com' } } },
    mcpClientAdvice,
  ],
  [
    'the tool list of an MCP server',
    { tools: [{ name: 'a', description: 'A', inputSchema: { type: 'object' } }] },
    'it does not describe the HTTP requests of the tools; give each tool a method, a url, and its input_schema',
  ],
  [
    'the response of getMcpServer',
    { server: { slug: 'a' }, config: { name: 'A', tools: [] }, warnings: [] },
    'send only the value of its config field',
  ],
  [
    'a GraphQL introspection result',
    { data: { __schema: { types: [] } } },
    'write one tool per query: method POST, and the query as an argument with a constant "value"',
  ],
];

type Path = readonly (string | number)[];

/** Returns the paths of all leaf values. */
function getLeafPaths(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const parts: [string | number, unknown][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return parts.flatMap(([part, inner]) => getLeafPaths(inner, [...path, part]));
}

function withValue(config: Json, path: Path, value: unknown): Json {
  const copy = structuredClone(config);
  let target = copy as Record<string | number, unknown>;
  for (const part of path.slice(0, -1)) target = target[part] as Record<string | number, unknown>;
  target[path.at(-1) ?? ''] = value;
  return copy;
}

const fullTool = buildToolConfig({
  title: 'Things',
  headers: { Accept: 'text/plain' },
  input_schema: { id: { type: 'string', description: 'Which', format: 'uuid', in: 'query' } },
  response_transform: 'data',
  timeout_ms: 500,
  array_format: 'repeat',
  response_fields: ['name'],
  body: 'json',
  method: 'POST',
});
const login = buildServerConfig({
  authentication: { type: 'Bearer', header: 'X-Token' },
  oauth: { ...oauthConfig, scopes: ['read'], token_mode: 'issued', extra_params: { prompt: 'consent' } },
});
const stored = buildServerConfig({
  description: 'All',
  authentication: { type: 'ApiKey', token: '{{KEY}}' },
  tools: [fullTool],
});
/** Values that are invalid in most fields. */
const invalidValues = isFullSuite
  ? ['', ' ', 7, true, null, [], {}, 'x'.repeat(5000), 'http://[', '\u0001']
  : ['', null, {}];

describe('configuration errors', () => {
  const toolhost = useFixture(startToolhost);
  /** Checks that a tool with these fields has exactly these problems. */
  const assertProblems = async (fields: Json, ...expected: string[]) =>
    assert.deepEqual(await findToolProblems(toolhost, fields), expected, JSON.stringify(fields));
  const optional = { ...text, optional: true };
  const formatLiteralProblem = (found: string, name: string, declaring = '') =>
    `tools[0].url: \`${found}\` would be sent literally; write \`:${name}\`${declaring} for an argument, {{${name}}} for a variable or a secret, or ${encodeURIComponent(found)} for the literal characters`;

  it('[conf 6] reports braces and angle brackets in a URL where :id was meant', async () => {
    const input_schema = { id: text };
    await assertProblems({ url: `${api}/things/{id}`, input_schema }, formatLiteralProblem('{id}', 'id'));
    for (const [url, found, name] of [
      ['/things/{id}', '{id}', 'id'],
      ['/{id}/parts', '{id}', 'id'],
      ['/v1/{name=projects/*}', '{name=projects/*}', 'name'],
      ['/v1/{+name}', '{+name}', 'name'],
      ['/things/<id>', '<id>', 'id'],
      ['/things?id={id}', '{id}', 'id'],
      ['/things?id=eq.{id}', '{id}', 'id'],
      ['/things?a=1&ids={ids*}', '{ids*}', 'ids'],
    ] as const)
      await assertProblems(
        { url: api + url },
        formatLiteralProblem(found, name, ` and declare ${name} in input_schema`),
      );
    for (const url of [
      ...['/things/%7Bid%7D', '/posts?fields=id,posts{message,created_time}', '/posts?fields=posts{message}'],
      ...['/graphql?query={viewer{login}}', '/things?filter={}'],
    ])
      await assertProblems({ url: api + url });
    await assertProblems({ url: `${api}/Products(:id)`, input_schema });
  });

  it('[conf 6] reports braces in a host and in base_url', async () => {
    const problem =
      '`{shop}` is not allowed in a host; declare shop in variables and write {{shop}}, or write the host itself';
    const [host] = await findToolProblems(toolhost, { url: 'https://{shop}.example.com/orders' });
    assert.equal(host, `tools[0].url: ${problem}`);
    const base_url = 'https://{shop}.example.com/v1';
    const [base] = await findToolProblems(toolhost, { url: '/orders' }, { base_url });
    assert.equal(base, `base_url: ${problem}`);
  });

  it('[conf 6] reports arguments in a header value', async () => {
    const input_schema = { version: text };
    for (const [value, found] of [
      [':version', ':version'],
      ['v=:version; q=1', ':version'],
      ['{version}', '{version}'],
    ] as const)
      await assertProblems(
        { headers: { 'X-Version': value }, input_schema },
        `tools[0].headers.X-Version: \`${found}\` would be sent literally, because header values do not interpolate arguments; remove this header and give the argument "in": "header" and "wire_name": "X-Version"`,
      );
    for (const value of ['urn:version', 'a::version', ':other', '12:30', '{{version}}'])
      await assertProblems({ headers: { 'X-Version': value }, input_schema });
  });

  it('[conf 6] reports {{NAME}} in a default, in enum values, and in a name', async () => {
    const formatSentence = (field: string) =>
      `tools[0].input_schema.${field}: "{{KEY}}" is not interpolated here and would be sent literally; use a secret or a variable in a constant, "value"`;
    const withDefault = { ...text, default: '{{KEY}}' };
    const flat = { a: withDefault, b: { ...text, enum: ['x', '{{KEY}}'] } };
    await assertProblems({ input_schema: flat }, formatSentence('a.default'), formatSentence('b.enum[1]'));
    await assertProblems({ input_schema: object({ a: withDefault }) }, formatSentence('properties.a.default'));
    await assertProblems({ input_schema: { a: { ...text, default: 'Dear {{name}},' } } });
    await assertProblems(
      { input_schema: { a: { ...text, wire_name: 'x[{{KEY}}]' } } },
      'tools[0].input_schema.a.wire_name: variables and secrets are not interpolated in names; write the name out',
    );
  });

  it('[conf 6] reports required names that are not properties', async () => {
    const assertSchema = (more: Json, ...expected: string[]) =>
      assertProblems({ input_schema: { type: 'object', ...more } }, ...expected);
    const formatSentence = (path: string, name: string, advice = '; declare it in properties, or remove it') =>
      `tools[0].input_schema.${path}: "${name}" is not a declared property${advice}`;
    const misspelled = { properties: { name: text }, required: ['name', 'nam'] };
    await assertSchema(misspelled, formatSentence('required[1]', 'nam', '; did you mean `name`?'));
    await assertSchema({ required: ['id'] }, formatSentence('required[0]', 'id'));
    const open = object({ x: text }, ['y']);
    const closed = { ...open, additionalProperties: false };
    await assertSchema({ properties: { a: closed } }, formatSentence('properties.a.required[0]', 'y'));
    await assertSchema({ properties: { a: open } });
    await assertSchema({ properties: { a: { ...closed, allOf: [{ properties: { y: text } }] } } });
    await assertProblems({ input_schema: { a: open } });
  });

  it('[conf 6] reports an optional argument in the path', async () => {
    const url = `${api}/things/:id`;
    const sentence =
      'tools[0].input_schema.id: :id is part of the path, which needs it in every call; make the argument required, or give it a default';
    for (const input_schema of [{ id: optional }, object({ id: text }), object({ id: text }, [])])
      await assertProblems({ url, input_schema }, sentence);
    for (const id of [text, { ...optional, default: 'first' }, { ...optional, value: 'constant' }])
      await assertProblems({ url, input_schema: { id } });
    await assertProblems({ url, input_schema: object({ id: text }, ['id']) });
    await assertProblems({ url: `${api}/things?id=:id`, input_schema: { id: optional } });
  });

  it('[conf 6] reports an object in a form without a style', async () => {
    const city = object({ city: text });
    const sentence =
      'tools[0].input_schema.a.style: is missing; forms have no standard syntax for objects, so choose one: "indices" as in Stripe and PHP, "deep", or "json" for JSON text';
    const assertForm = (a: Json, more: Json = {}, ...expected: string[]) =>
      assertProblems({ method: 'POST', body: 'form', input_schema: { a }, ...more }, ...expected);
    await assertForm(city, {}, sentence);
    await assertForm(listOf(city), {}, sentence);
    for (const style of ['indices', 'brackets', 'deep', 'json']) await assertForm({ ...city, style });
    for (const location of ['query', 'header']) await assertForm({ ...city, in: location });
    await assertForm(listOf(text));
    await assertForm(city, { body: 'json' });
  });

  it('[conf 6] reports Accept and User-Agent that are both a header and an argument', async () => {
    for (const name of ['Accept', 'User-Agent', 'user_agent']) {
      const input_schema = { [name]: { ...text, in: 'header' } };
      await assertProblems({ input_schema });
      await assertProblems(
        { input_schema, headers: { [name.replace('_', '-')]: 'x' } },
        `tools[0].input_schema.${name}: this header is already set by headers, authentication, or another argument`,
      );
    }
  });

  it('[find D1] reports one fault on one line, whatever a field contains', async () => {
    const duplicates: string[] = [];
    for (const config of [stored, login])
      for (const path of getLeafPaths(config))
        for (const value of invalidValues) {
          const changed = withValue(config, path, value);
          const { body, status, text: reply } = await toolhost.rest('POST', '/check', { body: changed });
          assert.equal(status, 200, reply);
          const paths = pluck(body.problems as { path: string }[], 'path');
          if (new Set(paths).size < paths.length) duplicates.push(`${path.join('.')} ${JSON.stringify(body.problems)}`);
        }
    assert.deepEqual(duplicates, []);
  });

  describe('for documents of other programs', () => {
    let folder: string;
    let env: Record<string, string>;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'toolhost-foreign-'));
      env = { TOOLHOST_URL: toolhost.url, TOOLHOST_API_KEY: await toolhost.createKey() };
      await toolhost.createServer(buildServerAt('existing', api));
    });
    after(() => rmSync(folder, { recursive: true, force: true }));

    it('[conf 6] return one problem that names the document type and the next step', async () => {
      for (const [name, document, advice] of documents) {
        const message = `this is ${name}, not a configuration; ${advice}`;
        const checked = await toolhost.rest('POST', '/check', { body: document });
        assert.deepEqual(checked.body.problems, [{ path: '', message }], JSON.stringify(document));
      }
      for (const body of [
        ...[{ tools: [] }, { servers: {} }, { info: {} }, { log: {} }, buildServerConfig({ name: 'openapi: 3' })],
      ]) {
        const checked = await toolhost.rest('POST', '/check', { body });
        assert.doesNotMatch(checked.text, /this is /, JSON.stringify(body));
      }
    });

    it('[conf 6] are returned at every entry point, for a curl command and YAML on the command line', async () => {
      const [, document] = documents[0] ?? assert.fail();
      const message = `this is an OpenAPI document, not a configuration; ${importAdvice}`;
      for (const request of ['POST /servers', 'PATCH /servers/existing', 'POST /servers/existing/tools']) {
        const [method = '', path = ''] = request.split(' ');
        const refused = await toolhost.rest(method, path, { body: document });
        assert.deepEqual([refused.status, refused.body.problems], [400, [{ path: '', message }]], request);
      }
      const managed = await toolhost.callTool('manage', String(env.TOOLHOST_API_KEY), 'createMcpServer', document);
      assert.match(String(managed.content[0]?.text), /this is an OpenAPI document, not a configuration; import it/);
      const yaml = join(folder, 'openapi.yaml');
      writeFileSync(yaml, 'openapi: 3.0.3\ninfo: {title: A, version: "1"}\n');
      const created = await command(['servers', 'create', yaml], { env });
      assert.deepEqual(
        [created.code, created.stderr.includes(`${yaml}: this is an OpenAPI document, not a configuration; import it`)],
        [1, true],
        created.stderr,
      );
      const curl = join(folder, 'request.txt');
      const text =
        "$ curl -X POST https://api.example.com/things \\\n  -H 'Accept: application/json' -d '{\"a\": 1}'\n";
      writeFileSync(curl, text);
      const checked = await command(['check', curl], { env });
      assert.equal(checked.code, 1);
      assert.ok(
        checked.stdout.startsWith(`${curl}: this is a curl command, not a configuration; import it with "bin/`),
      );
    });
  });
});
