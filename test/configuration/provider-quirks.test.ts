import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { buildServerConfig, checkConfiguration, oauthConfig } from '../support/valid-configs.ts';

const zoho = {
  token_url: 'https://accounts.zoho.com/oauth/v2/token',
  token_url_from: {
    from: 'callback.accounts-server',
    hosts: ['accounts.zoho.com', 'accounts.zoho.eu'],
    path: '/oauth/v2/token',
  },
};
const userinfo_url = 'https://api.example.com/accounts';

describe('configuration of providers that deviate from OAuth', () => {
  const toolhost = useFixture(startToolhost);

  async function findProblems(oauth: Json, server: Json = { authentication: { type: 'Bearer' } }): Promise<string> {
    const config = buildServerConfig({ ...server, oauth: { ...oauthConfig, ...oauth } });
    return (await checkConfiguration(toolhost, config)).problems.join('\n');
  }

  it('accepts values of the callback, the token response, and userinfo, as paths and as objects', async () => {
    const values = {
      realm: 'callback.realmId',
      team: 'token.team.id',
      tenant: 'userinfo.accounts.0.tenantId',
      plan: 'userinfo.accounts.0.plan',
      instance: { from: 'token.instance_url', hosts: ['*.my.salesforce.com', 'login.salesforce.com'] },
      store: { from: 'token.context', pattern: '^stores/([a-z0-9]{1,20})$' },
    };
    assert.equal(await findProblems({ values, userinfo_url }), '');
  });

  it('accepts the fields that Zoho, Amazon, VK ID, and eBay need', async () => {
    const cases: Json[] = [
      { ...zoho, token_prefix: 'Zoho-oauthtoken' },
      { code_parameter: 'spapi_oauth_code' },
      { callback_values: ['device_id', 'state'] },
      { redirect_name: 'Example-Example-PRD-1' },
      { token_prefix: '' },
      { response_mode: 'query' },
    ];
    for (const oauth of cases) assert.equal(await findProblems(oauth), '');
  });

  it('reports a value that no login could provide, or that is a credential', async () => {
    const cases: [values: Json, expected: RegExp][] = [
      [{ a: 'body.x' }, /^oauth\.values\.a: found "body\.x"; allowed: callback\.NAME, token\.PATH, or userinfo\.PATH$/],
      [{ a: 'token.' }, /^oauth\.values\.a: found "token\."/],
      [{ 'a b': 'token.x' }, /^oauth\.values\.a b: allowed as a name/],
      [{ a: 'callback.code' }, /^oauth\.values\.a: the service reads this parameter itself/],
      [{ a: 'callback.state' }, /^oauth\.values\.a: the service reads this parameter itself/],
      [{ a: { from: 'token.data.refresh_token' } }, /^oauth\.values\.a\.from: is a token; authentication sends it/],
      [{ a: 'userinfo.id' }, /^oauth\.values\.a: needs userinfo_url, which is missing$/],
      [{ a: { from: 'token.x', hosts: [] } }, /^oauth\.values\.a/],
      [{ a: { from: 'token.x', pattern: 'stores/.*' } }, /^oauth\.values\.a\.pattern: has no first group/],
      [{ a: { from: 'token.x', pattern: '(a)?' } }, /^oauth\.values\.a\.pattern: has no first group/],
      [{ a: { from: 'token.x', pattern: 'x|(a)' } }, /^oauth\.values\.a\.pattern: has no first group/],
      [{ a: { from: 'token.x', pattern: '(a' } }, /^oauth\.values\.a\.pattern: is not an ECMAScript/],
      [{ a: { from: 'token.x', pattern: '(a)\\1' } }, /^oauth\.values\.a\.pattern: /],
      [Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`v${i}`, 'token.x'])), /at most 20 values/],
    ];
    for (const [values, expected] of cases) assert.match(await findProblems({ values }), expected);
  });

  it('reports a host that is not one name, or one label in front of a name', async () => {
    const hosts = ['*', '*.com', 'a.*.com', 'x*.example.com', 'Example.com', 'https://a.example.com', 'localhost'];
    for (const host of [
      ...hosts,
      'a.example.com:8443',
      'a.example.com/x',
      '10.0.0.1',
      'example.com.',
      '*.internal.corp',
    ]) {
      const found = await findProblems({ values: { a: { from: 'token.x', hosts: [host] } } });
      assert.match(found, /^oauth\.values\.a\.hosts\[0\]: found /m, host);
    }
  });

  it('reports userinfo that is read for nothing, at another index than 0, or from two lists', async () => {
    const cases: [oauth: Json, expected: RegExp][] = [
      [{ userinfo_url }, /^oauth\.userinfo_url: is read for no value/],
      [{ userinfo_url: 'http://10.0.0.1/', values: { a: 'userinfo.id' } }, /^oauth\.userinfo_url: found/],
      [{ userinfo_url: `${userinfo_url}/{{X}}`, values: { a: 'userinfo.id' } }, /^oauth\.userinfo_url: \{\{NAME\}\}/],
      [{ userinfo_url, values: { a: 'userinfo.1.id' } }, /^oauth\.values\.a: allowed: the index 0 of one list/],
      [{ userinfo_url, values: { a: 'userinfo.0.b.0' } }, /^oauth\.values\.a: allowed: the index 0 of one list/],
      [
        { userinfo_url, values: { a: 'userinfo.x.0.id', b: 'userinfo.y.0.id' } },
        /^oauth\.values\.b: is in another list/,
      ],
    ];
    for (const [oauth, expected] of cases) assert.match(await findProblems(oauth), expected);
  });

  it('reports quirks that contradict each other or name a parameter of the service', async () => {
    const from = (change: Json) => ({ ...zoho, token_url_from: { ...zoho.token_url_from, ...change } });
    const cases: [oauth: Json, expected: RegExp][] = [
      [from({ from: 'token.server' }), /^oauth\.token_url_from\.from: .*allowed: callback\.NAME/],
      [from({ hosts: ['accounts.zoho.eu'] }), /^oauth\.token_url_from\.hosts: does not contain "accounts\.zoho\.com"/],
      [
        from({ hosts: ['*.zoho.com', 'accounts.zoho.com'] }),
        /^oauth\.token_url_from\.hosts\[0\]: .*allowed: a host name/,
      ],
      [from({ path: 'oauth?x=1' }), /^oauth\.token_url_from\.path: .*allowed: a path/],
      [{ ...zoho, refresh_url: zoho.token_url }, /^oauth\.refresh_url: cannot be combined with token_url_from/],
      [{ code_parameter: 'state' }, /^oauth\.code_parameter: /],
      [{ callback_values: ['code'] }, /^oauth\.callback_values\[0\]: the service reads or sends/],
      [{ callback_values: ['Client_Id'] }, /^oauth\.callback_values\[0\]: the service reads or sends/],
      [{ callback_values: ['x'], token_params: { x: '1' } }, /^oauth\.callback_values\[0\]: is also in token_params/],
      [{ callback_values: ['x', 'x'] }, /^oauth\.callback_values\[1\]: is listed twice/],
      [{ redirect_name: '{{X}}' }, /^oauth\.redirect_name: \{\{NAME\}\} is not replaced/],
      [{ token_prefix: 'two words' }, /^oauth\.token_prefix: .*allowed: one word/],
      [{ response_mode: 'fragment' }, /^oauth\.response_mode: /],
    ];
    for (const [oauth, expected] of cases) assert.match(await findProblems(oauth), expected);
    const basic = { authentication: { type: 'Basic' } };
    assert.match(await findProblems({ token_prefix: 'OAuth' }, basic), /^oauth\.token_prefix: .*sends it as Basic/);
  });

  it('reports fields for which passthrough, which stores nothing of a login, has no place', async () => {
    for (const oauth of [zoho, { callback_values: ['device_id'] }, { values: { a: 'token.x' } }])
      assert.match(
        await findProblems({ ...oauth, token_mode: 'passthrough' }),
        /^oauth\.(values|callback_values|token_url_from): cannot be combined with token_mode passthrough/,
      );
  });

  it('reports response_mode form_post in local mode, which has no https', async () => {
    assert.match(
      await findProblems({ response_mode: 'form_post' }),
      /^oauth\.response_mode: .*not available in local mode$/,
    );
  });
});
