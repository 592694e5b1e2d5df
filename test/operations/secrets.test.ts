import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { pluck } from '../support/pluck.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const mask = '********';

describe('stored credentials', async () => {
  const [upstream, otherUpstream] = await Promise.all([startRecordingUpstream(), startRecordingUpstream()]);
  const toolhost = await startToolhost({ egressPorts: [upstream.port, otherUpstream.port] });
  const key = await toolhost.createKey();
  beforeEach(() => {
    upstream.take();
    otherUpstream.take();
  });
  after(() => Promise.all([toolhost.stop(), upstream.close(), otherUpstream.close()]));

  let count = 0;
  const create = async (more: Json = {}) => {
    const slug = `stored-${++count}`;
    await toolhost.createServer(buildServerAt(slug, upstream.url, more));
    return slug;
  };
  const setSecret = (slug: string, name: string, value: string) =>
    toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
  const change = (slug: string, body: Json) => toolhost.rest('PATCH', `/servers/${slug}`, { body });
  const getConfig = async (slug: string) => (await toolhost.rest('GET', `/servers/${slug}`)).body.config as Json;
  /** Returns the error that the agent reads after a failed call, and asserts that no request was sent. */
  const callWithoutRequest = async (slug: string, name = 'get') => {
    const result = await toolhost.callTool(slug, key, name);
    assert.equal(result.isError, true);
    assert.deepEqual([upstream.take(), otherUpstream.take()], [[], []]);
    return result.content[0]?.text ?? '';
  };
  const callAndGetRequest = async (slug: string, name = 'get') => {
    assert.notEqual((await toolhost.callTool(slug, key, name)).isError, true);
    const [request] = upstream.take();
    assert.ok(request);
    return request;
  };
  const post = (config: Json) => toolhost.rest('POST', '/servers', { body: config });
  const check = async (slug: string, more: Json) => {
    const { body } = await toolhost.rest('POST', '/check', { body: { ...(await getConfig(slug)), ...more } });
    return body.warnings as Json[];
  };
  const oauthUrls = { authorization_url: 'https://id.example/a', token_url: 'https://id.example/t' };
  const withHeader = (value: string, url = `${upstream.url}/thing`) => ({
    tools: [buildToolAt(url, { headers: { 'X-Service': value } })],
  });

  it('[sec A11] refuse a malformed placeholder, and warn about one without a value', async () => {
    for (const value of ['{{A B}}', '{{}}', '{{A', 'A}}', '{{A}} }}', '{{a-b}}', '{{ENV.PATH}}']) {
      const { status, body } = await post(buildServerAt('malformed', upstream.url, withHeader(value)));
      assert.deepEqual([status, pluck(body.problems, 'path')[0]], [400, 'tools[0].headers.X-Service'], value);
    }
    const reply = await toolhost.createServer(buildServerAt('unknown', upstream.url, withHeader('{{PATH}}')));
    assert.match(JSON.stringify(reply.body.warnings), /\{\{PATH\}\} has no value yet/);
    assert.match(JSON.stringify(reply.body.next_steps), /Set the secret PATH/);
    assert.match(await callWithoutRequest('unknown'), /the secret PATH has no value/);
  });

  it('[sec A11] cause a tool error once their secret is deleted', async () => {
    const slug = await create(withHeader('{{KEY}}'));
    await setSecret(slug, 'KEY', 'value-1');
    assert.equal((await callAndGetRequest(slug)).headers['x-service'], 'value-1');
    assert.equal((await toolhost.rest('DELETE', `/servers/${slug}/secrets/KEY`)).status, 200);
    assert.match(await callWithoutRequest(slug), /the secret KEY has no value/);
    assert.equal((await toolhost.rest('DELETE', `/servers/${slug}/secrets/KEY`)).status, 404);
  });

  it('[sec A11] replace placeholders everywhere, but never inside a secret value', async () => {
    const authentication = { type: 'Bearer', token: '{{ID}}.{{KEY}}' };
    const slug = await create({ authentication, ...withHeader('a {{ KEY }}{{KEY}} b') });
    await setSecret(slug, 'KEY', '{{ID}}$&');
    await setSecret(slug, 'ID', 'me');
    const { headers } = await callAndGetRequest(slug);
    assert.deepEqual([headers.authorization, headers['x-service']], ['Bearer me.{{ID}}$&', 'a {{ID}}$&{{ID}}$& b']);
  });

  it('accept only one line of visible text as a secret', async () => {
    const slug = await create(withHeader('{{KEY}}'));
    for (const value of ['', 'a\nb', 'a\r\nX: y', '\u0000', 'a\u2028b', 'x'.repeat(8193)]) {
      const { status, text } = await setSecret(slug, 'KEY', value);
      assert.equal(status, 400);
      assert.doesNotMatch(text, /x{60}/);
    }
    for (const name of ['1A', 'a-b', 'oauth.client_secret', 'x'.repeat(65)])
      assert.equal((await setSecret(slug, encodeURIComponent(name), 'v')).status, 400, name);
    assert.deepEqual((await toolhost.rest('GET', `/servers/${slug}/secrets`)).body.secrets, []);
  });

  it('send a secret only to the hosts that the server had when it was set', async () => {
    const slug = await create({ authentication: { type: 'Bearer', token: '{{KEY}}' } });
    const { body } = await setSecret(slug, 'KEY', 'bound');
    assert.deepEqual(body.origins, [upstream.url]);
    const tools = [buildToolAt(`${otherUpstream.url}/thing`), buildToolAt(`${upstream.url}/thing`, { name: 'old' })];
    for (const warnings of [await check(slug, { tools }), (await change(slug, { tools })).body.warnings])
      assert.match(JSON.stringify(warnings), /the secret KEY was set for .*; set it again/);
    assert.match(await callWithoutRequest(slug), /set it again to allow that host/);
    assert.equal((await callAndGetRequest(slug, 'old')).headers.authorization, 'Bearer bound');
    const tried = await toolhost.rest('POST', `/servers/${slug}/tools/get/call`, { body: {} });
    assert.equal(tried.body.is_error, true);
    assert.deepEqual(otherUpstream.take(), []);
    const preview = async (name: string) =>
      (await toolhost.rest('POST', `/servers/${slug}/tools/${name}/preview`, { body: {} })).body.refused;
    assert.match(String(await preview('get')), /set it again to allow that host/);
    assert.equal(await preview('old'), undefined);
    await setSecret(slug, 'KEY', 'rebound');
    assert.notEqual((await toolhost.callTool(slug, key, 'get')).isError, true);
    assert.equal(otherUpstream.take()[0]?.headers.authorization, 'Bearer rebound');
  });

  it('seal and mask a credential in the configuration, and bind it to its hosts', async () => {
    const slug = await create({ authentication: { type: 'ApiKey', header: 'apikey', token: 'literal-token' } });
    const authentication = { type: 'ApiKey', header: 'apikey', token: mask };
    assert.deepEqual((await getConfig(slug)).authentication, authentication);
    assert.equal((await callAndGetRequest(slug)).headers.apikey, 'literal-token');
    await change(slug, { description: 'Changed' });
    await change(slug, { authentication });
    assert.equal((await callAndGetRequest(slug)).headers.apikey, 'literal-token');
    const tools = [buildToolAt(`${otherUpstream.url}/thing`)];
    const checkMoved = async (token: string) =>
      pluck(await check(slug, { tools, authentication: { ...authentication, token } }), 'path');
    assert.ok((await checkMoved(mask)).includes('authentication.token'));
    assert.ok(!(await checkMoved('newer-token')).includes('authentication.token'));
    await change(slug, { tools });
    assert.match(await callWithoutRequest(slug), /set it again to allow that host/);
    await change(slug, { authentication: { ...authentication, token: 'newer-token' } });
    assert.notEqual((await toolhost.callTool(slug, key, 'get')).isError, true);
    assert.equal(otherUpstream.take()[0]?.headers.apikey, 'newer-token');
    const versions = await toolhost.rest('GET', `/servers/${slug}/versions`);
    assert.doesNotMatch(versions.text, /literal-token|newer-token/);
  });

  it('require a named credential again for a new host, unless the checked configuration contains it', async () => {
    const slug = await create({ credentials: { admin: { type: 'Bearer', token: 'literal-admin' } } });
    const tools = [buildToolAt(`${otherUpstream.url}/thing`)];
    const checkMoved = async (token: string) => {
      const warnings = await check(slug, { tools, credentials: { admin: { type: 'Bearer', token } } });
      return warnings.filter(({ message }) => /was set for/.test(String(message))).map(({ path }) => path);
    };
    assert.deepEqual(await checkMoved(mask), ['credentials.admin.token']);
    assert.deepEqual(await checkMoved('newer-admin'), []);
  });

  it('reject the mask where no secret is stored', async () => {
    const stored = await create();
    for (const [path, config] of Object.entries({
      'oauth.client_secret': { oauth: { ...oauthUrls, client_id: 'c', client_secret: mask } },
      'authentication.token': { authentication: { type: 'Bearer', token: mask } },
    }))
      for (const reply of [await post(buildServerAt('masked', upstream.url, config)), await change(stored, config)])
        assert.deepEqual([reply.status, pluck(reply.body.problems, 'path')[0]], [400, path]);
  });

  it('[sec A9] refuse reserved static headers in any spelling', async () => {
    const names = [
      ...[
        'AUTHORIZATION',
        'Host',
        'Content-Length',
        'transfer-encoding',
        'Connection',
        'Cookie',
        'Proxy-Authorization',
      ],
      ...['X-Forwarded-For', 'Forwarded', 'Mcp-Session-Id', 'Toolhost-Hop', 'TE', 'Expect', 'a b', 'X:Y', ''],
    ];
    for (const name of names) {
      const tools = [buildToolAt(`${upstream.url}/thing`, { headers: { [name]: 'x' } })];
      const config = buildServerAt('static-headers', upstream.url, { authentication: { type: 'Bearer' }, tools });
      const { status, body } = await post(config);
      assert.equal(status, 400, name);
      assert.match(pluck(body.problems, 'path').join('\n'), /^tools\[0\]\.headers/m, name);
    }
  });

  describe('client_secret', () => {
    const oauth = { ...oauthUrls, client_id: 'c', client_secret: 'client-secret-1' };
    const masked = { ...oauth, client_secret: mask, scopes: [] };
    const foreignConfig = { ...masked, token_url: 'https://stranger.example/t' };

    it('is masked everywhere, and unchanged when the mask is sent back', async () => {
      const slug = await create({ oauth });
      assert.deepEqual((await getConfig(slug)).oauth, masked);
      assert.equal((await change(slug, { oauth: { ...masked, scopes: ['read'] } })).status, 200);
      const body = { ...(await getConfig(slug)), name: 'Put' };
      assert.equal((await toolhost.rest('PUT', `/servers/${slug}`, { body })).status, 200);
      for (const path of ['', '/versions', '/secrets'])
        assert.equal((await toolhost.rest('GET', `/servers/${slug}${path}`)).text.includes('client-secret-1'), false);
      assert.deepEqual((await toolhost.rest('GET', `/servers/${slug}`)).body.secrets, []);
    });

    it('must be sent again when token_url moves to another host', async () => {
      const slug = await create({ oauth });
      const refused = await change(slug, { oauth: foreignConfig });
      assert.match(`${refused.status} ${refused.text}`, /^400 .*send the client secret again/);
      assert.equal((await change(slug, { oauth: { ...masked, token_url: 'https://id.example/other' } })).status, 200);
      assert.equal((await change(slug, { oauth: { ...foreignConfig, client_secret: 'client-secret-2' } })).status, 200);
      assert.equal((await toolhost.rest('POST', `/servers/${slug}/versions/1/restore`, { body: {} })).status, 400);
    });

    it('cannot be moved in two steps by removing oauth in between', async () => {
      const slug = await create({ oauth });
      assert.equal((await change(slug, { oauth: null })).status, 200);
      assert.equal((await change(slug, { oauth: foreignConfig })).status, 400);
      assert.equal((await change(slug, { oauth: { ...foreignConfig, client_secret: 'client-secret-3' } })).status, 200);
    });
  });
});
