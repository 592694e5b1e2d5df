import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { callerToken, getResultText } from '../support/one-tool.ts';
import { text } from '../support/schemas.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { checkConfiguration } from '../support/valid-configs.ts';

const optional = { type: 'string', optional: true };
const named = (name: string, url: string, more: Json = {}) => ({ ...buildToolAt(url, more), name });

describe('base_url, headers, and variables of a server', () => {
  let staging: RecordingUpstream;
  let production: RecordingUpstream;
  let toolhost: TestToolhost;
  let key: string;
  let count = 0;
  before(async () => {
    [staging, production] = await Promise.all([startRecordingUpstream(), startRecordingUpstream()]);
    toolhost = await startToolhost({ egressPorts: [staging.port, production.port] });
    key = await toolhost.createKey();
  });
  after(() => Promise.all([toolhost.stop(), staging.close(), production.close()]));

  const createServer = async (config: Json) => {
    const slug = `wide-${++count}`;
    const { body } = await toolhost.createServer({ name: 'Wide', slug, ...config });
    return { slug, warnings: body.warnings as Json[] };
  };
  const formatFindings = (findings: unknown) =>
    (findings as { path: string; message: string }[]).map(({ path, message }) => `${path}: ${message}`);
  const getProblems = async (config: Json) =>
    (await checkConfiguration(toolhost, { name: 'Wide', slug: 'wide-refused', ...config })).problems;
  const changeServer = async (slug: string, body: Json) => {
    const reply = await toolhost.rest('PATCH', `/servers/${slug}`, { body });
    assert.equal(reply.status, 200, reply.text);
    return reply.body;
  };
  const setSecret = (slug: string, name: string, value: string) =>
    toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
  const getServer = async (slug: string) => (await toolhost.rest('GET', `/servers/${slug}`)).body.server as Json;
  /** Calls a tool, and returns the one request that the upstream received. */
  const send = async (upstream: RecordingUpstream, slug: string, name = 'get', args: Json = {}, token = key) => {
    const result = await toolhost.callTool(slug, token, name, args);
    assert.notEqual(result.isError, true, getResultText(result));
    const [request, ...more] = upstream.take();
    assert.deepEqual(more, []);
    return request ?? assert.fail('nothing was sent');
  };
  const getPort = (upstream: RecordingUpstream) => String(upstream.port);

  it('[conf 3] prepends base_url to a URL that begins with a slash, so one edit moves all tools', async () => {
    const { slug } = await createServer({
      base_url: `${staging.url}/v1/`,
      tools: [
        buildToolAt('/things/:id?x=:x', { input_schema: { id: text, x: optional } }),
        named('other', '/other?a=b'),
        named('elsewhere', `${production.url}/elsewhere`),
      ],
    });
    assert.equal((await send(staging, slug, 'get', { id: 'a/b', x: 'y' })).url, '/v1/things/a%2Fb?x=y');
    assert.equal((await send(staging, slug, 'other')).url, '/v1/other?a=b');
    assert.equal((await send(production, slug, 'elsewhere')).url, '/elsewhere');
    await changeServer(slug, { base_url: production.url });
    assert.equal((await send(production, slug, 'get', { id: '1' })).url, '/things/1');
    assert.deepEqual(staging.take(), []);
  });

  it('[conf 3] interpolates variables into the host, path, query, and headers, and shows them', async () => {
    const ports = [getPort(staging), getPort(production)];
    const { slug } = await createServer({
      base_url: 'http://127.0.0.1:{{port}}/{{ version }}',
      variables: {
        port: { value: getPort(staging), description: 'Where the API listens.', enum: ports },
        ...{ version: { value: 'v2' }, language: { value: 'de' }, id: { value: '7' } },
      },
      headers: { 'Accept-Language': '{{language}}-CH' },
      tools: [buildToolAt('/accounts/{{id}}/things?lang={{language}}', { headers: { 'X-Id': '{{id}}{{id}}' } })],
    });
    const { url, headers } = await send(staging, slug);
    assert.equal(url, '/v2/accounts/7/things?lang=de');
    assert.deepEqual([headers['accept-language'], headers['x-id']], ['de-CH', '77']);
    const { body } = await toolhost.rest('GET', `/servers/${slug}`);
    const variables = (body.config as { variables: Record<string, { value: string }> }).variables;
    assert.equal(variables.language?.value, 'de');
    await changeServer(slug, { variables: { ...variables, port: { value: getPort(production) } } });
    assert.equal((await send(production, slug)).url, '/v2/accounts/7/things?lang=de');
  });

  it('[conf 3] sends server headers with every tool, unless the tool has its own', async () => {
    const json = 'application/vnd.api+json';
    const own = { notion_version: '2025-01-01', Accept: 'text/csv' };
    const { slug } = await createServer({
      base_url: staging.url,
      headers: { 'Notion-Version': '2022-06-28', accept: json, 'Content-Type': json },
      tools: [
        buildToolAt('/a'),
        named('own', '/b', { headers: own }),
        named('post', '/c', { method: 'POST', input_schema: { a: optional } }),
      ],
    });
    const sendAndGetHeaders = async (name: string) => {
      const { headers } = await send(staging, slug, name, {}, callerToken);
      return [headers['notion-version'] ?? headers.notion_version, headers.accept, headers['content-type']];
    };
    assert.deepEqual(await sendAndGetHeaders('get'), ['2022-06-28', json, undefined]);
    assert.deepEqual(await sendAndGetHeaders('own'), ['2025-01-01', 'text/csv', undefined]);
    assert.deepEqual(await sendAndGetHeaders('post'), ['2022-06-28', json, json]);
  });

  it('[conf 3] interpolates a secret into a path segment and a query value, and never sends it to another origin', async () => {
    const { slug, warnings } = await createServer({
      base_url: 'http://127.0.0.1:{{port}}/bot{{TOKEN}}',
      variables: { port: { value: getPort(staging) } },
      tools: [buildToolAt('/sendMessage?key={{KEY}}&x=:x', { input_schema: { x: optional } })],
    });
    assert.deepEqual(formatFindings(warnings), [
      'tools[0].url: {{KEY}} has no value yet; set the secret before calling',
      'base_url: {{TOKEN}} has no value yet; set the secret before calling',
    ]);
    const unset = await toolhost.callTool(slug, key, 'get');
    assert.match(getResultText(unset), /the secret TOKEN has no value/);
    for (const [name, value, usedBy] of [
      ['TOKEN', '1:a/b?c', 'base_url'],
      ['KEY', 'k&=#ü', 'get: url'],
    ] as const) {
      const { status, body } = await setSecret(slug, name, value);
      assert.deepEqual([status, body.origins], [200, [staging.url]]);
      assert.deepEqual(body.used_by, [usedBy]);
    }
    assert.equal((await send(staging, slug)).url, '/bot1%3Aa%2Fb%3Fc/sendMessage?key=k%26%3D%23%C3%BC');
    const movedServer = await changeServer(slug, { variables: { port: { value: getPort(production) } } });
    assert.match(JSON.stringify(movedServer.warnings), /the secret KEY was set for [^"]*; set it again/);
    const refused = getResultText(await toolhost.callTool(slug, key, 'get'));
    assert.match(refused, /the secret TOKEN was set before this tool called/);
    assert.deepEqual([staging.take(), production.take()], [[], []]);
  });

  it('[conf 3] requires an API key for a server with a secret in a URL or a header for all tools', async () => {
    for (const config of [
      { tools: [buildToolAt(`${staging.url}/a?k={{KEY}}`)] },
      { tools: [buildToolAt(`${staging.url}/{{KEY}}/a`)] },
      { base_url: `${staging.url}/{{KEY}}`, tools: [buildToolAt('/a')] },
      { base_url: staging.url, headers: { 'X-Key': '{{KEY}}' }, tools: [buildToolAt('/a')] },
    ]) {
      const { slug } = await createServer(config);
      assert.equal((await getServer(slug)).access, 'api_key');
      const { status } = await toolhost.rpc(slug, callerToken, 'tools/call', { name: 'get', arguments: {} });
      assert.equal(status, 401);
    }
    const tools = [buildToolAt(`${staging.url}/a?k={{KEY}}`)];
    const { slug } = await createServer({ variables: { KEY: { value: 'x' } }, tools });
    assert.equal((await getServer(slug)).access, 'caller_token');
  });

  it('[conf 3] reports each mistake as a problem with its fix, once and at its own field', async () => {
    const tools = [buildToolAt('/a'), named('b', '/b')];
    const server = { tools, base_url: 'https://api.example' };
    const at = (url: string) => ({ tools: [buildToolAt(url)] });
    const authentication = { type: 'ApiKey', header: 'apikey' };
    const cases: [Json, ...RegExp[]][] = [
      [at('/a'), /^tools\[0\]\.url: begins with a slash, which requires base_url; set base_url/],
      [{ tools, base_url: '/v1' }, /^base_url: not a URL; allowed: https/],
      [{ tools, base_url: 'https://api.example/v1?x=1' }, /^base_url: has a query; allowed: /],
      [{ tools, base_url: 'https://api.example/v1#x' }, /^base_url: a request URL must not have a #fragment/],
      [{ tools, base_url: 'https://10.0.0.1/v1' }, /^base_url: /],
      [{ tools, base_url: 'https://u:p@api.example/v1' }, /^base_url: .*user name/],
      [
        { tools, base_url: 'https://{{HOST}}/v1' },
        /^base_url: {{HOST}} is in the host, where only variables are allowed/,
      ],
      [at('https://api.example:{{P}}/x'), /^tools\[0\]\.url: {{P}} is in the host/],
      [at('https://api.example/x?{{P}}=1'), /^tools\[0\]\.url: a secret is not allowed in a query name/],
      [{ tools, base_url: 'https://{{h}}/v1', variables: { h: { value: '169.254.169.254' } } }, /^base_url: /],
      [{ ...server, ...at('//evil.example/x') }, /^tools\[0\]\.url: begins with two slashes/],
      [{ ...at('{{api}}/x'), variables: { api: { value: 'http://192.168.1.1' } } }, /^tools\[0\]\.url: /],
      [
        { ...server, variables: { a: { value: '{{b}}' }, 'c-d': { value: 'x' } } },
        ...[/^variables\.a\.value: contains {{ or }}/, /^variables\.c-d: allowed as a name/],
      ],
      [
        { ...server, variables: { a: { value: 'x', enum: ['y', 'z'] } } },
        /^variables\.a\.value: found "x"; allowed by enum: "y", "z"$/,
      ],
      [
        { ...server, variables: { a: { valu: 'x' } } },
        ...[/^variables\.a\.value: required/, /^variables\.a\.valu: unknown field; did you mean `value`\?/],
      ],
      [
        { ...server, headers: { Host: 'x', 'X-A': '{{a b}}' } },
        ...[/^headers\.Host: this header is set by the service/, /^headers\.X-A: allowed as a placeholder: /],
      ],
      [
        { ...server, headers: { 'X-A': '{{a}}' }, variables: { a: { value: 'ü→' } } },
        /^headers\.X-A: allowed: one line of latin-1/,
      ],
      [{ ...server, headers: { apikey: 'x' }, authentication }, /^headers\.apikey: authentication sets this header/],
      [
        {
          ...server,
          headers: { 'x-a': '1' },
          tools: [buildToolAt('/a', { input_schema: { 'X-A': { ...text, in: 'header' } } })],
        },
        /^tools\[0\]\.input_schema\.X-A: this header is already set by headers, authentication, or another argument$/,
      ],
    ];
    for (const [config, ...expected] of cases) {
      const problems = await getProblems(config);
      assert.equal(problems.length, expected.length, problems.join('\n'));
      for (const [index, pattern] of expected.entries()) assert.match(problems[index] ?? '', pattern);
    }
  });

  it('[conf 3] treats a name as either a variable or a secret', async () => {
    const { slug, warnings } = await createServer({
      base_url: staging.url,
      variables: { A: { value: 'from-variable' }, unused: { value: '' } },
      tools: [buildToolAt('/x?a={{A}}')],
    });
    assert.deepEqual(warnings, [{ path: 'variables.unused', message: 'no {{unused}} refers to it' }]);
    const refused = await setSecret(slug, 'A', 'secret');
    assert.equal(refused.status, 409);
    assert.match(refused.text, /A is a variable of the server/);
    await changeServer(slug, { variables: null });
    assert.equal((await setSecret(slug, 'A', 'secret')).status, 200);
    const restored = await changeServer(slug, { variables: { A: { value: 'from-variable' } } });
    assert.match(JSON.stringify(restored.warnings), /is also the name of a stored secret/);
    assert.equal((await send(staging, slug, 'get', {}, callerToken)).url, '/x?a=from-variable');
  });

  it('[conf 3] interpolates variables and secrets into constants and bodies as text, encoded for their position', async () => {
    const input_schema = {
      account: { type: 'string', value: '{{account}}/{{KEY}}', in: 'query' },
      region: { type: 'string', value: '{{region}}', in: 'header', wire_name: 'X-Region' },
      nested: { type: 'object', value: { key: '{{KEY}}', list: ['{{account}}', 1] } },
    };
    const body_template = { account: '{{account}}', auth: { key: '{{KEY}}', text: 'k={{KEY}}; :q' }, q: ':q' };
    const { slug } = await createServer({
      base_url: staging.url,
      variables: { account: { value: 'a"b&c' }, region: { value: 'eu' } },
      tools: [
        buildToolAt('/post', { method: 'POST', input_schema }),
        named('template', '/template', { method: 'POST', body_template, input_schema: { q: text } }),
      ],
    });
    const secret = 'x"{{account}}:q';
    const set = await setSecret(slug, 'KEY', secret);
    const constants = ['get: input_schema.account.value', 'get: input_schema.nested.value'];
    assert.deepEqual(set.body.used_by, [...constants, 'template: body_template']);
    const { url, headers, body } = await send(staging, slug);
    assert.equal(url, `/post?account=${encodeURIComponent(`a"b&c/${secret}`)}`);
    assert.equal(headers['x-region'], 'eu');
    assert.deepEqual(JSON.parse(body.toString()), { nested: { key: secret, list: ['a"b&c', 1] } });
    const filled = await send(staging, slug, 'template', { q: 'given' });
    assert.deepEqual(JSON.parse(filled.body.toString()), {
      account: 'a"b&c',
      auth: { key: secret, text: `k=${secret}; given` },
      q: 'given',
    });
    const path = `/servers/${slug}/tools/template/preview`;
    const preview = await toolhost.rest('POST', path, { body: { arguments: { q: 'x' } } });
    assert.ok(!preview.text.includes('x\\"{{'), preview.text);
  });

  describe('with length limits after interpolation', () => {
    const V = { V: { value: 'v'.repeat(500) } };
    const repeatVariable = (count: number) => '{{V}}'.repeat(count);
    const createConstant = (count: number) => ({ input_schema: { a: { ...text, value: repeatVariable(count) } } });
    const tool = (more: Json = {}) => buildToolAt(`${staging.url}/thing`, more);
    const post = (more: Json = {}) => tool({ method: 'POST', ...more });
    const createTools = (length: number, createTool: (n: number) => Json) =>
      Array.from({ length }, (_, n) => ({ ...createTool(n), name: `tool_${n}` }));
    const createWithVariable = async (config: Json) => (await createServer({ variables: V, ...config })).slug;
    const getInterpolationProblems = (config: Json) => getProblems({ variables: V, ...config });
    const credentials = { type: 'ClientCredentials', client_id: 'me', client_secret: '{{S}}' };
    const formatTooLong = (length: number, max: number) =>
      `has ${length} characters after {{NAME}} is replaced; allowed: ${max}`;
    /** Checks how the first problem begins. */
    const assertFirst = async (config: Json, start: string) => {
      const [first = ''] = await getInterpolationProblems(config);
      assert.equal(first.slice(0, start.length), start);
    };

    it('[conf 3] reject a value that is too long in every field, and name the field', async () => {
      const longHeader = { headers: { 'x-0': repeatVariable(490) }, tools: [tool()] };
      const [inHeader] = await getInterpolationProblems(longHeader);
      assert.equal(inHeader, `headers.x-0: ${formatTooLong(245_000, 16_384)}`);
      const headers = Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`x-${n}`, repeatVariable(30)]));
      await assertFirst({ headers, tools: [tool()] }, 'headers: variables insert 75000 ');
      const url = `${staging.url}/${repeatVariable(5)}`;
      const tooLongUrl = formatTooLong(staging.url.length + 2501, 2048);
      const body_template = [{ a: repeatVariable(66) }, repeatVariable(66)];
      const toolCases: [Json, string][] = [
        [{ headers: { 'x-0': repeatVariable(33) } }, `headers.x-0: ${formatTooLong(16_500, 16_384)}`],
        [{ url }, `url: ${tooLongUrl}`],
        [createConstant(132), 'input_schema: variables insert 66000 characters; allowed: 65536'],
        [{ body_template }, 'body_template: variables insert 66000 characters'],
      ];
      for (const [more, expected] of toolCases) {
        const [found = '', ...others] = await getInterpolationProblems({ tools: [post(more)] });
        assert.deepEqual([others, found.slice(0, `tools[0].${expected}`.length)], [[], `tools[0].${expected}`]);
      }
      const credentialCases: [Json, string][] = [
        [{ token_url: url }, `token_url: ${tooLongUrl}`],
        [{ audience: repeatVariable(3) }, `audience: ${formatTooLong(1500, 1000)}`],
        [{ resource: repeatVariable(3) }, `resource: ${formatTooLong(1500, 1000)}`],
        [{ client_id: repeatVariable(2) }, `client_id: ${formatTooLong(1000, 500)}`],
        [{ scopes: ['a', repeatVariable(1)] }, `scopes[1]: ${formatTooLong(500, 200)}`],
        [{ extra_params: { a: repeatVariable(3) } }, `extra_params.a: ${formatTooLong(1500, 1000)}`],
      ];
      for (const [more, expected] of credentialCases) {
        const authentication = { ...credentials, token_url: `${staging.url}/token`, ...more };
        const problems = await getInterpolationProblems({ tools: [tool()], authentication });
        assert.deepEqual(problems, [`authentication.${expected}`]);
      }
      const view = (value: string) => ({
        tools: [post({ input_schema: { a: text } })],
        views: { one: { tools: [{ name: 'get', arguments: { a: value } }] } },
      });
      const [tooLong = ''] = await getInterpolationProblems(view(repeatVariable(132)));
      assert.match(tooLong, /^views\.one.*a: variables insert 66000 characters/);
      await createWithVariable({ ...view(repeatVariable(131)), headers: { 'x-0': repeatVariable(32) } });
    });

    it('[conf 3] reject a total that is too long, also when a tool is added', async () => {
      const createFullServer = (tools: number) => ({ tools: createTools(tools, () => post(createConstant(131))) });
      const slug = await createWithVariable(createFullServer(64));
      const totalProblem = 'variables and base_url insert 4257500 characters in total; allowed: 4194304';
      await assertFirst(createFullServer(65), `: ${totalProblem}`);
      const added = await toolhost.rest('POST', `/servers/${slug}/tools`, { body: post(createConstant(131)) });
      assert.deepEqual([added.status, added.text.includes(totalProblem)], [400, true], added.text);
      const base = { base_url: `${staging.url}/${'b'.repeat(1900)}` };
      await createWithVariable({ ...base, tools: createTools(300, (n) => buildToolAt(`/${n}`)) });
      const overLimit = { variables: { V: { value: '' } }, tools: createTools(51, () => post(createConstant(990))) };
      const placeholders = await getInterpolationProblems(overLimit);
      assert.deepEqual(placeholders, [': has 50490 placeholders {{NAME}} in total; allowed: 50000']);
    });

    it('[conf 3] reject a call in which secrets make a header or a credential too long', async () => {
      const long = '{{S}}{{S}}{{S}}';
      const authentication = { type: 'Bearer', token: long };
      const failingCases: [Json, RegExp][] = [
        [{ tools: [tool({ headers: { 'x-0': long } })] }, /header x-0 is longer than 16384 characters/],
        [{ tools: [tool()], authentication }, /token has more than 16384 characters/],
      ];
      for (const [config, expected] of failingCases) {
        const slug = await createWithVariable(config);
        await setSecret(slug, 'S', 's'.repeat(6000));
        const result = await toolhost.callTool(slug, key, 'get');
        assert.equal(result.isError, true);
        assert.match(getResultText(result), expected);
      }
      assert.deepEqual(staging.take(), []);
    });

    it('[sec M8] keep an error readable where a request contains a secret many times', async () => {
      const slug = await createWithVariable({ tools: [post({ body_template: Array(150).fill('{{S}}') })] });
      const secret = 'a-secret-of-this-test';
      await setSecret(slug, 'S', secret);
      const said = `no ${secret} here, ${'because of this and that. '.repeat(240)}`;
      staging.on('POST /thing', () => ({ status: 422, body: { said } }));
      const text = getResultText(await toolhost.callTool(slug, key, 'get'));
      staging.take();
      assert.match(text, /no \[redacted\] here, because of this and that/);
      assert.ok(!text.includes(secret));
    });
  });
});
