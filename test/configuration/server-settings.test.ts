import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { callerToken, getResultText } from '../support/one-tool.ts';
import { text } from '../support/schemas.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

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
  const getProblems = async (config: Json) => {
    const { status, body } = await toolhost.rest('POST', '/servers', {
      body: { name: 'Wide', slug: 'wide-refused', ...config },
    });
    assert.equal(status, 400, JSON.stringify(body));
    return (body.problems as { path: string; message: string }[]).map(({ path, message }) => `${path}: ${message}`);
  };
  const changeServer = async (slug: string, body: Json) => {
    const reply = await toolhost.rest('PATCH', `/servers/${slug}`, { body });
    assert.equal(reply.status, 200, reply.text);
    return reply.body;
  };
  const callTool = async (slug: string, name = 'get', args: Json = {}, token = key) => {
    const result = await toolhost.callTool(slug, token, name, args);
    assert.notEqual(result.isError, true, getResultText(result));
  };
  const takeOnlyRequest = (upstream: RecordingUpstream) => {
    const [request, ...more] = upstream.take();
    assert.deepEqual(more, []);
    return request ?? assert.fail('nothing was sent');
  };
  const getPort = (upstream: RecordingUpstream) => String(upstream.port);

  it('[conf 3] prepends base_url to a URL that begins with a slash, so one edit moves all tools', async () => {
    const { slug } = await createServer({
      base_url: `${staging.url}/v1/`,
      tools: [
        buildToolAt('/things/:id?x=:x', { input_schema: { id: text, x: { type: 'string', optional: true } } }),
        { ...buildToolAt('/other?a=b'), name: 'other' },
        { ...buildToolAt(`${production.url}/elsewhere`), name: 'elsewhere' },
      ],
    });
    await callTool(slug, 'get', { id: 'a/b', x: 'y' });
    assert.equal(takeOnlyRequest(staging).url, '/v1/things/a%2Fb?x=y');
    await callTool(slug, 'other');
    assert.equal(takeOnlyRequest(staging).url, '/v1/other?a=b');
    await callTool(slug, 'elsewhere');
    assert.equal(takeOnlyRequest(production).url, '/elsewhere');
    await changeServer(slug, { base_url: production.url });
    await callTool(slug, 'get', { id: '1' });
    assert.equal(takeOnlyRequest(production).url, '/things/1');
    assert.deepEqual(staging.take(), []);
  });

  it('[conf 3] interpolates variables into the host, path, query, and headers, and shows them', async () => {
    const { slug } = await createServer({
      base_url: 'http://127.0.0.1:{{port}}/{{ version }}',
      variables: {
        port: {
          value: getPort(staging),
          description: 'Where the API listens.',
          enum: [getPort(staging), getPort(production)],
        },
        version: { value: 'v2' },
        language: { value: 'de' },
        id: { value: '7' },
      },
      headers: { 'Accept-Language': '{{language}}-CH' },
      tools: [buildToolAt('/accounts/{{id}}/things?lang={{language}}', { headers: { 'X-Id': '{{id}}{{id}}' } })],
    });
    await callTool(slug);
    const { url, headers } = takeOnlyRequest(staging);
    assert.equal(url, '/v2/accounts/7/things?lang=de');
    assert.deepEqual([headers['accept-language'], headers['x-id']], ['de-CH', '77']);
    const { body } = await toolhost.rest('GET', `/servers/${slug}`);
    const variables = (body.config as { variables: Record<string, { value: string }> }).variables;
    assert.equal(variables.language?.value, 'de');
    await changeServer(slug, { variables: { ...variables, port: { value: getPort(production) } } });
    await callTool(slug);
    assert.equal(takeOnlyRequest(production).url, '/v2/accounts/7/things?lang=de');
  });

  it('[conf 3] sends server headers with every tool, unless the tool has its own', async () => {
    const body = { input_schema: { a: { type: 'string', optional: true } } };
    const { slug } = await createServer({
      base_url: staging.url,
      headers: {
        'Notion-Version': '2022-06-28',
        accept: 'application/vnd.api+json',
        'Content-Type': 'application/vnd.api+json',
      },
      tools: [
        buildToolAt('/a'),
        { ...buildToolAt('/b', { headers: { notion_version: '2025-01-01', Accept: 'text/csv' } }), name: 'own' },
        { ...buildToolAt('/c', body), method: 'POST', name: 'post' },
      ],
    });
    const sendAndGetHeaders = async (name: string) => {
      await callTool(slug, name, {}, callerToken);
      const { headers } = takeOnlyRequest(staging);
      return [headers['notion-version'] ?? headers.notion_version, headers.accept, headers['content-type']];
    };
    assert.deepEqual(await sendAndGetHeaders('get'), ['2022-06-28', 'application/vnd.api+json', undefined]);
    assert.deepEqual(await sendAndGetHeaders('own'), ['2025-01-01', 'text/csv', undefined]);
    assert.deepEqual(await sendAndGetHeaders('post'), [
      '2022-06-28',
      'application/vnd.api+json',
      'application/vnd.api+json',
    ]);
  });

  it('[conf 3] interpolates a secret into a path segment and a query value, and never sends it to another origin', async () => {
    const { slug, warnings } = await createServer({
      base_url: 'http://127.0.0.1:{{port}}/bot{{TOKEN}}',
      variables: { port: { value: getPort(staging) } },
      tools: [
        buildToolAt('/sendMessage?key={{KEY}}&x=:x', { input_schema: { x: { type: 'string', optional: true } } }),
      ],
    });
    assert.deepEqual(
      warnings.map(({ path, message }) => `${path}: ${message}`),
      [
        'tools[0].url: {{KEY}} has no value yet; set the secret before calling',
        'base_url: {{TOKEN}} has no value yet; set the secret before calling',
      ],
    );
    const unset = await toolhost.callTool(slug, key, 'get');
    assert.match(getResultText(unset), /the secret TOKEN has no value/);
    for (const [name, value] of [
      ['TOKEN', '1:a/b?c'],
      ['KEY', 'k&=#ü'],
    ] as const) {
      const { status, body } = await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
      assert.deepEqual([status, body.origins], [200, [staging.url]]);
      assert.deepEqual(body.used_by, name === 'TOKEN' ? ['base_url'] : ['get: url']);
    }
    await callTool(slug);
    assert.equal(takeOnlyRequest(staging).url, '/bot1%3Aa%2Fb%3Fc/sendMessage?key=k%26%3D%23%C3%BC');
    const movedServer = await changeServer(slug, { variables: { port: { value: getPort(production) } } });
    assert.match(JSON.stringify(movedServer.warnings), /the secret KEY was set for [^"]*; set it again/);
    assert.match(
      getResultText(await toolhost.callTool(slug, key, 'get')),
      /the secret TOKEN was set before this tool called/,
    );
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
      const { body } = await toolhost.rest('GET', `/servers/${slug}`);
      assert.equal((body.server as Json).access, 'api_key');
      const { status } = await toolhost.rpc(slug, callerToken, 'tools/call', { name: 'get', arguments: {} });
      assert.equal(status, 401);
    }
    const { slug } = await createServer({
      variables: { KEY: { value: 'x' } },
      tools: [buildToolAt(`${staging.url}/a?k={{KEY}}`)],
    });
    assert.equal(((await toolhost.rest('GET', `/servers/${slug}`)).body.server as Json).access, 'caller_token');
  });

  it('[conf 3] reports each mistake as a problem with its fix, once and at its own field', async () => {
    const tools = [buildToolAt('/a'), { ...buildToolAt('/b'), name: 'b' }];
    const cases: [Json, RegExp[]][] = [
      [
        { tools: [buildToolAt('/a')] },
        [/^tools\[0\]\.url: begins with a slash, which requires base_url; set base_url/],
      ],
      [{ tools, base_url: '/v1' }, [/^base_url: not a URL; allowed: https/]],
      [{ tools, base_url: 'https://api.example/v1?x=1' }, [/^base_url: has a query; allowed: /]],
      [{ tools, base_url: 'https://api.example/v1#x' }, [/^base_url: a request URL must not have a #fragment/]],
      [{ tools, base_url: 'https://10.0.0.1/v1' }, [/^base_url: /]],
      [{ tools, base_url: 'https://u:p@api.example/v1' }, [/^base_url: .*user name/]],
      [
        { tools, base_url: 'https://{{HOST}}/v1' },
        [/^base_url: {{HOST}} is in the host, where only variables are allowed/],
      ],
      [{ tools: [buildToolAt('https://api.example:{{P}}/x')] }, [/^tools\[0\]\.url: {{P}} is in the host/]],
      [
        { tools: [buildToolAt('https://api.example/x?{{P}}=1')] },
        [/^tools\[0\]\.url: a secret is not allowed in a query name/],
      ],
      [{ tools, base_url: 'https://{{h}}/v1', variables: { h: { value: '169.254.169.254' } } }, [/^base_url: /]],
      [
        { tools: [buildToolAt('//evil.example/x')], base_url: 'https://api.example' },
        [/^tools\[0\]\.url: begins with two slashes/],
      ],
      [
        { tools: [buildToolAt('{{api}}/x')], variables: { api: { value: 'http://192.168.1.1' } } },
        [/^tools\[0\]\.url: /],
      ],
      [
        { tools, base_url: 'https://api.example', variables: { a: { value: '{{b}}' }, 'c-d': { value: 'x' } } },
        [/^variables\.a\.value: contains {{ or }}/, /^variables\.c-d: allowed as a name/],
      ],
      [
        { tools, base_url: 'https://api.example', variables: { a: { value: 'x', enum: ['y', 'z'] } } },
        [/^variables\.a\.value: found "x"; allowed by enum: "y", "z"$/],
      ],
      [
        { tools, base_url: 'https://api.example', variables: { a: { valu: 'x' } } },
        [/^variables\.a\.value: required/, /^variables\.a\.valu: unknown field; did you mean `value`\?/],
      ],
      [
        { tools, base_url: 'https://api.example', headers: { Host: 'x', 'X-A': '{{a b}}' } },
        [/^headers\.Host: this header is set by the service/, /^headers\.X-A: allowed as a placeholder: /],
      ],
      [
        { tools, base_url: 'https://api.example', headers: { 'X-A': '{{a}}' }, variables: { a: { value: 'ü→' } } },
        [/^headers\.X-A: allowed: one line of latin-1/],
      ],
      [
        {
          tools,
          base_url: 'https://api.example',
          headers: { apikey: 'x' },
          authentication: { type: 'ApiKey', header: 'apikey' },
        },
        [/^headers\.apikey: authentication sets this header/],
      ],
    ];
    for (const [config, expected] of cases) {
      const problems = await getProblems(config);
      assert.equal(problems.length, expected.length, problems.join('\n'));
      for (const [index, pattern] of expected.entries()) assert.match(problems[index] ?? '', pattern);
    }
    const inHeader = { input_schema: { 'X-A': { type: 'string', in: 'header' } } };
    assert.deepEqual(
      await getProblems({
        base_url: 'https://api.example',
        headers: { 'x-a': '1' },
        tools: [buildToolAt('/a', inHeader)],
      }),
      ['tools[0].input_schema.X-A: this header is already set by headers, authentication, or another argument'],
    );
  });

  it('[conf 3] treats a name as either a variable or a secret', async () => {
    const { slug, warnings } = await createServer({
      base_url: staging.url,
      variables: { A: { value: 'from-variable' }, unused: { value: '' } },
      tools: [buildToolAt('/x?a={{A}}')],
    });
    assert.deepEqual(warnings, [{ path: 'variables.unused', message: 'no {{unused}} refers to it' }]);
    const refused = await toolhost.rest('PUT', `/servers/${slug}/secrets/A`, { body: { value: 'secret' } });
    assert.equal(refused.status, 409);
    assert.match(refused.text, /A is a variable of the server/);
    await changeServer(slug, { variables: null });
    assert.equal((await toolhost.rest('PUT', `/servers/${slug}/secrets/A`, { body: { value: 'secret' } })).status, 200);
    const restored = await changeServer(slug, { variables: { A: { value: 'from-variable' } } });
    assert.match(JSON.stringify(restored.warnings), /is also the name of a stored secret/);
    await callTool(slug, 'get', {}, callerToken);
    assert.equal(takeOnlyRequest(staging).url, '/x?a=from-variable');
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
        { ...buildToolAt('/post', { input_schema }), method: 'POST' },
        { ...buildToolAt('/template', { body_template, input_schema: { q: text } }), name: 'template', method: 'POST' },
      ],
    });
    const secret = 'x"{{account}}:q';
    const set = await toolhost.rest('PUT', `/servers/${slug}/secrets/KEY`, { body: { value: secret } });
    assert.deepEqual(set.body.used_by, [
      'get: input_schema.account.value',
      'get: input_schema.nested.value',
      'template: body_template',
    ]);
    await callTool(slug);
    const { url, headers, body } = takeOnlyRequest(staging);
    assert.equal(url, `/post?account=${encodeURIComponent(`a"b&c/${secret}`)}`);
    assert.equal(headers['x-region'], 'eu');
    assert.deepEqual(JSON.parse(body.toString()), { nested: { key: secret, list: ['a"b&c', 1] } });
    await callTool(slug, 'template', { q: 'given' });
    assert.deepEqual(JSON.parse(takeOnlyRequest(staging).body.toString()), {
      account: 'a"b&c',
      auth: { key: secret, text: `k=${secret}; given` },
      q: 'given',
    });
    const preview = await toolhost.rest('POST', `/servers/${slug}/tools/template/preview`, {
      body: { arguments: { q: 'x' } },
    });
    assert.ok(!preview.text.includes('x\\"{{'), preview.text);
  });

  describe('with length limits after interpolation', () => {
    const V = { V: { value: 'v'.repeat(500) } };
    const repeatVariable = (count: number) => '{{V}}'.repeat(count);
    const createConstant = (count: number) => ({
      input_schema: { a: { type: 'string', value: repeatVariable(count) } },
    });
    const tool = (more: Json = {}) => buildToolAt(`${staging.url}/thing`, more);
    const post = (more: Json = {}) => tool({ method: 'POST', ...more });
    const createTools = (length: number, createTool: (n: number) => Json) =>
      Array.from({ length }, (_, n) => ({ ...createTool(n), name: `tool_${n}` }));
    const createWithVariable = async (config: Json) => (await createServer({ variables: V, ...config })).slug;
    const getInterpolationProblems = (config: Json) => getProblems({ variables: V, ...config });
    const createClientCredentials = (more: Json) => ({
      tools: [tool()],
      authentication: {
        type: 'ClientCredentials',
        token_url: `${staging.url}/token`,
        client_id: 'me',
        client_secret: '{{S}}',
        ...more,
      },
    });
    const formatTooLong = (length: number, max: number) =>
      `has ${length} characters after {{NAME}} is replaced; allowed: ${max}`;

    it('[conf 3] reject a value that is too long in every field, and name the field', async () => {
      assert.deepEqual(
        (await getInterpolationProblems({ headers: { 'x-0': repeatVariable(490) }, tools: [tool()] })).slice(0, 1),
        [`headers.x-0: ${formatTooLong(245_000, 16_384)}`],
      );
      const headers = Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`x-${n}`, repeatVariable(30)]));
      assert.match(
        (await getInterpolationProblems({ headers, tools: [tool()] }))[0] ?? '',
        /^headers: variables insert 75000 /,
      );
      const toolCases: [Json, string][] = [
        [{ headers: { 'x-0': repeatVariable(33) } }, `headers.x-0: ${formatTooLong(16_500, 16_384)}`],
        [{ url: `${staging.url}/${repeatVariable(5)}` }, `url: ${formatTooLong(staging.url.length + 2501, 2048)}`],
        [createConstant(132), 'input_schema: variables insert 66000 characters; allowed: 65536'],
        [
          { body_template: [{ a: repeatVariable(66) }, repeatVariable(66)] },
          'body_template: variables insert 66000 characters',
        ],
      ];
      for (const [more, expected] of toolCases) {
        const [found = '', ...others] = await getInterpolationProblems({ tools: [post(more)] });
        assert.deepEqual([others, found.slice(0, `tools[0].${expected}`.length)], [[], `tools[0].${expected}`]);
      }
      const credentialCases: [Json, string][] = [
        [
          { token_url: `${staging.url}/${repeatVariable(5)}` },
          `token_url: ${formatTooLong(staging.url.length + 2501, 2048)}`,
        ],
        [{ audience: repeatVariable(3) }, `audience: ${formatTooLong(1500, 1000)}`],
        [{ resource: repeatVariable(3) }, `resource: ${formatTooLong(1500, 1000)}`],
        [{ client_id: repeatVariable(2) }, `client_id: ${formatTooLong(1000, 500)}`],
        [{ scopes: ['a', repeatVariable(1)] }, `scopes[1]: ${formatTooLong(500, 200)}`],
        [{ extra_params: { a: repeatVariable(3) } }, `extra_params.a: ${formatTooLong(1500, 1000)}`],
      ];
      for (const [more, expected] of credentialCases)
        assert.deepEqual(await getInterpolationProblems(createClientCredentials(more)), [`authentication.${expected}`]);
      const view = (value: string) => ({
        tools: [post({ input_schema: { a: text } })],
        views: { one: { tools: [{ name: 'get', arguments: { a: value } }] } },
      });
      assert.match(
        (await getInterpolationProblems(view(repeatVariable(132))))[0] ?? '',
        /^views\.one.*a: variables insert 66000 characters/,
      );
      await createWithVariable({ ...view(repeatVariable(131)), headers: { 'x-0': repeatVariable(32) } });
    });

    it('[conf 3] reject a total that is too long, also when a tool is added', async () => {
      const createFullServer = (tools: number) => ({ tools: createTools(tools, () => post(createConstant(131))) });
      const slug = await createWithVariable(createFullServer(64));
      const totalProblem = 'variables and base_url insert 4257500 characters in total; allowed: 4194304';
      assert.ok((await getInterpolationProblems(createFullServer(65)))[0]?.startsWith(`: ${totalProblem}`));
      const added = await toolhost.rest('POST', `/servers/${slug}/tools`, { body: post(createConstant(131)) });
      assert.deepEqual([added.status, added.text.includes(totalProblem)], [400, true], added.text);
      const base = { base_url: `${staging.url}/${'b'.repeat(1900)}` };
      await createWithVariable({ ...base, tools: createTools(300, (n) => buildToolAt(`/${n}`)) });
      const overLimit = { variables: { V: { value: '' } }, tools: createTools(51, () => post(createConstant(990))) };
      assert.deepEqual(await getInterpolationProblems(overLimit), [
        ': has 50490 placeholders {{NAME}} in total; allowed: 50000',
      ]);
    });

    it('[conf 3] reject a call in which secrets make a header or a credential too long', async () => {
      const secrets = { S: 's'.repeat(6000) };
      const failingCases: [Json, RegExp][] = [
        [{ tools: [tool({ headers: { 'x-0': '{{S}}{{S}}{{S}}' } })] }, /header x-0 is longer than 16384 characters/],
        [
          { tools: [tool()], authentication: { type: 'Bearer', token: '{{S}}{{S}}{{S}}' } },
          /token has more than 16384 characters/,
        ],
      ];
      for (const [config, expected] of failingCases) {
        const slug = await createWithVariable(config);
        for (const [name, value] of Object.entries(secrets))
          await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
        const result = await toolhost.callTool(slug, key, 'get');
        assert.equal(result.isError, true);
        assert.match(getResultText(result), expected);
      }
      assert.deepEqual(staging.take(), []);
    });

    it('[sec M8] keep an error readable where a request contains a secret many times', async () => {
      const slug = await createWithVariable({ tools: [post({ body_template: Array(150).fill('{{S}}') })] });
      const body = { value: 'a-secret-of-this-test' };
      await toolhost.rest('PUT', `/servers/${slug}/secrets/S`, { body });
      const said = `no ${body.value} here, ${'because of this and that. '.repeat(240)}`;
      staging.on('POST /thing', () => ({ status: 422, body: { said } }));
      const text = getResultText(await toolhost.callTool(slug, key, 'get'));
      staging.take();
      assert.match(text, /no \[redacted\] here, because of this and that/);
      assert.ok(!text.includes(body.value));
    });
  });
});
