import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getOutput } from '../support/oauth/management-agent.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixture.ts';
import {
  buildServerConfig,
  buildToolConfig,
  checkConfiguration,
  findToolProblems,
  oauthConfig,
} from '../support/valid-configs.ts';

type Problem = { path: string; message: string };

/** Ten different mistakes, and how each is reported. */
const tenMistakes: Json = {
  name: '',
  slug: 'Not A Slug',
  descripton: 'misspelt',
  authentication: { type: 'bearer' },
  oauth: { ...oauthConfig, scope: ['a'] },
  tools: [
    buildToolConfig({ method: 'TRACE' }),
    buildToolConfig({ name: 'get thing', timeout_ms: 20_001 }),
    buildToolConfig({ name: 'third', metod: 'GET', url: 'https://api.example.com/:id' }),
    buildToolConfig({ name: 'fourth', headers: { Host: 'other.example.com' } }),
  ],
};
const tenReports = [
  'name: found ""; allowed: at least 1 character',
  'slug: found "Not A Slug"; allowed: 3 to 63 lower-case letters and digits, with single hyphens between them',
  'descripton: unknown field; did you mean `description`?',
  'authentication.type: found "bearer"; allowed: "Bearer", "ApiKey", "Basic", "QueryParam", "Cookie", "ClientCredentials", "AwsSigV4"',
  'oauth.scope: unknown field; did you mean `scopes`?',
  'tools[0].method: found "TRACE"; allowed: GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS, QUERY, PROPFIND, REPORT, SEARCH, COPY, MOVE, or another HTTP method except CONNECT and TRACE',
  'tools[1].name: found "get thing"; allowed: 1 to 64 letters, digits, _ . -',
  'tools[1].timeout_ms: found 20001; allowed: at most 20000',
  'tools[2].metod: unknown field; did you mean `method`?',
  'tools[2].url: `:id` looks like a token, but input_schema has no such argument',
  'tools[3].headers.Host: this header is set by the service or by HTTP itself; remove it',
];

