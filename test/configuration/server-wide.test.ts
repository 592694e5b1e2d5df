import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { toolAt } from '../support/configs.ts';
import { callerToken, textOf } from '../support/one-tool.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('base_url, headers, and variables of a server', () => {
  let staging: RecordingUpstream;
  let production: RecordingUpstream;
  let toolhost: TestToolhost;
  let key: string;
  let count = 0;
  before(async () => {
    [staging, production] = await Promise.all([startRecordingUpstream(), startRecordingUpstream()]);
    toolhost = await startToolhost({ egress: [staging.port, production.port] });
    key = await toolhost.key();
  });
  after(() => Promise.all([toolhost.stop(), staging.close(), production.close()]));

  const create = async (config: Json) => {
    const slug = `wide-${++count}`;
    const { body } = await toolhost.createServer({ name: 'Wide', slug, ...config });
    return { slug, warnings: body.warnings as Json[] };
  };
  const problemsOf = async (config: Json) => {
    const { status, body } = await toolhost.rest('POST', '/servers', {
      body: { name: 'Wide', slug: 'wide-refused', ...config },
    });
    assert.equal(status, 400, JSON.stringify(body));
    return (body.problems as { path: string; message: string }[]).map(({ path, message }) => `${path}: ${message}`);
  };
  const change = async (slug: string, body: Json) => {
    const reply = await toolhost.rest('PATCH', `/servers/${slug}`, { body });
    assert.equal(reply.status, 200, reply.text);
    return reply.body;
  };
  const call = async (slug: string, name = 'get', args: Json = {}, token = key) => {
    const result = await toolhost.callTool(slug, token, name, args);
    assert.notEqual(result.isError, true, textOf(result));
  };
  const only = (upstream: RecordingUpstream) => {
    const [request, ...more] = upstream.take();
    assert.deepEqual(more, []);
    return request ?? assert.fail('nothing was sent');
  };
  const port = (upstream: RecordingUpstream) => String(upstream.port);

  it('[conf 3] prepends base_url to a URL that begins with a slash, so one edit moves all tools', async () => {
    const { slug } = await create({
      base_url: `${staging.url}/v1/`,
      tools: [
        toolAt('/things/:id?x=:x', { input_schema: { id: { type: 'string' }, x: { type: 'string', optional: true } } }),
        { ...toolAt('/other?a=b'), name: 'other' },
        { ...toolAt(`${production.url}/elsewhere`), name: 'elsewhere' },
      ],
    });
    await call(slug, 'get', { id: 'a/b', x: 'y' });
    assert.equal(only(staging).url, '/v1/things/a%2Fb?x=y');
    await call(slug, 'other');
    assert.equal(only(staging).url, '/v1/other?a=b');
    await call(slug, 'elsewhere');
    assert.equal(only(production).url, '/elsewhere');
    await change(slug, { base_url: production.url });
    await call(slug, 'get', { id: '1' });
    assert.equal(only(production).url, '/things/1');
    assert.deepEqual(staging.take(), []);
  });

  it('[conf 3] interpolates variables into the host, path, query, and headers, and shows them', async () => {
    const { slug } = await create({
      base_url: 'http://127.0.0.1:{{port}}/{{ version }}',
      variables: {
        port: { value: port(staging), description: 'Where the API listens.', enum: [port(staging), port(production)] },
        version: { value: 'v2' },
        language: { value: 'de' },
        id: { value: '7' },
      },
      headers: { 'Accept-Language': '{{language}}-CH' },
      tools: [toolAt('/accounts/{{id}}/things?lang={{language}}', { headers: { 'X-Id': '{{id}}{{id}}' } })],
    });
    await call(slug);
    const { url, headers } = only(staging);
    assert.equal(url, '/v2/accounts/7/things?lang=de');
    assert.deepEqual([headers['accept-language'], headers['x-id']], ['de-CH', '77']);
    const { body } = await toolhost.rest('GET', `/servers/${slug}`);
    const variables = (body.config as { variables: Record<string, { value: string }> }).variables;
    assert.equal(variables.language?.value, 'de');
    await change(slug, { variables: { ...variables, port: { value: port(production) } } });
    await call(slug);
    assert.equal(only(production).url, '/v2/accounts/7/things?lang=de');
  });

  it('[conf 3] sends server headers with every tool, unless the tool has its own', async () => {
    const body = { input_schema: { a: { type: 'string', optional: true } } };
    const { slug } = await create({
      base_url: staging.url,
      headers: {
        'Notion-Version': '2022-06-28',
        accept: 'application/vnd.api+json',
        'Content-Type': 'application/vnd.api+json',
      },
      tools: [
        toolAt('/a'),
        { ...toolAt('/b', { headers: { notion_version: '2025-01-01', Accept: 'text/csv' } }), name: 'own' },
        { ...toolAt('/c', body), method: 'POST', name: 'post' },
      ],
    });
    const sent = async (name: string) => {
      await call(slug, name, {}, callerToken);
      const { headers } = only(staging);
      return [headers['notion-version'] ?? headers.notion_version, headers.accept, headers['content-type']];
    };
    assert.deepEqual(await sent('get'), ['2022-06-28', 'application/vnd.api+json', undefined]);
    assert.deepEqual(await sent('own'), ['2025-01-01', 'text/csv', undefined]);
    assert.deepEqual(await sent('post'), ['2022-06-28', 'application/vnd.api+json', 'application/vnd.api+json']);
  });

  it('[conf 3] interpolates a secret into a path segment and a query value, and never sends it to another origin', async () => {
    const { slug, warnings } = await create({
      base_url: 'http://127.0.0.1:{{port}}/bot{{TOKEN}}',
      variables: { port: { value: port(staging) } },
      tools: [toolAt('/sendMessage?key={{KEY}}&x=:x', { input_schema: { x: { type: 'string', optional: true } } })],
    });
    assert.deepEqual(
      warnings.map(({ path, message }) => `${path}: ${message}`),
      [
        'tools[0].url: {{KEY}} has no value yet; set the secret before calling',
        'base_url: {{TOKEN}} has no value yet; set the secret before calling',
      ],
    );
    const unset = await toolhost.callTool(slug, key, 'get');
    assert.match(textOf(unset), /the secret TOKEN has no value/);
    for (const [name, value] of [
      ['TOKEN', '1:a/b?c'],
      ['KEY', 'k&=#ü'],
    ] as const) {
      const { status, body } = await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
      assert.deepEqual([status, body.origins], [200, [staging.url]]);
      assert.deepEqual(body.used_by, name === 'TOKEN' ? ['base_url'] : ['get: url']);
    }
    await call(slug);
    assert.equal(only(staging).url, '/bot1%3Aa%2Fb%3Fc/sendMessage?key=k%26%3D%23%C3%BC');
    const moved = await change(slug, { variables: { port: { value: port(production) } } });
    assert.match(JSON.stringify(moved.warnings), /the secret KEY was set for [^"]*; set it again/);
    assert.match(textOf(await toolhost.callTool(slug, key, 'get')), /the secret TOKEN was set before this tool called/);
    assert.deepEqual([staging.take(), production.take()], [[], []]);
  });

  it('[conf 3] requires an API key for a server with a secret in a URL or a header for all tools', async () => {
    for (const config of [
      { tools: [toolAt(`${staging.url}/a?k={{KEY}}`)] },
      { tools: [toolAt(`${staging.url}/{{KEY}}/a`)] },
      { base_url: `${staging.url}/{{KEY}}`, tools: [toolAt('/a')] },
      { base_url: staging.url, headers: { 'X-Key': '{{KEY}}' }, tools: [toolAt('/a')] },
    ]) {
      const { slug } = await create(config);
      const { body } = await toolhost.rest('GET', `/servers/${slug}`);
      assert.equal((body.server as Json).access, 'api_key');
      const { status } = await toolhost.rpc(slug, callerToken, 'tools/call', { name: 'get', arguments: {} });
      assert.equal(status, 401);
    }
    const { slug } = await create({
      variables: { KEY: { value: 'x' } },
      tools: [toolAt(`${staging.url}/a?k={{KEY}}`)],
    });
    assert.equal(((await toolhost.rest('GET', `/servers/${slug}`)).body.server as Json).access, 'caller_token');
  });

  it('[conf 3] reports each mistake as a problem with its fix, once and at its own field', async () => {
    const tools = [toolAt('/a'), { ...toolAt('/b'), name: 'b' }];
    const cases: [Json, RegExp[]][] = [
      [{ tools: [toolAt('/a')] }, [/^tools\[0\]\.url: begins with a slash, which requires base_url; set base_url/]],
      [{ tools, base_url: '/v1' }, [/^base_url: not a URL; allowed: https/]],
      [{ tools, base_url: 'https://api.example/v1?x=1' }, [/^base_url: has a query; allowed: /]],
      [{ tools, base_url: 'https://api.example/v1#x' }, [/^base_url: a request URL must not have a #fragment/]],
      [{ tools, base_url: 'https://10.0.0.1/v1' }, [/^base_url: /]],
      [{ tools, base_url: 'https://u:p@api.example/v1' }, [/^base_url: .*user name/]],
      [
        { tools, base_url: 'https://{{HOST}}/v1' },
        [/^base_url: {{HOST}} is in the host, where only variables are allowed/],
      ],
      [{ tools: [toolAt('https://api.example:{{P}}/x')] }, [/^tools\[0\]\.url: {{P}} is in the host/]],
      [
        { tools: [toolAt('https://api.example/x?{{P}}=1')] },
        [/^tools\[0\]\.url: a secret is not allowed in a query name/],
      ],
      [{ tools, base_url: 'https://{{h}}/v1', variables: { h: { value: '169.254.169.254' } } }, [/^base_url: /]],
      [
        { tools: [toolAt('//evil.example/x')], base_url: 'https://api.example' },
        [/^tools\[0\]\.url: begins with two slashes/],
      ],
      [{ tools: [toolAt('{{api}}/x')], variables: { api: { value: 'http://192.168.1.1' } } }, [/^tools\[0\]\.url: /]],
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
      const problems = await problemsOf(config);
      assert.equal(problems.length, expected.length, problems.join('\n'));
      for (const [index, pattern] of expected.entries()) assert.match(problems[index] ?? '', pattern);
    }
    const inHeader = { input_schema: { 'X-A': { type: 'string', in: 'header' } } };
    assert.deepEqual(
      await problemsOf({ base_url: 'https://api.example', headers: { 'x-a': '1' }, tools: [toolAt('/a', inHeader)] }),
      ['tools[0].input_schema.X-A: this header is already set by headers, authentication, or another argument'],
    );
  });

  it('[conf 3] treats a name as either a variable or a secret', async () => {
    const { slug, warnings } = await create({
      base_url: staging.url,
      variables: { A: { value: 'from-variable' }, unused: { value: '' } },
      tools: [toolAt('/x?a={{A}}')],
    });
    assert.deepEqual(warnings, [{ path: 'variables.unused', message: 'no {{unused}} refers to it' }]);
    const refused = await toolhost.rest('PUT', `/servers/${slug}/secrets/A`, { body: { value: 'secret' } });
    assert.equal(refused.status, 409);
    assert.match(refused.text, /A is a variable of the server/);
    await change(slug, { variables: null });
    assert.equal((await toolhost.rest('PUT', `/servers/${slug}/secrets/A`, { body: { value: 'secret' } })).status, 200);
    const back = await change(slug, { variables: { A: { value: 'from-variable' } } });
    assert.match(JSON.stringify(back.warnings), /is also the name of a stored secret/);
    await call(slug, 'get', {}, callerToken);
    assert.equal(only(staging).url, '/x?a=from-variable');
  });

  it('[conf 3] interpolates variables and secrets into constants and bodies as text, encoded for their position', async () => {
    const input_schema = {
      account: { type: 'string', value: '{{account}}/{{KEY}}', in: 'query' },
      region: { type: 'string', value: '{{region}}', in: 'header', wire_name: 'X-Region' },
      nested: { type: 'object', value: { key: '{{KEY}}', list: ['{{account}}', 1] } },
    };
    const body_template = { account: '{{account}}', auth: { key: '{{KEY}}', text: 'k={{KEY}}; :q' }, q: ':q' };
    const { slug } = await create({
      base_url: staging.url,
      variables: { account: { value: 'a"b&c' }, region: { value: 'eu' } },
      tools: [
        { ...toolAt('/post', { input_schema }), method: 'POST' },
        {
          ...toolAt('/template', { body_template, input_schema: { q: { type: 'string' } } }),
          name: 'template',
          method: 'POST',
        },
      ],
    });
    const secret = 'x"{{account}}:q';
    const set = await toolhost.rest('PUT', `/servers/${slug}/secrets/KEY`, { body: { value: secret } });
    assert.deepEqual(set.body.used_by, [
      'get: input_schema.account.value',
      'get: input_schema.nested.value',
      'template: body_template',
    ]);
    await call(slug);
    const { url, headers, body } = only(staging);
    assert.equal(url, `/post?account=${encodeURIComponent(`a"b&c/${secret}`)}`);
    assert.equal(headers['x-region'], 'eu');
    assert.deepEqual(JSON.parse(body.toString()), { nested: { key: secret, list: ['a"b&c', 1] } });
    await call(slug, 'template', { q: 'given' });
    assert.deepEqual(JSON.parse(only(staging).body.toString()), {
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
    const times = (count: number) => '{{V}}'.repeat(count);
    const constant = (count: number) => ({ input_schema: { a: { type: 'string', value: times(count) } } });
    const tool = (more: Json = {}) => toolAt(`${staging.url}/thing`, more);
    const post = (more: Json = {}) => tool({ method: 'POST', ...more });
    const many = (length: number, make: (n: number) => Json) =>
      Array.from({ length }, (_, n) => ({ ...make(n), name: `tool_${n}` }));
    const filling = async (config: Json) => (await create({ variables: V, ...config })).slug;
    const problemsOfFilling = (config: Json) => problemsOf({ variables: V, ...config });
    const client = (more: Json) => ({
      tools: [tool()],
      authentication: {
        type: 'ClientCredentials',
        token_url: `${staging.url}/token`,
        client_id: 'me',
        client_secret: '{{S}}',
        ...more,
      },
    });
    const filled = (length: number, most: number) =>
      `has ${length} characters after {{NAME}} is replaced; allowed: ${most}`;

    it('[conf 3] reject a value that is too long in every field, and name the field', async () => {
      assert.deepEqual((await problemsOfFilling({ headers: { 'x-0': times(490) }, tools: [tool()] })).slice(0, 1), [
        `headers.x-0: ${filled(245_000, 16_384)}`,
      ]);
      const headers = Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`x-${n}`, times(30)]));
      assert.match(
        (await problemsOfFilling({ headers, tools: [tool()] }))[0] ?? '',
        /^headers: variables insert 75000 /,
      );
      const ofTool: [Json, string][] = [
        [{ headers: { 'x-0': times(33) } }, `headers.x-0: ${filled(16_500, 16_384)}`],
        [{ url: `${staging.url}/${times(5)}` }, `url: ${filled(staging.url.length + 2501, 2048)}`],
        [constant(132), 'input_schema: variables insert 66000 characters; allowed: 65536'],
        [{ body_template: [{ a: times(66) }, times(66)] }, 'body_template: variables insert 66000 characters'],
      ];
      for (const [more, expected] of ofTool) {
        const [found = '', ...others] = await problemsOfFilling({ tools: [post(more)] });
        assert.deepEqual([others, found.slice(0, `tools[0].${expected}`.length)], [[], `tools[0].${expected}`]);
      }
      const ofCredential: [Json, string][] = [
        [{ token_url: `${staging.url}/${times(5)}` }, `token_url: ${filled(staging.url.length + 2501, 2048)}`],
        [{ audience: times(3) }, `audience: ${filled(1500, 1000)}`],
        [{ resource: times(3) }, `resource: ${filled(1500, 1000)}`],
        [{ client_id: times(2) }, `client_id: ${filled(1000, 500)}`],
        [{ scopes: ['a', times(1)] }, `scopes[1]: ${filled(500, 200)}`],
        [{ extra_params: { a: times(3) } }, `extra_params.a: ${filled(1500, 1000)}`],
      ];
      for (const [more, expected] of ofCredential)
        assert.deepEqual(await problemsOfFilling(client(more)), [`authentication.${expected}`]);
      const view = (value: string) => ({
        tools: [post({ input_schema: { a: { type: 'string' } } })],
        views: { one: { tools: [{ name: 'get', arguments: { a: value } }] } },
      });
      assert.match(
        (await problemsOfFilling(view(times(132))))[0] ?? '',
        /^views\.one.*a: variables insert 66000 characters/,
      );
      await filling({ ...view(times(131)), headers: { 'x-0': times(32) } });
    });

    it('[conf 3] reject a total that is too long, also when a tool is added', async () => {
      const full = (tools: number) => ({ tools: many(tools, () => post(constant(131))) });
      const slug = await filling(full(64));
      const whole = 'variables and base_url insert 4257500 characters in total; allowed: 4194304';
      assert.ok((await problemsOfFilling(full(65)))[0]?.startsWith(`: ${whole}`));
      const added = await toolhost.rest('POST', `/servers/${slug}/tools`, { body: post(constant(131)) });
      assert.deepEqual([added.status, added.text.includes(whole)], [400, true], added.text);
      const base = { base_url: `${staging.url}/${'b'.repeat(1900)}` };
      await filling({ ...base, tools: many(300, (n) => toolAt(`/${n}`)) });
      const crowded = { variables: { V: { value: '' } }, tools: many(51, () => post(constant(990))) };
      assert.deepEqual(await problemsOfFilling(crowded), [
        ': has 50490 placeholders {{NAME}} in total; allowed: 50000',
      ]);
    });

    it('[conf 3] reject a call in which secrets make a header or a credential too long', async () => {
      const secrets = { S: 's'.repeat(6000) };
      const failing: [Json, RegExp][] = [
        [{ tools: [tool({ headers: { 'x-0': '{{S}}{{S}}{{S}}' } })] }, /header x-0 is longer than 16384 characters/],
        [
          { tools: [tool()], authentication: { type: 'Bearer', token: '{{S}}{{S}}{{S}}' } },
          /token has more than 16384 characters/,
        ],
      ];
      for (const [config, expected] of failing) {
        const slug = await filling(config);
        for (const [name, value] of Object.entries(secrets))
          await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
        const result = await toolhost.callTool(slug, key, 'get');
        assert.equal(result.isError, true);
        assert.match(textOf(result), expected);
      }
      assert.deepEqual(staging.take(), []);
    });

    it('[sec M8] keep an error readable where a request contains a secret many times', async () => {
      const slug = await filling({ tools: [post({ body_template: Array(150).fill('{{S}}') })] });
      const body = { value: 'a-secret-of-this-test' };
      await toolhost.rest('PUT', `/servers/${slug}/secrets/S`, { body });
      const said = `no ${body.value} here, ${'because of this and that. '.repeat(240)}`;
      staging.on('POST /thing', () => ({ status: 422, body: { said } }));
      const text = textOf(await toolhost.callTool(slug, key, 'get'));
      staging.take();
      assert.match(text, /no \[redacted\] here, because of this and that/);
      assert.ok(!text.includes(body.value));
    });
  });
});
