import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { callerToken } from '../support/one-tool.ts';
import { text } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';
import { useOneTool } from '../support/use-one-tool.ts';
import { buildServerConfig, buildToolConfig, checkConfiguration, oauthConfig } from '../support/valid-configs.ts';

const toHex = (character: string) => character.charCodeAt(0).toString(16);
const toWide = (character: string) => encodeURIComponent(String.fromCharCode(character.charCodeAt(0) + 0xfee0));

/** Returns spellings of a name that some receiver still understands, as they appear in a query. */
function listSpellings(name: string): string[] {
  const [first = ''] = name;
  const spellCharacters = [`%${toHex(first)}`, `%25${toHex(first)}`, `%2525${toHex(first)}`, `%u00${toHex(first)}`];
  const spellSeparators = ['.', '+', '%20', '%2e', '%5f', '%255F', '%C1%9F', '%E0%81%9f', toWide('_')];
  return [
    ...[name, name.toUpperCase(), ...[...spellCharacters, toWide(first)].map((spelled) => spelled + name.slice(1))],
    ...(name.includes('_') ? spellSeparators.map((spelled) => name.replace('_', spelled)) : []),
    ...['%20', '+', '[', '%5B', '%09', '%E2%80%8B'].map((lead) => lead + name),
    ...'[] %5B%5D [0] [a][b] [ %20 + %00 %00x %2500 .x %0A'.split(' ').map((tail) => name + tail),
  ];
}

/** Returns each name, and each kind of spelling with one of the names. */
const spellEach = (names: readonly string[]) =>
  names.flatMap((name, index) => [name, ...listSpellings(name).filter((_, at) => at % names.length === index)]);

const authorizationParams = [
  ...['response_type', 'response_mode', 'client_id', 'client_secret', 'redirect_uri', 'state', 'scope'],
  ...['code_challenge', 'code_challenge_method', 'iss', 'request', 'request_uri'],
];
const tokenParams = ['grant_type', 'code', 'redirect_uri', 'client_id', 'client_secret', 'code_verifier'];

const optional = { type: 'string', optional: true };
const inHeader = { type: 'string', in: 'header' };
const queryParam = { authentication: { type: 'QueryParam' } };
/** Returns the names of the parts of a multipart body. */
const listPartNames = ({ body }: RecordedRequest) =>
  [...body.toString().matchAll(/name="([^"]*)"/g)].map(([, name]) => name);
/** Names that some receiver reads as `account`. */
const similarNames = ['Account', 'ACCOUNT', 'account[]', 'account[0]', 'account.x', 'account[x]'];
/** Names that no receiver reads as `account`. */
const otherNames = ['account_id', 'accounts', 'my[account]', 'acc'];
const fields = (names: readonly string[], more: Json = optional): Json =>
  Object.fromEntries(names.map((name) => [name, more]));
const createArguments = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, 'mine']));
const form = { method: 'POST', body: 'form' };
const multipart = { method: 'POST', body: 'multipart' };
const bearer = { authentication: { type: 'Bearer' } };