describe('a configuration', () => {
  const toolhost = useFixture(startToolhost);

  const getProblems = (fields: Json, more?: Json) => findToolProblems(toolhost, fields, more);
  const checkConfig = (config: Json) => checkConfiguration(toolhost, config);
  const getSlugs = async () => {
    const { body } = await toolhost.rest('GET', '/servers');
    return (body.servers as { slug: string }[]).map(({ slug }) => slug);
  };

  it('[behaviour Configuration] with ten mistakes is rejected with all of them, and nothing is stored', async () => {
    const { status, headers, body } = await toolhost.rest('POST', '/servers', { body: tenMistakes });
    assert.equal(status, 400);
    assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/);
    const found = (body.problems as Problem[]).map(({ path, message }) => `${path}: ${message}`);
    assert.deepEqual(found.sort(), [...tenReports].sort());
    const partly = buildServerConfig({
      slug: 'partly-valid',
      tools: [buildToolConfig(), buildToolConfig({ name: 'bad name' })],
    });
    assert.equal((await toolhost.rest('POST', '/servers', { body: partly })).status, 400);
    assert.deepEqual(await getSlugs(), []);
  });

  it('[behaviour Configuration] is validated alike by checkMcpServer and by the tools of the management server', async () => {
    assert.deepEqual((await checkConfig(tenMistakes)).problems.sort(), [...tenReports].sort());
    const result = await toolhost.callTool('manage', await toolhost.createKey(), 'createMcpServer', tenMistakes);
    assert.equal(result.isError, true);
    for (const report of tenReports) assert.ok(result.content[0]?.text?.includes(`- ${report}`), report);
    const checked = await toolhost.callTool(
      'manage',
      await toolhost.createKey(),
      'checkMcpServer',
      buildServerConfig(),
    );
    assert.deepEqual(getOutput(checked), { valid: true, problems: [], warnings: [], access: 'caller_token' });
    assert.deepEqual(await getSlugs(), []);
  });

  it('[behaviour Configuration] must have its required fields, each of the right type', async () => {
    assert.deepEqual((await checkConfig({})).problems.sort(), [
      'name: required; allowed: a string',
      'slug: required; allowed: a string',
      'tools: required; allowed: an array',
    ]);
    assert.deepEqual(await checkConfig({ name: 'x', slug: [5], tools: {} }).then(({ problems }) => problems.sort()), [
      'slug: found an array of 1; allowed: a string',
      'tools: found an object; allowed: an array',
    ]);
    const { problems } = await checkConfig(buildServerConfig({ tools: [{}, null] }));
    assert.deepEqual(problems.sort(), [
      'tools[0].description: required; allowed: a string',
      'tools[0].method: required; allowed: a string',
      'tools[0].name: required; allowed: a string',
      'tools[0].url: required; allowed: a string',
      'tools[1]: found null; allowed: an object',
    ]);
  });

  it('[sec E2] accepts lower-case slugs of 3 to 63 characters and no reserved ones', async () => {
    const good = ['abc', 'a-b', '123', 'a1-b2-c3', 'x'.repeat(63)];
    for (const slug of good) assert.equal((await checkConfig(buildServerConfig({ slug }))).valid, true, slug);
    const bad = [
      'ab',
      'x'.repeat(64),
      'Abc',
      'a_b',
      'a--b',
      '-ab',
      'ab-',
      'a b',
      'ab%41',
      'äbc',
      'аpi',
      'abc\n',
      '..',
      '',
    ];
    for (const slug of bad) {
      const { problems } = await checkConfig(buildServerConfig({ slug }));
      assert.match(problems.join(), /^slug: found .*; allowed: 3 to 63 lower-case letters/s, JSON.stringify(slug));
    }
    for (const slug of ['manage', 'api', 'admin', 'login', 'oauth', 'well-known', 'health']) {
      assert.deepEqual((await checkConfig(buildServerConfig({ slug }))).problems, [
        `slug: "${slug}" is reserved; choose another`,
      ]);
    }
  });

  it('[sec E2] assigns a slug once and permanently, in any case and workspace', async () => {
    await toolhost.createServer(buildServerConfig({ slug: 'only-once' }));
    const repeated = await toolhost.rest('POST', '/servers', { body: buildServerConfig({ slug: 'only-once' }) });
    assert.equal(repeated.status, 409);
    assert.deepEqual((repeated.body.problems as Problem[])[0]?.path, 'slug');
    assert.equal(
      (await toolhost.rest('POST', '/servers', { body: buildServerConfig({ slug: 'Only-Once' }) })).status,
      400,
    );
    assert.equal((await toolhost.rest('DELETE', '/servers/only-once')).status, 200);
    assert.equal(
      (await toolhost.rest('POST', '/servers', { body: buildServerConfig({ slug: 'only-once' }) })).status,
      409,
    );
    const key = await toolhost.createKey({ workspace: 'another' });
    const elsewhere = await toolhost.rest('POST', '/servers', { key, body: buildServerConfig({ slug: 'only-once' }) });
    assert.equal(elsewhere.status, 409);
  });

  it('[behaviour Configuration] has limits: lengths of name and description, 1,000 tools, unique tool names', async () => {
    assert.equal(
      (await checkConfig(buildServerConfig({ name: 'n'.repeat(100), description: 'd'.repeat(2000) }))).valid,
      true,
    );
    const { problems } = await checkConfig(buildServerConfig({ name: 'n'.repeat(101), description: 'd'.repeat(2001) }));
    assert.equal(problems.length, 2);
    assert.match(problems[0] ?? '', /^name: found "n+…"; allowed: at most 100 characters$/);
    assert.match(problems[1] ?? '', /^description: found "d+…"; allowed: at most 2000 characters$/);
    const tools = Array.from({ length: 1001 }, (_, i) => buildToolConfig({ name: `t${i}` }));
    assert.deepEqual((await checkConfig(buildServerConfig({ tools }))).problems, [
      'tools: 1001 tools; allowed: 1000; split them into several servers, or ask the operator for a higher quota',
    ]);
    assert.equal((await checkConfig(buildServerConfig({ tools: tools.slice(1) }))).valid, true);
    const twice = [buildToolConfig(), buildToolConfig({ name: 'other' }), buildToolConfig()];
    assert.deepEqual((await checkConfig(buildServerConfig({ tools: twice }))).problems, [
      'tools[2].name: "get_thing" is already the name of tools[0]',
    ]);
    assert.match(
      (await checkConfig(buildServerConfig({ name: 'a\u202eb' }))).problems.join(),
      /^name: .*invisible character/,
    );
  });

  it('[behaviour Configuration] accepts absent optional fields, and any case of method', async () => {
    await toolhost.createServer(
      buildServerConfig({ slug: 'forgiven', tools: [buildToolConfig({ method: 'dElEtE' })] }),
    );
    const { body } = await toolhost.rest('GET', '/servers/forgiven');
    const [tool] = (body.config as { tools: Json[] }).tools;
    assert.deepEqual(tool, {
      ...buildToolConfig({ method: 'DELETE' }),
      headers: {},
      input_schema: {},
      response_transform: '.',
      timeout_ms: 10_000,
    });
  });

  it('[behaviour Configuration] accepts timeouts of 1 to 20,000 ms, and rejects larger ones instead of clamping them', async () => {
    for (const timeout_ms of [1, 20_000]) assert.deepEqual(await getProblems({ timeout_ms }), []);
    const cases: [unknown, string][] = [
      [20_001, 'found 20001; allowed: at most 20000'],
      [0, 'found 0; allowed: at least 1'],
      [1.5, 'found 1.5; allowed: a whole number'],
      ['10000', 'found "10000"; allowed: a number'],
      [null, 'found null; allowed: a number'],
    ];
    for (const [timeout_ms, expected] of cases) {
      assert.deepEqual(await getProblems({ timeout_ms }), [`tools[0].timeout_ms: ${expected}`]);
    }
  });

  it('[behaviour Configuration] accepts tool names of 1 to 64 letters, digits, _ . - and descriptions that are not blank', async () => {
    for (const name of ['a', 'A.b-c_9', 'x'.repeat(64)]) assert.deepEqual(await getProblems({ name }), []);
    for (const name of ['', 'x'.repeat(65), 'a b', 'a/b', 'ä', 'a:b']) {
      assert.match((await getProblems({ name })).join(), /^tools\[0\]\.name: found ".*"; allowed: 1 to 64 letters/);
    }
    for (const description of ['', '  \n ']) {
      assert.match(
        (await getProblems({ description })).join(),
        /^tools\[0\]\.description: found .*; allowed: at least 1/s,
      );
    }
  });

  it('[spec 2.2] accepts the four types of authentication, each with only its own fields', async () => {
    const getAuthenticationProblems = async (authentication: Json, fields: Json = {}) =>
      (await getProblems(fields, { authentication })).join();
    for (const type of ['Bearer', 'ApiKey', 'Basic']) {
      assert.equal(await getAuthenticationProblems({ type }), '');
      assert.equal(await getAuthenticationProblems({ type, header: 'X-Api-Key' }), '');
      assert.match(
        await getAuthenticationProblems({ type, query_key: 'k' }),
        /^authentication\.query_key: requires type QueryParam/,
      );
    }
    assert.equal(await getAuthenticationProblems({ type: 'QueryParam' }), '');
    assert.equal(await getAuthenticationProblems({ type: 'QueryParam', query_key: 'k' }), '');
    assert.match(
      await getAuthenticationProblems({ type: 'QueryParam', header: 'X' }),
      /^authentication\.header: cannot be combined with type QueryParam/,
    );
    assert.match(
      await getAuthenticationProblems({ type: 'QueryParam', query_key: 'a&b' }),
      /^authentication\.query_key: found "a&b"; allowed/,
    );
    assert.match(
      await getAuthenticationProblems({ type: 'ApiKey', header: 'Host' }),
      /^authentication\.header: this header is set by/,
    );
    assert.match(
      await getAuthenticationProblems({ type: 'ApiKey', header: 'a b' }),
      /^authentication\.header: found "a b"; allowed/,
    );
    assert.match(
      await getAuthenticationProblems({ type: 'Bearer', token: '{{a b}}' }),
      /^authentication\.token: allowed: one line/,
    );
    const url = 'https://api.example.com/?api_key=x';
    assert.match(
      await getAuthenticationProblems({ type: 'QueryParam' }, { url }),
      /^tools\[0\]\.url: the query has "api_key", which carries the credential/,
    );
  });

  it('[spec 2.3] accepts oauth without scopes, and rejects what the service sets itself', async () => {
    const getOauthProblems = async (fields: Json) =>
      (await checkConfig(buildServerConfig({ oauth: { ...oauthConfig, ...fields } }))).problems.join();
    assert.equal(await getOauthProblems({}), '');
    assert.equal(await getOauthProblems({ scopes: ['read', 'write'], extra_params: { access_type: 'offline' } }), '');
    assert.match(
      await getOauthProblems({ extra_params: { state: 'x' } }),
      /^oauth\.extra_params\.state: the service sets this/,
    );
    assert.match(
      await getOauthProblems({ client_secret: 5 }),
      /^oauth\.client_secret: found a value of the wrong form; allowed: a string/,
    );
    const both = buildServerConfig({ oauth: oauthConfig, authentication: { type: 'Bearer', token: '{{T}}' } });
    assert.match((await checkConfig(both)).problems.join(), /^authentication\.token: cannot be combined with oauth/);
  });
});
