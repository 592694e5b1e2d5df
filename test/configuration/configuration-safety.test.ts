import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listOf, object, text } from '../support/schemas.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';
import {
  buildServerConfig,
  buildToolConfig,
  checkConfiguration,
  findToolProblems,
  oauthConfig,
} from '../support/valid-configs.ts';

describe('dangerous configurations', () => {
  const toolhost = useFixture(startToolhost);

  const getProblems = (fields: Json, more?: Json) => findToolProblems(toolhost, fields, more);
  const checkConfig = (config: Json) => checkConfiguration(toolhost, config);
  const getSchemaProblems = (input_schema: Json) => getProblems({ method: 'POST', input_schema });

  it('[sec A9] [find E6] are rejected if static headers belong to HTTP, the service, or the credential', async () => {
    const names = [
      ...['HOST', 'Content-Length', 'Transfer-Encoding', 'Connection', 'Upgrade', 'TE', 'Trailer', 'Expect'],
      ...['Cookie', 'Proxy-Authorization', 'Forwarded', 'X-Forwarded-For', 'Mcp-Session-Id', 'traceparent'],
      ...['Toolhost-Hop'],
    ];
    for (const name of names) {
      assert.match(
        (await getProblems({ headers: { [name]: 'x' } })).join(),
        new RegExp(`^tools\\[0\\]\\.headers\\.${name}: `),
      );
    }
    const credential = 'authentication sets this header; leave it out here, or change authentication.header';
    assert.deepEqual(await getProblems({ headers: { AUTHORIZATION: 'x' } }, { authentication: { type: 'Bearer' } }), [
      `tools[0].headers.AUTHORIZATION: ${credential}`,
    ]);
    const apikey = { authentication: { type: 'ApiKey', header: 'apikey' } };
    assert.deepEqual(await getProblems({ headers: { ApiKey: 'x' } }, apikey), [
      `tools[0].headers.ApiKey: ${credential}`,
    ]);
    assert.deepEqual(await getProblems({ headers: { 'X-One': 'a', 'x-one': 'b' } }), [
      'tools[0].headers.x-one: this header is set twice',
    ]);
  });

  it('[sec A9] are rejected if header names or values are invalid in HTTP, or placeholders are malformed', async () => {
    const cases: [string, string][] = [
      ['X A', 'v'],
      ['X:A', 'v'],
      ['', 'v'],
      ['X-A', 'a\r\nX-B: 1'],
      ['X-A', 'snow ☃'],
      ['X-A', ' v'],
      ['X-A', '{{no'],
      ['X-A', '{{a-b}}'],
    ];
    for (const [name, value] of cases) {
      assert.equal((await getProblems({ headers: { [name]: value } })).length, 1, JSON.stringify([name, value]));
    }
  });

  it('[sec B8] are rejected if a URL is not plain HTTPS to a public name on a web port', async () => {
    const urls = [
      ...['https://user:pass@api.example.com/', 'https://user@api.example.com/', 'https://api.example.com/a#f'],
      ...['ftp://api.example.com/', 'file:///etc/passwd', 'gopher://api.example.com/'],
      ...['javascript://api.example.com/', 'http://api.example.com/', 'https://api.example.com:22/'],
      ...['https://api.example.com:25/', 'https://api.example.com:6379/', 'https://intranet/'],
      ...['https://db.internal/', 'https://localhost/', 'https://localhost./', 'https://127.0.0.1/'],
      ...['https://10.1.2.3/', 'https://[::1]/', 'https://2130706433/', 'https://0x7f.1/', 'https://127.1/'],
      ...[
        'https://0177.0.0.1/',
        'https://127。0。0。1/',
        'https://169.254.169.254/latest/',
        'https://[::ffff:7f00:1]/',
      ],
      ...['not a url', '/relative', 'https://', 'https://exa mple.com/', 'https://api.example.com\\@evil.example/'],
    ];
    for (const url of urls) {
      const problems = await getProblems({ url });
      assert.ok(problems.length > 0 && problems.every((problem) => problem.startsWith('tools[0].url: ')), url);
    }
    for (const url of ['https://api.example.com', 'https://api.example.com:8443/a?b=c', 'https://8.8.8.8/']) {
      assert.deepEqual(await getProblems({ url }), [], url);
    }
    const provider = {
      ...oauthConfig,
      authorization_url: 'http://login.example.com/',
      token_url: 'https://10.0.0.1/token',
    };
    const { problems } = await checkConfig(buildServerConfig({ oauth: provider }));
    assert.deepEqual(problems.map((problem) => problem.split(':')[0]).sort(), [
      'oauth.authorization_url',
      'oauth.token_url',
    ]);
  });

  it('[find D5] are rejected with the variable and value that let an operator make an exception', async () => {
    const formatException = (entry: string) => `; the operator can allow it with EGRESS_ALLOW=${entry}`;
    const cases: [url: string, problem: string][] = [
      [
        'https://localhost/',
        `found localhost, which is not a public name; allowed: names on the public internet${formatException('localhost:443')}`,
      ],
      ['http://api.example.com/', `found http://; allowed: https://${formatException('api.example.com:80')}`],
      ['http://localhost:9000/', `found http://; allowed: https://${formatException('localhost:9000')}`],
      [
        'https://db.example.com:5432/',
        `found port 5432; allowed: web ports such as 443 and 8443${formatException('db.example.com:5432')}`,
      ],
      [
        'https://10.1.2.3:8443/',
        `found an address that is not on the public internet; allowed: a public one${formatException('10.1.2.3:8443')}`,
      ],
    ];
    for (const [url, problem] of cases) assert.deepEqual(await getProblems({ url }), [`tools[0].url: ${problem}`]);
  });

  it('[sec C4] are rejected if tokens are in the scheme, host, port, user part, fragment, or query names', async () => {
    const input_schema = { id: text, other: text };
    const urls = [
      ...[':id://api.example.com/', 'https://:id/', 'https://:id.example.com/', 'https://api.:id.com/'],
      ...['https://api.example.com:id/', 'https://api.example.com::id/', 'https://:id@api.example.com/'],
      ...['https://u::id@api.example.com/', 'https://api.example.com/#:id', 'https://api.example.com/?:id=1'],
      ...['https://api.example.com/?a=b&x:id=1', 'https://api.example.com/?:id'],
    ];
    for (const url of urls) {
      const problems = await getProblems({ url, input_schema });
      assert.ok(problems.length > 0 && problems.every((problem) => problem.startsWith('tools[0].url: ')), url);
    }
  });

  it('[sec C4] [behaviour request 1] keep /x:cancel literal and are rejected for other undeclared tokens', async () => {
    const getPathProblems = (path: string) =>
      getProblems({ url: `https://api.example.com${path}`, input_schema: { id: text } });
    for (const path of [
      ...['/v1/x:cancel', '/v1/:id:cancel', '/v1/2026-01-01T10:00', '/a?t=12:30', '/v1/:id.json', '/a?:=1', '/a/::'],
    ]) {
      assert.deepEqual(await getPathProblems(path), [], path);
    }
    for (const path of ['/v1/:other', '/v1/:idx', '/v1/-:other', '/a?b=:other', '/a?b=eq.:other', '/a?:other=1']) {
      assert.match(
        (await getPathProblems(path)).join(),
        /^tools\[0\]\.url: `:\w+` looks like a token, but input_schema has no such/,
        path,
      );
    }
    for (const path of ['/a/../b', '/a/.', '/%2e%2E/b']) {
      assert.match((await getPathProblems(path)).join(), /^tools\[0\]\.url: the path has a \. or \.\. segment/, path);
    }
  });

  it('[sec C10] are rejected for remote or circular references, exponential patterns, and schemas that are too large or deep', async () => {
    const createNestedMap = (levels: number): Json => (levels === 0 ? {} : { a: createNestedMap(levels - 1) });
    const createDeepArray = (levels: number): Json => (levels === 0 ? text : listOf(createDeepArray(levels - 1)));
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`p${i}`, text]));
    const exponentialPattern = { pattern: '^(?=(a+)+$)' };
    const root = (properties: Json, more: Json = {}): Json => ({ type: 'object', properties, ...more });
    const doubling = Object.fromEntries(
      Array.from({ length: 30 }, (_, i) => [
        `d${i}`,
        { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
      ]),
    );
    const unsupported = /this keyword is not supported/;
    const lookAround = /a\.pattern: found ".*", which has "\(\?=", a lookaround, which can take exponential time/;
    const large = /expands to more than 2000 schemas$/;
    const tooDeep = /: nested deeper than 32 levels$/;
    const cases: [schema: Json, said: RegExp][] = [
      [{ a: { type: 'string', ...exponentialPattern } }, lookAround],
      [root({ a: exponentialPattern }), lookAround],
      [root({ a: { patternProperties: { '^(a+)+$': {} } } }), unsupported],
      [root({ a: { $ref: '#/examples/0' } }, { examples: [exponentialPattern] }), /it does not refer to a schema$/],
      [root({ a: { $ref: '#/default' } }, { default: exponentialPattern }), /it does not refer to a schema$/],
      [root({ a: { $ref: '#/$defs/missing' } }), /it does not refer to a schema$/],
      [root({ a: { $ref: 'https://evil.example/schema' } }), /allowed: a reference into this schema/],
      [root({ a: { $ref: '#/properties/a' } }), /is recursive/],
      [root({ a: { $ref: '#' } }), /is recursive/],
      [root({ a: { $ref: '#/$defs/d0' } }, { $defs: { ...doubling, d30: {} } }), large],
      [many, /found 5000 arguments; allowed: at most 100$/],
      [root(many), /found 5000 arguments; allowed: at most 100$/],
      [{ a: object(many) }, large],
      [{ a: createDeepArray(45) }, tooDeep],
      [root({ a: createDeepArray(45) }), tooDeep],
      [{ a: { type: 'object', default: createNestedMap(45) } }, tooDeep],
    ];
    for (const [schema, expected] of cases) {
      const [problem, ...more] = await getSchemaProblems(schema);
      assert.match(problem ?? '', expected);
      assert.deepEqual(more, []);
    }
    const outputs: [schema: Json, said: RegExp][] = [
      [root({ a: exponentialPattern }), lookAround],
      [root(many), large],
      [root({ a: createDeepArray(45) }), tooDeep],
    ];
    for (const [output_schema, expected] of outputs)
      assert.match((await getProblems({ output_schema })).join(), expected);
  });

  it('[sec C10] are rejected for schemas so deep that traversal would overflow the stack', async () => {
    const key = await toolhost.createKey();
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    for (const field of ['input_schema', 'output_schema']) {
      for (const depth of [200, 50_000]) {
        const schema = `{"type":"object","properties":{"a":${'{"not":'.repeat(depth)}{}${'}'.repeat(depth)}}}`;
        const tool = JSON.stringify(buildToolConfig({ [field]: 0 })).replace(`"${field}":0`, `"${field}":${schema}`);
        const body = `{"name":"Deep","slug":"deep-schema","tools":[${tool}]}`;
        const { status } = await fetch(`${toolhost.url}/api/v1/servers`, { method: 'POST', headers, body });
        assert.ok(status === 400 || status === 413, String(status));
      }
    }
    assert.equal((await toolhost.rest('GET', '/servers/deep-schema')).status, 404);
  });
});
