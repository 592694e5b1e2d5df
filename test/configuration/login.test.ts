import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { text } from '../support/schemas.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { buildServerConfig, buildToolConfig, checkConfiguration, oauthConfig } from '../support/valid-configs.ts';

const field = (name: string, more: Json = {}): Json => ({ name, label: 'Value', ...more });
const site = field('site', { secret: false });
const key = field('KEY');
const personalToken = { authentication: { type: 'Bearer', token: '{{KEY}}' } };
const personalUrl = 'https://{{site}}.atlassian.net/things';
const read = { tools: ['get_thing'] };
const views = { finance: read, support: read };

/** Builds a server whose people bring a site and a key. */
const buildPersonal = (more: Json = {}, tool: Json = {}): Json =>
  buildServerConfig({
    login: { fields: [site, key] },
    ...personalToken,
    tools: [buildToolConfig({ url: `${personalUrl}?key={{KEY}}`, ...tool })],
    ...more,
  });

describe('the login of a configuration', () => {
  const toolhost = useFixture(startToolhost);
  const findProblems = async (config: Json) => (await checkConfiguration(toolhost, config)).problems;
  const assertPatterns = (found: readonly string[], expected: readonly RegExp[], label: unknown) => {
    assert.equal(found.length, expected.length, `${JSON.stringify(label)}: ${found.join('\n')}`);
    for (const [index, pattern] of expected.entries()) assert.match(found[index] ?? '', pattern);
  };
  const assertLogin = async (login: Json, ...expected: RegExp[]) =>
    assertPatterns(await findProblems(buildServerConfig({ login, views })), expected, login);
  const assertWarnings = async (config: Json, ...expected: RegExp[]) => {
    const { problems, warnings } = await checkConfiguration(toolhost, config);
    assert.deepEqual(problems, []);
    assertPatterns(warnings, expected, config);
  };

  it('gives a server the access login, with a stored credential or with values of people', async () => {
    const stored = { authentication: { type: 'Bearer', token: '{{API_TOKEN}}' } };
    for (const config of [
      buildServerConfig({ login: {} }),
      buildServerConfig({ login: {}, ...stored }),
      buildServerConfig({ login: {}, credentials: { extra: { type: 'ApiKey', token: '{{A}}' } } }),
      buildPersonal(),
      buildPersonal({ authentication: { type: 'Basic', user: '{{site}}/token', password: '{{KEY}}' } }),
      buildPersonal({ authentication: [{ type: 'ApiKey', header: 'X-Key', token: '{{KEY}}' }] }),
    ]) {
      const { problems, access } = await checkConfiguration(toolhost, config);
      assert.deepEqual([problems, access], [[], 'login'], JSON.stringify(config));
    }
    const withOauth = buildServerConfig({ login: {}, oauth: oauthConfig, authentication: { type: 'Bearer' } });
    assert.equal((await checkConfiguration(toolhost, withOauth)).access, 'oauth');
  });

  it('refuses a credential that nothing fills, because people who log in have no token of the API', async () => {
    const missing = /token: is missing; people who log in here have no token of the API.*\{\{FIELD\}\}/;
    for (const [authentication, path] of [
      [{ type: 'Bearer' }, 'authentication.token'],
      [[{ type: 'Bearer' }, { type: 'ApiKey', header: 'X-Key', token: '{{KEY}}' }], 'authentication[0].token'],
    ] as const) {
      const [problem = '', ...others] = await findProblems(buildServerConfig({ login: {}, authentication }));
      assert.match(problem, missing);
      assert.ok(problem.startsWith(`${path}: `), problem);
      assert.deepEqual(others, []);
    }
    const next = { oauth: oauthConfig, authentication: { type: 'Bearer', token: '{{KEY}}' } };
    assert.match(
      (await findProblems(buildServerConfig({ login: { allow: { members: true } }, ...next })))[0] ?? '',
      /^authentication\.token: cannot be combined with oauth/,
    );
  });

  it('refuses an allow that lets no one in, public suffixes, and patterns', async () => {
    const noOne = /^login\.allow: lets no one in; set members to true/;
    for (const allow of [{}, { members: false }, { domains: [] }, { members: false, groups: [] }])
      await assertLogin({ allow }, noOne);
    for (const allow of [
      { members: true },
      { groups: ['support'] },
      { domains: ['Example.com', 'mail.example.co.uk', 'xn--bcher-kva.example'] },
    ])
      await assertLogin({ allow });
    for (const [domain, expected] of [
      ['*.example.com', /domains\[0\]: found "\*\.example\.com"; patterns are not allowed/],
      ['com', /domains\[0\]: .* allowed: the part of an email address after the @/],
      ['co.uk', /domains\[0\]: found "co\.uk", below which anyone can register a name/],
      ['city.kawasaki.jp', /^$/],
      ['kawasaki.jp', /below which anyone can register/],
      ['github.io', /below which anyone can register/],
      ['someone@example.com', /allowed: the part of an email address/],
      ['@example.com', /allowed: the part of an email address/],
      ['example.com.', /allowed: the part of an email address/],
      ['example .com', /allowed: the part of an email address/],
    ] as const)
      await assertLogin({ allow: { domains: [domain] } }, ...(expected.source === '^$' ? [] : [expected]));
  });

  it('accepts a client as the URL of its metadata document or as one redirect URI', async () => {
    await assertLogin({
      clients: [
        'https://claude.ai/api/mcp/auth_callback',
        'http://127.0.0.1:6274/oauth/callback',
        'http://localhost/callback',
        'cursor://anysphere.cursor-mcp/oauth/callback',
      ],
    });
    const found = /^login\.clients\[0\]: found .*; allowed: the https URL of a client's metadata document/;
    for (const client of [
      ...['claude', 'https://claude.ai/*', 'https://*.example.com/', 'https://a@example.com/', 'https://a.example/#b'],
      ...['http://example.com/callback', 'javascript:alert(1)', 'file:///etc/passwd', 'https://a.example/ b'],
    ])
      await assertLogin({ clients: [client] }, found);
    await assertLogin({ clients: ['https://a.example/x', 'https://a.example/x'] }, /clients\[1\]: is listed twice/);
  });

  it('refuses view rules that name no view or are never reached', async () => {
    await assertLogin({ views: [{ group: 'finance', view: 'finance' }, { view: 'support' }] });
    await assertLogin(
      { views: [{ group: 'finance', view: 'finanse' }] },
      /^login\.views\[0\]\.view: the server has no view "finanse"; did you mean `finance`\?/,
    );
    await assertLogin(
      { views: [{ view: 'support' }, { group: 'finance', view: 'finance' }] },
      /^login\.views\[1\]: is never reached, because an earlier entry without group applies to everyone/,
    );
    await assertLogin(
      {
        views: [
          { group: 'a', view: 'support' },
          { group: 'a', view: 'finance' },
        ],
      },
      /^login\.views\[1\]\.group: is already in an earlier entry/,
    );
  });

  it('refuses fields with names, defaults, patterns, or help that cannot work', async () => {
    const plain = { secret: false };
    const accepted = [
      field('A', { ...plain, default: 'eu', pattern: 'eu|us', help: 'https://example.com/help' }),
      field('B', { optional: true, max_length: 20 }),
    ];
    await assertLogin({ fields: accepted });
    for (const [fields, expected] of [
      [[field('A'), field('A')], /fields\[1\]\.name: "A" is already the name of another field/],
      [[field('A', { default: 'x' })], /fields\[0\]\.default: cannot be combined with a secret/],
      [
        [field('A', { ...plain, default: 'de', pattern: 'eu|us' })],
        /fields\[0\]\.default: found "de"; allowed: a value/,
      ],
      [[field('A', { ...plain, default: 'euro', pattern: 'eu' })], /fields\[0\]\.default: found "euro"/],
      [[field('A', { ...plain, default: 'long', max_length: 3 })], /fields\[0\]\.default: found "long"/],
      [[field('A', { ...plain, default: ' x' })], /fields\[0\]\.default: .* without outer spaces/],
      [[field('A', { help: 'http://example.com' })], /fields\[0\]\.help: .* allowed: an https URL/],
      [[field('A', { help: 'javascript:alert(1)' })], /fields\[0\]\.help: /],
      [[field('A', { pattern: '(' })], /fields\[0\]\.pattern: found "\(", which /],
      [[field('A', { pattern: 'a)|(b' })], /fields\[0\]\.pattern: /],
      [[field('A', { pattern: '((a{1,20}){1,20}){1,20}' })], /fields\[0\]\.pattern: .* repeats too much/],
      [[field('A', { pattern: '(a|a|a|a|a|a|a|a|a|a|a|a)*' })], /fields\[0\]\.pattern: .* set a smaller max_length/],
      [[field('A', { label: 'Ko\u202Enn' })], /fields\[0\]\.label: .* invisible character/],
      [[field('A', { label: 'x'.repeat(61) })], /fields\[0\]\.label: /],
      [[field('a-b')], /fields\[0\]\.name: /],
      [[{ ...field('A'), lable: 'B' }], /fields\[0\]\.lable: unknown field; did you mean `label`/],
      [Array.from({ length: 11 }, (_, index) => field(`F${index}`)), /login\.fields: /],
    ] as const)
      await assertLogin({ fields } as Json, expected);
    const [variable] = await findProblems(buildPersonal({ variables: { KEY: { value: 'x' } } }));
    assert.match(variable ?? '', /^login\.fields\[1\]\.name: "KEY" is already a variable of the server/);
  });

  it('suggests the names of misspelled settings', async () => {
    await assertLogin({ allow: { member: true } }, /^login\.allow\.member: unknown field; did you mean `members`/);
    await assertLogin({ field: [] }, /^login\.field: unknown field; did you mean `fields`/);
  });

  it('refuses a login that needs to know the person next to token_mode passthrough', async () => {
    const oauth = { ...oauthConfig, token_mode: 'passthrough' };
    const build = (login: Json) => buildServerConfig({ login, oauth, views, authentication: { type: 'Bearer' } });
    for (const [name, login] of [
      ['allow', { allow: { members: true } }],
      ['views', { views: [{ view: 'support' }] }],
      ['fields', { fields: [key] }],
    ] as const) {
      const problems = await findProblems(build(login));
      assertPatterns(problems, [/cannot be combined with token_mode "passthrough"/], name);
      assert.ok(problems[0]?.startsWith(`login.${name}: `), name);
    }
    assert.deepEqual(await findProblems(build({ clients: ['https://a.example/x'] })), []);
  });

  it('puts a value of a person into exactly one label in front of a fixed suffix', async () => {
    for (const url of [
      ...[personalUrl, 'https://{{ site }}.atlassian.net/a?b={{KEY}}', 'https://{{site}}.api.example.co.uk:8443/'],
      ...['https://{{site}}.example.com/{{KEY}}/:id', 'https://{{site}}.zendesk.com'],
    ])
      assert.deepEqual(await findProblems(buildPersonal({}, { url, input_schema: { id: text } })), [], url);
    const based = buildPersonal({ base_url: 'https://{{site}}.example.com/v1' }, { url: '/things/{{KEY}}' });
    assert.deepEqual(await findProblems(based), []);
    const label = /\{\{site\}\} may only be the whole first label of a host/;
    const registry = /anyone can register a name below/;
    for (const [url, expected] of [
      ['https://{{site}}.com/', /needs at least two fixed labels after \{\{site\}\}/],
      ['https://{{site}}/', label],
      ['https://{{site}}.co.uk/', registry],
      ['https://{{site}}.com.', /at least two fixed labels/],
      ['https://{{site}}.kawasaki.jp/', registry],
      ['https://api.{{site}}.example.com/', label],
      ['https://my-{{site}}.example.com/', label],
      ['https://{{site}}x.example.com/', label],
      ['https://{{site}}{{KEY}}.example.com/', label],
      ['https://{{site}}.{{KEY}}.example.com/', label],
      ['https://{{site}}.example.com:{{KEY}}/', label],
      ['https://{{site}}.example.com@x.example.org/', label],
      ['https://{{site}}@example.com/', label],
      ['https://{{site}}.0.0.1/', label],
      ['http://{{site}}.example.com/', /found http:\/\/; allowed: https:\/\//],
      ['https://{{site}}.localhost/', /at least two fixed labels/],
      ['{{site}}/things', /\{\{site\}\} is a whole origin, which only a value of oauth\.values with hosts may be/],
      ['https://{{other}}.example.com/', /\{\{other\}\} is in the host, where only variables are allowed/],
      ['{{other}}/things', /begins with \{\{other\}\}, which is not a variable/],
    ] as const) {
      assertPatterns(await findProblems(buildPersonal({}, { url })), [expected], url);
      const base_url = url.replace(/\/(things)?$/, '');
      const [problem = ''] = await findProblems(buildPersonal({ base_url }, { url: '/things' }));
      assert.ok(problem.startsWith('base_url: '), `${url}: ${problem}`);
    }
    const optional = buildPersonal({ login: { fields: [{ ...site, optional: true }, key] } });
    assertPatterns(await findProblems(optional), [/\{\{site\}\} is in the host, but the field is optional/], optional);
  });

  it('refuses secrets and stored credentials in a request to a host that people choose', async () => {
    const secret = /would send the secret API_TOKEN to \{\{site\}\}\.atlassian\.net, which each person chooses/;
    const credential = /would send the stored credential to \{\{site\}\}\.atlassian\.net/;
    for (const [more, tool, expected] of [
      [{ headers: { 'X-Key': '{{API_TOKEN}}' } }, {}, secret],
      [{}, { headers: { 'X-Key': 'a {{API_TOKEN}}' } }, secret],
      [{}, { url: `${personalUrl}?key={{API_TOKEN}}` }, secret],
      [{}, { url: `${personalUrl}/{{API_TOKEN}}` }, secret],
      [{}, { input_schema: { a: { ...text, value: '{{API_TOKEN}}' } } }, secret],
      [{}, { method: 'POST', body_template: { a: ['{{API_TOKEN}}'] } }, secret],
      [{ authentication: { type: 'Bearer', token: '{{API_TOKEN}}' } }, {}, credential],
      [{ authentication: { type: 'Bearer', token: 'a-literal-token' } }, {}, credential],
      [{ authentication: { type: 'Basic', user: '{{site}}', password: '{{API_TOKEN}}' } }, {}, credential],
      [{ credentials: { extra: { type: 'ApiKey', token: '{{API_TOKEN}}' } } }, { credential: 'extra' }, credential],
    ] as const)
      assertPatterns(await findProblems(buildPersonal(more, tool)), [expected], [more, tool]);
    const shared = {
      type: 'ClientCredentials',
      token_url: 'https://a.example.com/t',
      client_id: '{{KEY}}',
      client_secret: 's',
    };
    assertPatterns(
      await findProblems(buildPersonal({ authentication: shared }, { url: 'https://a.example.com/{{site}}' })),
      [/^authentication\.client_id: \{\{KEY\}\} belongs to one person, but all callers share the token/],
      shared,
    );
    for (const [more, tool] of [
      [{ authentication: { type: 'Bearer', token: '{{API_TOKEN}}' } }, { credential: 'none' }],
      [{ variables: { region: { value: 'eu' } } }, { headers: { 'X-Region': '{{region}}' } }],
      [{ oauth: oauthConfig, authentication: { type: 'Bearer' } }, {}],
    ] as const)
      assert.deepEqual(await findProblems(buildPersonal(more, tool)), [], JSON.stringify([more, tool]));
  });

  it('accepts fields in the URLs of the provider under the same rules for hosts', async () => {
    const build = (urls: Json) =>
      buildPersonal({ oauth: { ...oauthConfig, ...urls }, authentication: { type: 'Bearer' } });
    const token_url = 'https://{{site}}.zendesk.com/oauth/tokens';
    for (const urls of [
      { authorization_url: 'https://{{site}}.zendesk.com/oauth/authorizations/new', token_url },
      { token_url, refresh_url: 'https://{{site}}.zendesk.com/oauth/refresh?type={{KEY}}' },
      { token_url: 'https://login.example.com/{{site}}/token' },
    ])
      assert.deepEqual(await findProblems(build(urls)), [], JSON.stringify(urls));
    for (const [urls, expected] of [
      [{ token_url: 'https://{{site}}.com/token' }, /^oauth\.token_url: the host needs at least two fixed labels/],
      [{ authorization_url: 'https://a.{{site}}.example.com/' }, /^oauth\.authorization_url: .* whole first label/],
      [{ token_url: 'https://a.example.com/?{{KEY}}=1' }, /not allowed in a query name/],
      [
        { token_url: 'https://a.example.com/{{API_TOKEN}}' },
        /token_url: \{\{NAME\}\} is not replaced here; .* login\.fields/,
      ],
      [{ token_url: 'https://{{API_TOKEN}}.example.com/' }, /token_url: \{\{NAME\}\} is not replaced here/],
      [{ token_url, refresh_url: 'https://{{KEY}}.zendesk.com/x' }, /^oauth\.refresh_url: found the origin/],
      [{ client_id: '{{KEY}}' }, /^oauth\.client_id: \{\{NAME\}\} is not replaced here; enter the value itself$/],
    ] as const)
      assertPatterns(await findProblems(build(urls)), [expected], urls);
  });

  it('accepts values of the login at the provider, and a declared origin as the origin of URLs', async () => {
    const hosts = ['*.my.salesforce.com', 'login.example.com'];
    const values = { instance_url: { from: 'token.instance_url', hosts }, realmId: 'callback.realmId' };
    const build = (tool: Json, more: Json = {}) =>
      buildServerConfig({
        oauth: { ...oauthConfig, values },
        authentication: { type: 'Bearer' },
        tools: [buildToolConfig(tool)],
        ...more,
      });
    for (const [tool, more] of [
      [{ url: '{{instance_url}}/services/{{realmId}}?a={{realmId}}' }, {}],
      [{ url: '{{ instance_url }}?a=b' }, {}],
      [{ url: '/services/:id', input_schema: { id: text } }, { base_url: '{{instance_url}}/v1' }],
      [{ url: 'https://{{realmId}}.example.com/', headers: { 'X-Realm': '{{realmId}}' } }, {}],
    ] as const)
      assert.deepEqual(await findProblems(build(tool, more)), [], JSON.stringify([tool, more]));
    const withValues = (declared: Json) => ({ oauth: { ...oauthConfig, values: declared } });
    const from = 'token.instance_url';
    for (const [tool, more, expected] of [
      [{ url: '{{realmId}}/services' }, {}, /\{\{realmId\}\} is a whole origin, .* declare its hosts/],
      [{ url: '{{instance_url}}.example.com/' }, {}, /tools\[0\]\.url: /],
      [{ url: 'https://{{instance_url}}/services' }, {}, /may only be the whole first label of a host/],
      [{ url: '{{instance_url}}/{{API_TOKEN}}' }, {}, /would send the secret API_TOKEN to \{\{instance_url\}\}/],
      [
        {},
        withValues({ a: { from, hosts: ['*.com.br'] } }),
        /^oauth\.values\.a\.hosts\[0\]: anyone can register a name/,
      ],
      [{}, withValues({ a: { from, hosts: ['*.com'] } }), /^oauth\.values\.a\.hosts\[0\]: /],
      [{}, withValues({ a: { from, host: [] } }), /^oauth\.values\.a\.host: unknown field; did you mean `hosts`/],
      [{}, { variables: { realmId: { value: 'x' } } }, /^oauth\.values\.realmId: is already a variable of the server/],
      [{}, { login: { fields: [field('realmId')] } }, /^oauth\.values\.realmId: is already a field of login/],
    ] as const)
      assertPatterns((await findProblems(build(tool, more))).slice(0, 1), [expected], [tool, more]);
    const { warnings } = await checkConfiguration(toolhost, build({ url: '{{instance_url}}/services' }));
    assert.deepEqual(warnings, ['oauth.values.realmId: no {{realmId}} refers to it']);
    const slug = 'declared-origin';
    const stored = await toolhost.rest('POST', '/servers', { body: { ...build({ url: '{{instance_url}}/a' }), slug } });
    assert.equal(stored.status, 201, stored.text);
    const { body } = await toolhost.rest('GET', `/servers/${slug}/limits`);
    assert.deepEqual(
      (body.upstreams as Json[]).map(({ origin }) => origin),
      ['https://*.my.salesforce.com', 'https://login.example.com'],
    );
  });

  it('shows a preview with the host as it is configured, and with every value of a person masked', async () => {
    const slug = 'masked-preview';
    const tool = { url: 'https://{{site}}.example.com/{{site}}/:id?a={{KEY}}', input_schema: { id: text } };
    const config = { ...buildPersonal({}, { ...tool, headers: { 'X-Key': 'k {{KEY}}' } }), slug };
    assert.equal((await toolhost.rest('POST', '/servers', { body: config })).status, 201);
    const path = `/servers/${slug}/tools/get_thing/preview`;
    const { body, text: preview } = await toolhost.rest('POST', path, { body: { arguments: { id: '7' } } });
    assert.equal((body.request as Json).url, 'https://{{site}}.example.com/********/7?a=********', preview);
    assert.match(preview, /"k \*{8}"/);
    assert.equal(body.refusal, undefined);
  });

  it('warns about unused fields, and about suffixes and providers that a person completes', async () => {
    await assertWarnings(buildPersonal());
    await assertWarnings(
      buildPersonal({ login: { fields: [site, key, field('UNUSED')] } }),
      /^login\.fields\[2\]\.name: no \{\{UNUSED\}\} refers to it/,
    );
    const shared = buildPersonal({}, { url: 'https://{{site}}.myshopify.com/{{KEY}}' });
    await assertWarnings(shared, /^tools\[0\]\.url: customers of one company get names below myshopify\.com/);
    const token_url = 'https://{{site}}.example.com/token';
    const authorization_url = 'https://{{site}}.example.com/authorize';
    const oauth = { ...oauthConfig, authorization_url, token_url };
    await assertWarnings(
      buildPersonal({ oauth, authentication: { type: 'Bearer' } }),
      /^oauth\.token_url: sends the client secret to the host below example\.com that the person enters/,
    );
    await assertWarnings(
      buildServerConfig({ login: {}, oauth: oauthConfig, authentication: { type: 'Bearer' } }),
      /^login: changes nothing next to oauth/,
    );
  });

  it('never stores a secret under the name of a value that people bring', async () => {
    const slug = 'no-secret-for-a-person';
    assert.equal((await toolhost.rest('POST', '/servers', { body: { ...buildPersonal(), slug } })).status, 201);
    const path = `/servers/${slug}`;
    const refused = await toolhost.rest('PUT', `${path}/secrets/KEY`, { body: { value: 'v' } });
    assert.equal(refused.status, 409);
    assert.match(refused.text, /each person provides \{\{KEY\}\} at login, and a stored value never replaces it/);
    assert.equal((await toolhost.rest('PUT', `${path}/secrets/OTHER`, { body: { value: 'v' } })).status, 200);
    const config = { ...buildPersonal({ login: { fields: [site, key, field('OTHER')] } }), slug };
    const changed = await toolhost.rest('PUT', path, { body: config });
    assert.equal(changed.status, 400);
    assert.match(changed.text, /login\.fields\[2\]\.name.*OTHER is also a secret of the server/s);
  });
});
