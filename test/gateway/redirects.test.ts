import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { after, before, describe, it } from 'node:test';
import tls from 'node:tls';
import fc from 'fast-check';
import type { Resolve } from '../../src/outbound/connector.ts';
import { tries } from '../sets.ts';
import { onTime } from '../support/on-time.ts';
import { callerToken, errorOf, type OneTool, startOneTool, textOf } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { selfSigned } from '../support/upstreams/certificate.ts';
import { type Listener, startListener, startWebPortListener } from '../support/upstreams/listener.ts';
import {
  type RecordedRequest,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';

/** Resolver of these tests. */
const resolve: Resolve = (hostname, callback) => {
  if (hostname === 'files.example') callback(null, [{ address: '127.0.0.1', family: 4 }]);
  else if (hostname === 'private.example.com') callback(null, [{ address: '10.0.0.1', family: 4 }]);
  else callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), []);
};

describe('a tool with redirects: "follow"', () => {
  let one: OneTool;
  let other: RecordingUpstream;
  let secure: Server;
  let canary: Listener;
  let securePort: number;
  const trusted = tls.getCACertificates('default');
  /** Redirect target of https://files.example/. */
  let secureTarget = '';

  before(async () => {
    other = await startRecordingUpstream();
    canary = await startListener();
    const identity = selfSigned('files.example');
    tls.setDefaultCACertificates([...trusted, identity.cert]);
    const free = await startWebPortListener();
    await free.close();
    securePort = free.port;
    secure = createServer(identity, (_, response) => response.writeHead(302, { location: secureTarget }).end());
    await once(secure.listen(securePort, '127.0.0.1'), 'listening');
    one = await startOneTool({ egress: [other.port, securePort], surroundings: { resolve } });
  });
  after(async () => {
    tls.setDefaultCACertificates(trusted);
    await one?.stop();
    secure?.closeAllConnections();
    secure?.close();
    await Promise.all([other?.close(), canary?.close()]);
  });

  const follow = (url: string, tool: Json = {}, server: Json = {}) =>
    one.serve({ url, redirects: 'follow', ...tool }, server);
  const lead = (from: RecordingUpstream, path: string, location: string, status = 302) =>
    from.on(`GET ${path}`, () => ({ status, headers: { location, 'set-cookie': 'session=upstream' } }));
  const file = (at: RecordingUpstream, path: string) =>
    at.on(`GET ${path}`, () => ({ body: 'the file', headers: { 'content-type': 'text/plain' } }));
  const take = () => ({ home: one.upstream.take(), away: other.take() });
  const refusalOf = async (slug: string, token = callerToken) =>
    errorOf(await one.toolhost.callTool(slug, token, 'run'));

  it('[conf 5] percent-encodes a UTF-8 Location once', async () => {
    for (const [path, location] of [
      ['/to-cafe', '/café/日本'],
      ['/to-encoded', '/caf%C3%A9/%E6%97%A5%E6%9C%AC'],
    ] as const) {
      lead(one.upstream, path, Buffer.from(location).toString('latin1'));
      file(one.upstream, '/caf%C3%A9/%E6%97%A5%E6%9C%AC');
      assert.equal(textOf(await one.call(await follow(path))), 'the file');
      assert.match(errorOf(await one.call(await one.serve({ url: path }))), /to \/caf%C3%A9\/%E6%97%A5%E6%9C%AC on/);
    }
    take();
  });

  it('[conf 5] follows every kind of redirect, to any host, up to three times', async () => {
    file(other, '/file');
    file(one.upstream, '/file');
    for (const status of [301, 302, 303, 307, 308]) {
      lead(one.upstream, '/a', 'b?x=1#part', status);
      lead(one.upstream, '/b', `${other.url}/c?signature=s`, status);
      lead(other, '/c', '/file', status);
      take();
      assert.equal(textOf(await one.call(await follow('/a'))), 'the file');
      const { home, away } = take();
      assert.deepEqual(
        home.map(({ url }) => url),
        ['/a', '/b?x=1'],
      );
      assert.deepEqual(
        away.map(({ method, url }) => `${method} ${url}`),
        ['GET /c?signature=s', 'GET /file'],
      );
    }
    one.upstream.on('HEAD /a', () => ({ status: 302, headers: { location: `${other.url}/file` } }));
    other.on('HEAD /file', () => ({ headers: { etag: '"f"' } }));
    const head = await one.call(await follow('/a', { method: 'HEAD', response_headers: ['ETag'] }));
    assert.equal(textOf(head), '200 OK\nETag: "f"');
  });

  it('[conf 5] [sec A4] sends nothing of the tool or its caller to another origin', async () => {
    lead(one.upstream, '/a', `${other.url}/file`);
    file(other, '/file');
    const tool = {
      headers: { 'X-Static': 'static-value', 'X-Secret': '{{KEY}}', Cookie2: 'c=1', Accept: '*/*' },
      input_schema: { 'X-Argument': { type: 'string', in: 'header' }, q: { type: 'string' } },
    };
    const credentials: Json[] = [
      { type: 'Bearer' },
      { type: 'Basic' },
      { type: 'ApiKey', header: 'X-Key' },
      { type: 'QueryParam', query_key: 'key' },
    ];
    for (const authentication of credentials) {
      const slug = await follow('/a', tool, { authentication: { ...authentication, token: '{{KEY}}' } });
      await one.toolhost.rest('PUT', `/servers/${slug}/secrets/KEY`, { body: { value: 'the-stored-secret' } });
      take();
      const args = { 'X-Argument': 'argument-value', q: 'query-value' };
      const result = await one.toolhost.callTool(slug, await one.toolhost.key(), 'run', args);
      assert.equal(textOf(result), 'the file');
      const { home, away } = take();
      assert.match(JSON.stringify([home[0]?.url, home[0]?.headers]), /the-stored-secret/);
      const names = Object.keys(away[0]?.headers ?? {}).sort();
      assert.deepEqual(names, ['accept', 'connection', 'host', 'toolhost-hop', 'user-agent']);
      assert.equal(away[0]?.headers.accept, '*/*');
      assert.equal(away[0]?.url, '/file');
    }
  });

  it('[conf 5] keeps the credential for redirects within the same host, and never sends it again after another host', async () => {
    const authentication = { type: 'Bearer' };
    const bearer = ({ headers }: RecordedRequest) => headers.authorization !== undefined;
    const slug = await follow('/hop-0', {}, { authentication });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 3 }), async (stays) => {
        const hosts = [one.upstream, ...stays.map((stay) => (stay ? one.upstream : other))];
        for (const [hop, host] of hosts.entries()) {
          const next = hosts[hop + 1];
          if (next) lead(host, `/hop-${hop}`, `${next.url}/hop-${hop + 1}`);
          else file(host, `/hop-${hop}`);
        }
        take();
        assert.equal(textOf(await one.call(slug)), 'the file');
        const { home, away } = take();
        const sent = [...home, ...away].sort((a, b) => a.url.localeCompare(b.url));
        const firstAway = stays.indexOf(false);
        const expected = hosts.map((_, hop) => firstAway < 0 || hop <= firstAway);
        assert.deepEqual(sent.map(bearer), expected);
      }),
      { numRuns: tries(30) },
    );
  });

  it('[conf 5] rejects the fourth redirect, a redirect loop, and a redirect from https to http', async () => {
    for (const hop of [1, 2, 3, 4, 5]) lead(one.upstream, `/long-${hop}`, `/long-${hop + 1}?secret-query=1`);
    take();
    assert.match(
      await refusalOf(await follow('/long-1')),
      /^HTTP 302: the redirect to \/long-5 on a host that is specified by its IP address after 3 other redirects was not followed: a call follows at most 3 redirects$/,
    );
    assert.equal(take().home.length, 4);
    lead(one.upstream, '/round', `${other.url}/back`);
    lead(other, '/back', `${one.upstream.url}/round#again`);
    assert.match(
      await refusalOf(await follow('/round')),
      /after 1 other redirects? was not followed: it leads back to a URL that was already requested \(a redirect loop\)$/,
    );
    assert.deepEqual([take().home.length], [1]);
    other.take();
    secureTarget = `${other.url}/file`;
    assert.match(
      await refusalOf(await follow(`https://files.example:${securePort}/`)),
      /was not followed: it leads from https to http, where others can read the response$/,
    );
    assert.equal(other.take().length, 0);
  });

  it('[conf 5] [sec B1] contacts no target that a configuration could not contain', async () => {
    const contacts = canary.connections;
    const cases: [string, RegExp][] = [
      [`http://127.0.0.1:${canary.port}/`, /: its URL is not allowed; allowed: https, web ports, and public hosts$/],
      [`https://127.0.0.1:${canary.port}/`, /its URL is not allowed/],
      ['http://169.254.169.254/latest/meta-data', /its URL is not allowed/],
      ['https://[::ffff:7f00:1]/', /its URL is not allowed/],
      ['https://2130706433/', /its URL is not allowed/],
      ['https://db.internal/', /its URL is not allowed/],
      ['https://files.example:22/', /its URL is not allowed/],
      ['http://files.example/', /its URL is not allowed/],
      ['ftp://files.example/', /its URL is not allowed/],
      ['javascript:alert(1)', /^HTTP 302: the redirect to another URL was not followed/],
      ['data:text/plain,x', /was not followed/],
      [`${one.toolhost.url}/mcp/other`, /its URL is not allowed/],
      ['https://me:pass@files.example/', /: its URL contains a user name or password$/],
      [
        'https://private.example.com/',
        /^after a redirect: the upstream host does not resolve to an address that may be called$/,
      ],
      [
        'https://missing.example.com/x?secret-query',
        /^after a redirect: the host missing\.example\.com was not found$/,
      ],
      ['', /^HTTP 302: the redirect to another URL was not followed: it has no valid URL$/],
      ['https://', /it has no valid URL$/],
    ];
    const slug = await follow('/away');
    for (const [location, message] of cases) {
      lead(one.upstream, '/away', location);
      const said = await refusalOf(slug);
      assert.match(said, message, location);
      assert.doesNotMatch(said, /secret-query|169\.254|me:pass/);
    }
    assert.equal(canary.connections, contacts);
  });

  it('[conf 5] rejects a redirect that would send a credential in its URL to another origin', async () => {
    const slug = await follow('/echo', {}, { authentication: { type: 'QueryParam', query_key: 'key' } });
    const forms = [callerToken, encodeURIComponent(callerToken), Buffer.from(callerToken).toString('base64')];
    for (const form of forms) {
      lead(one.upstream, '/echo', `${other.url}/file?key=${form}`);
      other.take();
      const said = await refusalOf(slug);
      assert.match(said, /was not followed: it would send a credential of this call to another origin$/);
      assert.ok(!said.includes(form));
      assert.deepEqual(other.take(), []);
    }
    lead(one.upstream, '/echo', `/kept?key=${callerToken}`);
    file(one.upstream, '/kept');
    assert.equal(textOf(await one.call(slug)), 'the file');
  });

  it('[conf 5] sends a request with a body only once', async () => {
    lead(one.upstream, '/a', `${one.upstream.url}/file`);
    file(one.upstream, '/file');
    take();
    const input_schema = { filter: { type: 'string', in: 'body' } };
    const slug = await follow('/a', { input_schema });
    const said = errorOf(await one.call(slug, { filter: 'x' }));
    assert.match(
      said,
      /^HTTP 302: the redirect to .* was not followed: the request has a body, which is sent only once$/,
    );
    const [only, ...more] = take().home;
    assert.deepEqual([only?.body.toString(), more], ['{"filter":"x"}', []]);
  });

  it('[conf 5] applies one timeout to the call and all its redirects', async () => {
    other.on('GET /held', () => 'hold');
    other.take();
    // If a pause of the machine uses up the timeout before the redirect, the test retries with a longer one.
    for (let ms = 2000; other.requests.length === 0 && ms <= 16_000; ms *= 2) {
      const location = `${other.url}/held`;
      one.upstream.on('GET /slow', () => ({ status: 302, headers: { location }, delayMs: ms / 2 }));
      const slug = await follow('/slow', { timeout_ms: ms });
      // A separate timeout for the redirect would end at least a second later.
      const said = await onTime(ms, () => refusalOf(slug));
      if (other.requests.length > 0)
        assert.equal(said, `the upstream did not respond within ${ms} ms, including redirects`);
    }
    const [held] = other.take();
    assert.equal(await held?.closed, 'aborted');
  });

  it('[conf 5] returns an error of the redirect target as error of the call, without the credential', async () => {
    lead(one.upstream, '/a', `${other.url}/gone`);
    other.on('GET /gone', () => ({ status: 401, body: 'signature expired' }));
    const slug = await follow('/a', {}, { authentication: { type: 'Bearer' } });
    assert.equal(await refusalOf(slug), 'HTTP 401 Unauthorized\nsignature expired');
    const { body } = await one.toolhost.rest('GET', `/calls?slug=${slug}`);
    const [call] = body.calls as Json[];
    assert.deepEqual(
      [call?.outcome, call?.upstream_status, call?.upstream_host],
      ['upstream_status', 401, new URL(one.upstream.url).host],
    );
  });

  it('[conf 5] sends exactly one request without redirects: "follow"', async () => {
    lead(one.upstream, '/a', `${other.url}/file`);
    take();
    const said = await refusalOf(await one.serve({ url: '/a' }));
    assert.match(said, /redirects are not followed unless the tool has redirects: "follow"$/);
    const { home, away } = take();
    assert.deepEqual([home.length, away.length], [1, 0]);
  });
});
