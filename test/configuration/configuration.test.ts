import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getOutput } from '../support/oauth/management-agent.ts';
import { pluck } from '../support/pluck.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';
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
  'slug: found "Not A Slug"; allowed: 3 to 63 lowercase letters and digits, with single hyphens between them',
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

  const checkConfig = (config: Json) => checkConfiguration(toolhost, config);
  /** Checks a valid configuration with these fields. */
  const checkFields = (fields: Json) => checkConfig(buildServerConfig(fields));
  const assertProblems = async (fields: Json, ...expected: string[]) =>
    assert.deepEqual((await checkFields(fields)).problems.sort(), expected, JSON.stringify(fields));
  const assertTool = (fields: Json, ...expected: string[]) =>
    assertProblems({ tools: [buildToolConfig(fields)] }, ...expected);
  const getSlugs = async () =>
    pluck((await toolhost.rest('GET', '/servers')).body.servers as { slug: string }[], 'slug');

  it('[behaviour Configuration] with ten mistakes is rejected with all of them, and nothing is stored', async () => {
    const { status, headers, body } = await toolhost.rest('POST', '/servers', { body: tenMistakes });
    assert.equal(status, 400);
    assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/);
    const found = (body.problems as Problem[]).map(({ path, message }) => `${path}: ${message}`);
    assert.deepEqual(found.sort(), [...tenReports].sort());
    const partly = buildServerConfig({
      slug: 'partly-valid',
      tools: [buildToolConfig(), buildToolConfig({ name: 'a b' })],
    });
    assert.equal((await toolhost.rest('POST', '/servers', { body: partly })).status, 400);
    assert.deepEqual(await getSlugs(), []);
  });

  it('[behaviour Configuration] is validated alike by checkMcpServer and by the tools of the management server', async () => {
    assert.deepEqual((await checkConfig(tenMistakes)).problems.sort(), [...tenReports].sort());
    const key = await toolhost.createKey();
    const result = await toolhost.callTool('manage', key, 'createMcpServer', tenMistakes);
    assert.equal(result.isError, true);
    for (const report of tenReports) assert.ok(result.content[0]?.text?.includes(`- ${report}`), report);
    const checked = await toolhost.callTool('manage', key, 'checkMcpServer', buildServerConfig());
    assert.deepEqual(getOutput(checked), { valid: true, problems: [], warnings: [], access: 'caller_token' });
    assert.deepEqual(await getSlugs(), []);
  });

  it('[behaviour Configuration] must have its required fields, each of the right type', async () => {
    const none = await checkConfig({});
    const required = ['name: required; allowed: a string', 'slug: required; allowed: a string'];
    assert.deepEqual(none.problems.sort(), [...required, 'tools: required; allowed: an array']);
    const wrong = ['slug: found an array of 1; allowed: a string', 'tools: found an object; allowed: an array'];
    await assertProblems({ slug: [5], tools: {} }, ...wrong);
    const inTool = ['description', 'method', 'name', 'url'].map(
      (name) => `tools[0].${name}: required; allowed: a string`,
    );
    await assertProblems({ tools: [{}, null] }, ...inTool, 'tools[1]: found null; allowed: an object');
  });

  it('[sec E2] accepts lowercase slugs of 3 to 63 characters and no reserved ones', async () => {
    for (const slug of ['abc', 'a-b', '123', 'a1-b2-c3', 'x'.repeat(63)]) await assertProblems({ slug });
    for (const slug of [
      ...['ab', 'x'.repeat(64), 'Abc', 'a_b', 'a--b', '-ab', 'ab-', 'a b', 'ab%41', 'äbc', 'аpi', 'abc\n', '..', ''],
    ]) {
      const { problems } = await checkFields({ slug });
      assert.match(problems.join(), /^slug: found .*; allowed: 3 to 63 lowercase letters/s, JSON.stringify(slug));
    }
    for (const slug of ['manage', 'api', 'admin', 'login', 'oauth', 'well-known', 'health'])
      await assertProblems({ slug }, `slug: "${slug}" is reserved; choose another`);
  });

  it('[behaviour Configuration] has limits: lengths of name and description, 1,000 tools, unique tool names', async () => {
    await assertProblems({ name: 'n'.repeat(100), description: 'd'.repeat(2000) });
    const { problems } = await checkFields({ name: 'n'.repeat(101), description: 'd'.repeat(2001) });
    assert.equal(problems.length, 2);
    assert.match(problems[0] ?? '', /^name: found "n+…"; allowed: at most 100 characters$/);
    assert.match(problems[1] ?? '', /^description: found "d+…"; allowed: at most 2000 characters$/);
    const tools = Array.from({ length: 1001 }, (_, i) => buildToolConfig({ name: `t${i}` }));
    const advice = 'split them into several servers, or ask the operator for a higher quota';
    await assertProblems({ tools }, `tools: 1001 tools; allowed: 1000; ${advice}`);
    await assertProblems({ tools: tools.slice(1) });
    const twice = [buildToolConfig(), buildToolConfig({ name: 'other' }), buildToolConfig()];
    await assertProblems({ tools: twice }, 'tools[2].name: "get_thing" is already the name of tools[0]');
    assert.match((await checkFields({ name: 'a\u202eb' })).problems.join(), /^name: .*invisible character/);
  });

  it('[behaviour Configuration] accepts absent optional fields, and any case of method', async () => {
    const tools = [buildToolConfig({ method: 'dElEtE' })];
    await toolhost.createServer(buildServerConfig({ slug: 'forgiven', tools }));
    const { body } = await toolhost.rest('GET', '/servers/forgiven');
    const [tool] = (body.config as { tools: Json[] }).tools;
    const defaults = { headers: {}, input_schema: {}, response_transform: '.', timeout_ms: 10_000 };
    assert.deepEqual(tool, { ...buildToolConfig({ method: 'DELETE' }), ...defaults });
  });

  it('[behaviour Configuration] accepts timeouts of 1 to 20,000 ms, and rejects larger ones instead of clamping them', async () => {
    for (const timeout_ms of [1, 20_000]) await assertTool({ timeout_ms });
    const cases: [unknown, string][] = [
      [20_001, 'found 20001; allowed: at most 20000'],
      [0, 'found 0; allowed: at least 1'],
      [1.5, 'found 1.5; allowed: a whole number'],
      ['10000', 'found "10000"; allowed: a number'],
      [null, 'found null; allowed: a number'],
    ];
    for (const [timeout_ms, expected] of cases) await assertTool({ timeout_ms }, `tools[0].timeout_ms: ${expected}`);
  });

  it('[behaviour Configuration] accepts tool names of 1 to 64 letters, digits, _ . - and descriptions that are not blank', async () => {
    const getProblems = async (fields: Json) => (await findToolProblems(toolhost, fields)).join();
    for (const name of ['a', 'A.b-c_9', 'x'.repeat(64)]) await assertTool({ name });
    for (const name of ['', 'x'.repeat(65), 'a b', 'a/b', 'ä', 'a:b'])
      assert.match(await getProblems({ name }), /^tools\[0\]\.name: found ".*"; allowed: 1 to 64 letters/);
    for (const description of ['', '  \n '])
      assert.match(await getProblems({ description }), /^tools\[0\]\.description: found .*; allowed: at least 1/s);
  });

  it('[spec 2.2] accepts the four types of authentication, each with only its own fields', async () => {
    const getProblems = async (authentication: Json, fields: Json = {}) =>
      (await findToolProblems(toolhost, fields, { authentication })).join();
    for (const type of ['Bearer', 'ApiKey', 'Basic'])
      for (const more of [{}, { header: 'X-Api-Key' }]) assert.equal(await getProblems({ type, ...more }), '');
    for (const more of [{}, { query_key: 'k' }]) assert.equal(await getProblems({ type: 'QueryParam', ...more }), '');
    const withoutHeader = /^authentication\.header: cannot be combined with type QueryParam/;
    const cases: [Json, RegExp][] = [
      ...['Bearer', 'ApiKey', 'Basic'].map((type): [Json, RegExp] => [
        { type, query_key: 'k' },
        /^authentication\.query_key: requires type QueryParam/,
      ]),
      [{ type: 'QueryParam', header: 'X' }, withoutHeader],
      [{ type: 'QueryParam', query_key: 'a&b' }, /^authentication\.query_key: found "a&b"; allowed/],
      [{ type: 'ApiKey', header: 'Host' }, /^authentication\.header: this header is set by/],
      [{ type: 'ApiKey', header: 'a b' }, /^authentication\.header: found "a b"; allowed/],
      [{ type: 'Bearer', token: '{{a b}}' }, /^authentication\.token: allowed: one line/],
    ];
    for (const [authentication, problem] of cases) assert.match(await getProblems(authentication), problem);
    const inUrl = await getProblems({ type: 'QueryParam' }, { url: 'https://api.example.com/?api_key=x' });
    assert.match(inUrl, /^tools\[0\]\.url: the query has "api_key", which carries the credential/);
  });

  it('[spec 2.3] accepts oauth without scopes, and rejects what the service sets itself', async () => {
    const getOauthProblems = async (fields: Json) =>
      (await checkFields({ oauth: { ...oauthConfig, ...fields } })).problems.join();
    assert.equal(await getOauthProblems({}), '');
    assert.equal(await getOauthProblems({ scopes: ['read', 'write'], extra_params: { access_type: 'offline' } }), '');
    const state = await getOauthProblems({ extra_params: { state: 'x' } });
    assert.match(state, /^oauth\.extra_params\.state: the service sets this/);
    const mistyped = await getOauthProblems({ client_secret: 5 });
    assert.match(mistyped, /^oauth\.client_secret: found a value of the wrong form; allowed: a string/);
    const both = await checkFields({ oauth: oauthConfig, authentication: { type: 'Bearer', token: '{{T}}' } });
    assert.match(both.problems.join(), /^authentication\.token: cannot be combined with oauth/);
  });
});