describe('parameter names that could be mistaken for another one', () => {
  const oneTool = useOneTool();
  const { send } = oneTool;
  const check = (fields: Json) => checkConfiguration(oneTool.toolhost, buildServerConfig(fields));
  const checkTool = (tool: Json, more: Json = {}) => check({ tools: [buildToolConfig(tool)], ...more });
  const getToolProblems = async (tool: Json, more?: Json) => (await checkTool(tool, more)).problems.join('\n');
  const getUrlProblems = (query: string, authentication: Json) =>
    getToolProblems({ url: `https://api.example.com/v1/things?${query}` }, { authentication });
  const getOauthProblems = async (fields: Json) =>
    (await check({ oauth: { ...oauthConfig, ...fields } })).problems.join('\n');

  it("[find B5] rejects every spelling of the credential's name in a tool URL", async () => {
    for (const query_key of ['api_key', 'access.token', 'key'])
      for (const spelling of listSpellings(query_key)) {
        const problems = await getUrlProblems(`a=1&${spelling}=x`, { type: 'QueryParam', query_key });
        assert.match(problems, /^tools\[0\]\.url: the query has .*, which carries the credential/, spelling);
      }
    assert.match(await getUrlProblems('a=1;API_KEY=x', { type: 'QueryParam' }), /carries the credential/);
  });

  it("[find B5] rejects every spelling of the service's OAuth parameters in extra_params and provider URLs", async () => {
    // Texts with NUL and names of more than 100 characters have their own errors. U+FFFD is no longer a spelling.
    const isName = (text: string) => !/[\0\ufffd]/.test(text) && text.length <= 100;
    const readName = (spelling: string) => new URLSearchParams(`${spelling}=x`).keys().next().value ?? '';
    for (const spelling of spellEach(authorizationParams)) {
      const authorization_url = `${oauthConfig.authorization_url}?tenant=a&${spelling}=x`;
      assert.match(await getOauthProblems({ authorization_url }), /^oauth\.authorization_url: contains the parameter/);
      for (const name of [spelling, readName(spelling)].filter(isName)) {
        const problems = await getOauthProblems({ extra_params: { [name]: 'x' } });
        assert.match(problems, /: the service sets this parameter itself/);
      }
    }
    for (const spelling of spellEach(tokenParams)) {
      const token_url = `${oauthConfig.token_url}?${spelling}=x`;
      assert.match(await getOauthProblems({ token_url }), /^oauth\.token_url: contains the parameter/);
      for (const name of [readName(spelling)].filter(isName)) {
        const problems = await getOauthProblems({ token_params: { [name]: 'x' } });
        assert.match(problems, /^oauth\.token_params\..*: the service sets this parameter itself/s);
      }
    }
  });

  it('[find B5] omits arguments whose name could be read as the credential', async () => {
    const names = [
      ...['api_key', 'API_KEY', 'Api.Key', 'api_key[]', 'api_key[0]', 'api.key', 'api[key', 'api_key.x'],
      ...['aPi_kEy[a]'],
    ];
    const harmless = ['api_key_id', 'my_api_key', 'apikey', 'key', 'my[api_key]'];
    const input_schema = fields([...names, ...harmless]);
    const args = createArguments([...names, ...harmless]);
    const sentPairs = harmless.map((name) => [name, 'mine']);
    for (const array_format of ['repeat', 'brackets']) {
      const { url } = await send({ input_schema, array_format }, args, queryParam);
      const pairs = [...new URL(url, oneTool.upstream.url).searchParams];
      assert.deepEqual(pairs, [...sentPairs, ['api_key', callerToken]]);
    }
    const { body } = await send({ ...form, input_schema }, args, queryParam);
    assert.deepEqual([...new URLSearchParams(body.toString())], sentPairs);
    assert.deepEqual(listPartNames(await send({ ...multipart, input_schema }, args, queryParam)), harmless);
  });

  it('[find B5] warns about arguments that the credential replaces', async () => {
    const input_schema = { 'Api.Key': text, other: text };
    const getWarnings = async (tool: Json) =>
      (await checkTool({ input_schema, ...tool }, queryParam)).warnings.join('\n');
    assert.match(
      await getWarnings({}),
      /^tools\[0\]\.input_schema\.Api\.Key: could be read as the credential in the query/,
    );
    assert.match(await getWarnings(form), /so it is sent nowhere$/);
  });

  it('[find B5] rejects headers that CGI could read as the credential, or that HTTP or the service sets', async () => {
    const authentication = { type: 'ApiKey', header: 'X-Api-Key' };
    for (const name of ['x_api_key', 'X.Api-Key', 'x-API_key', 'X!Api~Key']) {
      const problems = await getToolProblems({ headers: { [name]: 'x' } }, { authentication });
      assert.match(problems, /authentication sets this header/);
    }
    const argument = (name: string) => ({ input_schema: { [name]: inHeader } });
    assert.match(await getToolProblems(argument('x_api_key'), { authentication }), /already set/);
    for (const name of [
      ...['Content_Length', 'transfer_encoding', 'X_Forwarded_For', 'proxy_authorization', 'Mcp.Name'],
      ...['toolhost_hop'],
    ])
      assert.match(await getToolProblems({ headers: { [name]: 'x' } }), /set by the service or by HTTP itself/, name);
    const headers = { 'X-A': '1' };
    assert.match(await getToolProblems({ headers: { ...headers, X_A: '2' } }), /set twice/);
    assert.match(await getToolProblems({ headers, ...argument('x_a') }), /already set/);
    assert.match(await getToolProblems(argument('Content_Type')), /the body determines this header/);
    for (const header of ['Content-Type', 'accept', 'User_Agent'])
      assert.match(await getToolProblems({}, { authentication: { type: 'ApiKey', header } }), /name another one/);
    assert.equal(await getToolProblems({ headers, ...argument('x_ab') }), '');
  });

  it("replaces the service's descriptive headers by arguments of the same name", async () => {
    const input_schema = { Accept: inHeader, user_agent: inHeader };
    const { headers, rawHeaders } = await send({ input_schema }, { Accept: 'text/csv', user_agent: 'me' });
    assert.equal(headers.accept, 'text/csv');
    const names = rawHeaders.filter((name) => /^(accept|user.agent)$/i.test(name));
    assert.deepEqual(names.toSorted(), ['Accept', 'User-Agent']);
  });

  it('[find B5] merges a header that CGI reads as one of the service into that header, also in the sent request', async () => {
    const sendDescribed = async (tool: Json) => {
      const { rawHeaders, body } = await send({ method: 'POST', input_schema: { a: text }, ...tool }, { a: 'x' });
      const isDescribed = (name: string) => /^(accept|user.agent|content.type)$/i.test(name);
      const lines = rawHeaders.flatMap((name, index) =>
        index % 2 === 0 && isDescribed(name) ? [`${name}: ${rawHeaders[index + 1]}`] : [],
      );
      return { lines: lines.toSorted(), body: body.toString() };
    };
    const json = 'application/vnd.api+json';
    assert.deepEqual(await sendDescribed({ headers: { Content_Type: json, user_agent: 'mine' } }), {
      lines: ['Accept: application/json', `Content-Type: ${json}`, 'User-Agent: mine'],
      body: '{"a":"x"}',
    });
    const formType = 'application/x-www-form-urlencoded';
    assert.equal((await sendDescribed({ headers: { 'content.type': formType } })).body, 'a=x');
    const { lines } = await sendDescribed({ body: 'multipart', headers: { Content_Type: 'multipart/form-data' } });
    assert.match(lines.join(), /^Accept[^,]+,Content-Type: multipart\/form-data; boundary=[^,]+,User-Agent: [^,]+$/);
    const xml = { method: 'POST', input_schema: { a: text }, headers: { Content_Type: 'text/xml' } };
    const problem = /headers\.Content_Type: found "text\/xml", but the arguments are sent as JSON/;
    assert.match(await getToolProblems(xml), problem);
  });

  it('[find B5] accepts names that only resemble reserved ones', async () => {
    const extra_params = {
      ...{ access_type: 'offline', prompt: 'consent', user_scope: 'x', login_hint: 'a@b', nonce: 'n-1' },
      ...{ audience: 'https://api.example.com', resource: 'https://api.example.com', state_of_mind: 'x' },
      ...{ claims: '{"id_token":{"a":{"b":null}}}', 'odd name': 'x' },
    };
    const authorization_url = `${oauthConfig.authorization_url}?tenant=a&scopes=b&client=c&codes=d&p=B2C_1&%F0%9F%98%80=x`;
    const token_url = `${oauthConfig.token_url}?p=B2C_1`;
    assert.equal(await getOauthProblems({ extra_params, authorization_url, token_url }), '');
    const pairs = 'api_key_id=1&apikey=2&x%5Bapi_key%5D=3&%C3%A4=4&a[b]=5';
    assert.equal(await getUrlProblems(pairs, { type: 'QueryParam' }), '');
    assert.equal(await getUrlProblems('API_KEY=x', { type: 'Bearer' }), '');
  });

  it('[find E5] reports a login that could not work as a problem, or as a warning with the reason', async () => {
    const checkLogin = (fields: Json, server: Json = bearer) =>
      check({ ...server, oauth: { ...oauthConfig, ...fields } });
    const tokenUrl = `${oneTool.toolhost.url}/mcp/things/token`;
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`p${i}`, 'x']));
    const problems: [Json, RegExp][] = [
      [{ extra_params: { response_mode: 'form_post' } }, /^oauth\.extra_params\.response_mode: the service sets this/],
      [{ client_secret: '{{SECRET}}' }, /^oauth\.client_secret: \{\{NAME\}\} is not replaced here.*encrypted/],
      [{ client_secret: undefined }, /^oauth\.client_secret: allowed: the client secret/],
      [{ client_auth: 'basic', client_secret: undefined }, /^oauth\.client_secret: allowed: the client secret/],
      [{ client_auth: 'none' }, /^oauth\.client_secret: .* no secret if client_auth/],
      [{ client_auth: 'none', client_secret: undefined, pkce: false }, /^oauth\.pkce: is required for a public client/],
      [
        { client_auth: 'basic', token_fields: { client_id: 'appid' } },
        /^oauth\.token_fields: client_id and client_secret are not fields/,
      ],
      [
        { token_fields: { code: 'grant_type' } },
        /^oauth\.token_fields\.code: found "grant_type", which the request contains already/,
      ],
      [
        { token_fields: { code: 'Extra' }, token_params: { extra: '1' } },
        /^oauth\.token_fields\.code: found "Extra", which the request contains/,
      ],
      [
        { token_fields: { code: 'a b' } },
        /^oauth\.token_fields\.code: .*allowed: a name of letters, digits, and _ \. -/,
      ],
      [
        { refresh_url: 'https://elsewhere.example/token' },
        /^oauth\.refresh_url: found the origin "https:\/\/elsewhere\.example"; allowed: that of token_url/,
      ],
      [{ client_auth: 'other' }, /^oauth\.client_auth: .*basic.*body.*none/],
      [{ token_params: { tenant: '{{T}}' } }, /^oauth\.token_params\.tenant: \{\{NAME\}\} is not replaced/],
      [{ token_path: '{{T}}' }, /^oauth\.token_path: \{\{NAME\}\} is not replaced/],
      [{ client_id: '{{ID}}' }, /^oauth\.client_id: \{\{NAME\}\} is not replaced/],
      [{ token_url: 'https://login.example.com/{{T}}' }, /^oauth\.token_url: \{\{NAME\}\} is not replaced/],
      [{ scopes: ['{{S}}'] }, /^oauth\.scopes\[0\]: \{\{NAME\}\} is not replaced/],
      [{ scopes: ['read write'] }, /^oauth\.scopes\[0\]: .*without spaces/],
      [{ token_url: tokenUrl }, /^oauth\.token_url: a hosted server cannot call this/],
      [{ extra_params: many }, /at most 50 parameters/],
    ];
    for (const [fields, expected] of problems) assert.match((await checkLogin(fields)).problems.join('\n'), expected);
    const warnings: [Json, Json, RegExp][] = [
      [{}, {}, /^authentication: is missing, so the login token is never sent/],
      [{ token_mode: 'passthrough' }, {}, /^authentication: is missing/],
      [{ token_url: oauthConfig.authorization_url }, bearer, /^oauth\.token_url: is the same URL/],
      [{ client_secret: 'a-secret\n' }, bearer, /^oauth\.client_secret: begins or ends with white space/],
    ];
    for (const [fields, server, expected] of warnings) {
      const { valid, warnings: found } = await checkLogin(fields, server);
      assert.deepEqual([valid, found.length], [true, 1], found.join('\n'));
      assert.match(found[0] ?? '', expected);
    }
    const doubled = await check({ authentication: { type: 'Bearer', token: 'Bearer abc' } });
    assert.match(doubled.warnings.join('\n'), /^authentication\.token: begins with "Bearer "/);
    const inName = await getToolProblems({ url: 'https://api.example.com/?{{KEY}}=1' });
    assert.match(inName, /^tools\[0\]\.url: a secret is not allowed in a query name/);
  });

  describe('with constants, fixed arguments, and query pairs of a URL', () => {
    beforeEach(() => void oneTool.upstream.take());

    const parsePairs = ({ method, url, body }: RecordedRequest) =>
      new URLSearchParams(method === 'GET' ? (url.split('?')[1] ?? '') : body.toString());
    const call = (address: string, args: Json) =>
      oneTool.toolhost.post(
        address,
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run', arguments: args } },
        { token: callerToken },
      );

    it('[find B5] rejects an argument that a receiver could read as a constant', async () => {
      for (const tool of [{}, form, multipart])
        for (const name of similarNames) {
          const input_schema = { account: { type: 'string', value: 'a1' }, ...fields([name, ...otherNames]) };
          const { problems } = await checkTool({ ...tool, input_schema });
          assert.equal(problems.length, 1, `${name}: ${problems.join('; ')}`);
          const [problem = ''] = problems;
          assert.ok(problem.startsWith(`tools[0].input_schema.${name}: `), problem);
          assert.match(problem, /could be read as "account", which is a constant/);
        }
      const json = (name: string) =>
        checkTool({ method: 'POST', input_schema: { account: { type: 'string', value: 'a1' }, ...fields([name]) } });
      assert.match((await json('Account')).problems.join(), /could be read as "account"/);
      assert.deepEqual((await json('account[]')).problems, []);
    });

    it('[find B5] treats parts of one parameter as independent of each other', async () => {
      const size = { 'page[size]': { type: 'integer', value: 100 } };
      const input_schema = { ...size, ...fields(['page[number]', 'page[after]']) };
      assert.equal(await getToolProblems({ input_schema }), '');
      const { url } = await send({ input_schema }, { 'page[number]': '2' }, bearer);
      assert.equal(decodeURIComponent(url), '/v1/things?page[size]=100&page[number]=2');
      const replaced = { ...input_schema, ...fields(['page']) };
      assert.match(await getToolProblems({ input_schema: replaced }), /input_schema\.page: .*"page\[size\]"/);
    });

    it('[find B5] omits an argument that could replace one that a view fixes', async () => {
      const input_schema = { account: { type: 'string' }, ...fields([...similarNames, ...otherNames]) };
      const views = { support: { tools: [{ name: 'run', arguments: { account: 'a1' } }] } };
      for (const tool of [{}, form]) {
        const slug = await oneTool.createToolServer({ ...tool, input_schema }, { ...bearer, views });
        const names = [...similarNames, ...otherNames];
        const { text } = await call(`${slug}/support`, createArguments(names));
        const [sent] = oneTool.upstream.take();
        assert.ok(sent, text);
        const pairs = parsePairs(sent);
        assert.deepEqual([...pairs], [['account', 'a1'], ...otherNames.map((name) => [name, 'mine'])]);
        // The whole server has no fixed argument, so the caller may set each of them there.
        const all = parsePairs(await oneTool.captureRequest(slug, { account: 'a2', ...createArguments(names) }));
        assert.equal([...all].length, 1 + names.length);
      }
      const { problems, warnings } = await checkTool({ input_schema, name: 'run' }, { views });
      assert.deepEqual(problems, []);
      const prefix = 'views.support.tools[0].arguments.account: ';
      const [related = '', ...others] = warnings.filter((warning) => warning.startsWith(prefix));
      assert.deepEqual(others, [], warnings.join('\n'));
      assert.match(related, /"Account".* is not sent in this view/);
    });

    it('[find B5] sends an argument that could be the same as a query pair of the URL, with a warning', async () => {
      const input_schema = fields(['limit', 'Limit[]', 'offset']);
      const url = 'https://api.example.com/v1/things?limit=5&kind=a&id=:offset';
      const { problems, warnings } = await checkTool({ url, input_schema });
      assert.deepEqual(problems, []);
      const relatedWarnings = warnings.filter((warning) => warning.includes('the URL already has'));
      const paths = relatedWarnings.map((warning) => warning.split(': ')[0]);
      assert.deepEqual(paths, ['tools[0].input_schema.limit', 'tools[0].input_schema.Limit[]']);
      assert.match(relatedWarnings[0] ?? '', /the URL already has "limit", .*"default"/);
      const limited = await send({ url: '/a?limit=5', input_schema: fields(['limit']) }, { limit: '9' }, bearer);
      assert.equal(limited.url, '/a?limit=5&limit=9');
      assert.deepEqual((await checkTool({ ...form, url, input_schema: fields(['limit', 'offset']) })).warnings, []);
    });

    it("[find B5] rejects a multipart part name that without its backslashes is the credential's", async () => {
      const meta = { type: 'object', style: 'repeat' };
      const names = { quoted: { ...optional, wire_name: 'api\\_key' }, fine: { ...optional, wire_name: 'a\\pi' } };
      const tool = { ...multipart, input_schema: { meta, ...names } };
      const slug = await oneTool.createToolServer(tool, {
        authentication: { type: 'QueryParam', query_key: 'api_key' },
      });
      for (const name of ['api\\_key', '\\api_key', 'api_ke\\y', 'api\\\\_key', 'Api\\.Key']) {
        const refusal = await oneTool.captureRefusal(slug, { meta: { [name]: 'mine' } });
        assert.match(refusal, /name of another parameter/, name);
      }
      const args = { meta: { 'x\\y': 'mine' }, quoted: 'mine', fine: 'mine' };
      assert.deepEqual(listPartNames(await oneTool.captureRequest(slug, args)), ['x\\y', 'a\\pi']);
    });
  });
});
