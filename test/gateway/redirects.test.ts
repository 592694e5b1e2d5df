import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import { describe, it } from 'node:test';
import tls from 'node:tls';
import fc from 'fast-check';
import { getRunCount } from '../sets.ts';
import { callerToken, getErrorText, getResultText, startOneTool } from '../support/one-tool.ts';
import { listCalls, setSecret } from '../support/server-requests.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { createSelfSigned } from '../support/upstreams/certificate.ts';
import { resolveExampleNames } from '../support/upstreams/example-names.ts';
import { startListener, startWebPortListener } from '../support/upstreams/listener.ts';
import {
  type RecordedRequest,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { assertWithinDeadline } from '../support/within-deadline.ts';

describe('a tool with redirects: "follow"', () => {
  const defaultCertificates = tls.getCACertificates('default');
  /** Redirect target of https://files.example/. */
  let secureTarget = '';
  const identity = createSelfSigned('files.example');
  const startHttpsServer = async () => {
    tls.setDefaultCACertificates([...defaultCertificates, identity.cert]);
    const { port, close } = await startWebPortListener();
    await close();
    const server = createServer(identity, (_, response) => response.writeHead(302, { location: secureTarget }).end());
    await once(server.listen(port, '127.0.0.1'), 'listening');
    const stop = () => {
      tls.setDefaultCACertificates(defaultCertificates);
      server.closeAllConnections();
      server.close();
    };
    return { port, stop };
  };
  const otherUpstream = useFixture(startRecordingUpstream);
  const blockedListener = useFixture(startListener);
  const httpsServer = useFixture(startHttpsServer);
  const fixture = useFixture(() =>
    startOneTool({
      egressPorts: [otherUpstream.port, httpsServer.port],
      runtimeOptions: { resolve: resolveExampleNames },
    }),
  );

  const serveFollowing = (url: string, tool: Json = {}, server: Json = {}) =>
    fixture.createToolServer({ url, redirects: 'follow', ...tool }, server);
  const respondWithRedirect = (from: RecordingUpstream, path: string, location: string, status = 302) =>
    from.on(`GET ${path}`, () => ({ status, headers: { location, 'set-cookie': 'session=upstream' } }));
  const respondWithFile = (at: RecordingUpstream, path: string) =>
    at.on(`GET ${path}`, () => ({ body: 'the file', headers: { 'content-type': 'text/plain' } }));
  const takeRequests = () => ({ home: fixture.upstream.take(), away: otherUpstream.take() });
  const callForError = async (slug: string, token = callerToken) =>
    getErrorText(await fixture.toolhost.callTool(slug, token, 'run'));

  it('[conf 5] percent-encodes a UTF-8 Location once', async () => {
    for (const [path, location] of [
      ['/to-cafe', '/café/日本'],
      ['/to-encoded', '/caf%C3%A9/%E6%97%A5%E6%9C%AC'],
    ] as const) {
      respondWithRedirect(fixture.upstream, path, Buffer.from(location).toString('latin1'));
      respondWithFile(fixture.upstream, '/caf%C3%A9/%E6%97%A5%E6%9C%AC');
      assert.equal(getResultText(await fixture.call(await serveFollowing(path))), 'the file');
      const message = getErrorText(await fixture.call(await fixture.createToolServer({ url: path })));
      assert.match(message, /to \/caf%C3%A9\/%E6%97%A5%E6%9C%AC on/);
    }
    takeRequests();
  });

  it('[conf 5] follows every kind of redirect, to any host, up to three times', async () => {
    respondWithFile(otherUpstream, '/file');
    respondWithFile(fixture.upstream, '/file');
    for (const status of [301, 302, 303, 307, 308]) {
      respondWithRedirect(fixture.upstream, '/a', 'b?x=1#part', status);
      respondWithRedirect(fixture.upstream, '/b', `${otherUpstream.url}/c?signature=s`, status);
      respondWithRedirect(otherUpstream, '/c', '/file', status);
      takeRequests();
      assert.equal(getResultText(await fixture.call(await serveFollowing('/a'))), 'the file');
      const { home, away } = takeRequests();
      assert.equal(home.map(({ url }) => url).join(), '/a,/b?x=1');
      const sentAway = away.map(({ method, url }) => `${method} ${url}`);
      assert.deepEqual(sentAway, ['GET /c?signature=s', 'GET /file']);
    }
    fixture.upstream.on('HEAD /a', () => ({ status: 302, headers: { location: `${otherUpstream.url}/file` } }));
    otherUpstream.on('HEAD /file', () => ({ headers: { etag: '"f"' } }));
    const head = await fixture.call(await serveFollowing('/a', { method: 'HEAD', response_headers: ['ETag'] }));
    assert.equal(getResultText(head), '200 OK\nETag: "f"');
  });

  it('[conf 5] [sec A4] sends nothing of the tool or its caller to another origin', async () => {
    respondWithRedirect(fixture.upstream, '/a', `${otherUpstream.url}/file`);
    respondWithFile(otherUpstream, '/file');
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
      const slug = await serveFollowing('/a', tool, { authentication: { ...authentication, token: '{{KEY}}' } });
      await setSecret(fixture.toolhost, slug, 'KEY', 'the-stored-secret');
      takeRequests();
      const args = { 'X-Argument': 'argument-value', q: 'query-value' };
      const result = await fixture.toolhost.callTool(slug, await fixture.toolhost.createKey(), 'run', args);
      assert.equal(getResultText(result), 'the file');
      const { home, away } = takeRequests();
      assert.match(JSON.stringify([home[0]?.url, home[0]?.headers]), /the-stored-secret/);
      const names = Object.keys(away[0]?.headers ?? {}).sort();
      assert.deepEqual(names, ['accept', 'connection', 'host', 'toolhost-hop', 'user-agent']);
      assert.deepEqual([away[0]?.headers.accept, away[0]?.url], ['*/*', '/file']);
    }
  });

  it('[conf 5] keeps the credential for redirects within the same host, and never sends it again after another host', async () => {
    const authentication = { type: 'Bearer' };
    const hasCredential = ({ headers }: RecordedRequest) => headers.authorization !== undefined;
    const slug = await serveFollowing('/hop-0', {}, { authentication });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 3 }), async (staysOnHost) => {
        const hosts = [fixture.upstream, ...staysOnHost.map((stay) => (stay ? fixture.upstream : otherUpstream))];
        for (const [hop, host] of hosts.entries()) {
          const next = hosts[hop + 1];
          if (next) respondWithRedirect(host, `/hop-${hop}`, `${next.url}/hop-${hop + 1}`);
          else respondWithFile(host, `/hop-${hop}`);
        }
        takeRequests();
        assert.equal(getResultText(await fixture.call(slug)), 'the file');
        const { home, away } = takeRequests();
        const sent = [...home, ...away].sort((a, b) => a.url.localeCompare(b.url));
        const firstAway = staysOnHost.indexOf(false);
        const expected = hosts.map((_, hop) => firstAway < 0 || hop <= firstAway);
        assert.deepEqual(sent.map(hasCredential), expected);
      }),
      { numRuns: getRunCount(30) },
    );
  });

  it('[conf 5] rejects the fourth redirect, a redirect loop, and a redirect from https to http', async () => {
    for (const hop of [1, 2, 3, 4, 5])
      respondWithRedirect(fixture.upstream, `/long-${hop}`, `/long-${hop + 1}?secret-query=1`);
    takeRequests();
    assert.match(
      await callForError(await serveFollowing('/long-1')),
      /^HTTP 302: the redirect to \/long-5 on a host that is specified by its IP address after 3 other redirects was not followed: a call follows at most 3 redirects$/,
    );
    assert.equal(takeRequests().home.length, 4);
    respondWithRedirect(fixture.upstream, '/round', `${otherUpstream.url}/back`);
    respondWithRedirect(otherUpstream, '/back', `${fixture.upstream.url}/round#again`);
    assert.match(
      await callForError(await serveFollowing('/round')),
      /after 1 other redirects? was not followed: it leads back to a URL that was already requested \(a redirect loop\)$/,
    );
    assert.deepEqual([takeRequests().home.length], [1]);
    otherUpstream.take();
    secureTarget = `${otherUpstream.url}/file`;
    assert.match(
      await callForError(await serveFollowing(`https://files.example:${httpsServer.port}/`)),
      /was not followed: it leads from https to http, where others can read the response$/,
    );
    assert.equal(otherUpstream.take().length, 0);
  });

  it('[conf 5] [sec B1] contacts no target that a configuration could not contain', async () => {
    const contacts = blockedListener.connections;
    const notAllowed = /: its URL is not allowed; allowed: https, web ports, and public hosts$/;
    const cases: [string, RegExp][] = [
      ...[
        `http://127.0.0.1:${blockedListener.port}/`,
        `https://127.0.0.1:${blockedListener.port}/`,
        'http://169.254.169.254/latest/meta-data',
        'https://[::ffff:7f00:1]/',
        'https://2130706433/',
        'https://db.internal/',
        'https://files.example:22/',
        'http://files.example/',
        'ftp://files.example/',
        `${fixture.toolhost.url}/mcp/other`,
      ].map((location): [string, RegExp] => [location, notAllowed]),
      ['javascript:alert(1)', /^HTTP 302: the redirect to another URL was not followed/],
      ['data:text/plain,x', /was not followed/],
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
    const slug = await serveFollowing('/away');
    for (const [location, message] of cases) {
      respondWithRedirect(fixture.upstream, '/away', location);
      const errorText = await callForError(slug);
      assert.match(errorText, message, location);
      assert.doesNotMatch(errorText, /secret-query|169\.254|me:pass/);
    }
    assert.equal(blockedListener.connections, contacts);
  });

  it('[conf 5] rejects a redirect that would send a credential in its URL to another origin', async () => {
    const slug = await serveFollowing('/echo', {}, { authentication: { type: 'QueryParam', query_key: 'key' } });
    const forms = [callerToken, encodeURIComponent(callerToken), Buffer.from(callerToken).toString('base64')];
    for (const form of forms) {
      respondWithRedirect(fixture.upstream, '/echo', `${otherUpstream.url}/file?key=${form}`);
      otherUpstream.take();
      const errorText = await callForError(slug);
      assert.match(errorText, /was not followed: it would send a credential of this call to another origin$/);
      assert.ok(!errorText.includes(form));
      assert.deepEqual(otherUpstream.take(), []);
    }
    respondWithRedirect(fixture.upstream, '/echo', `/kept?key=${callerToken}`);
    respondWithFile(fixture.upstream, '/kept');
    assert.equal(getResultText(await fixture.call(slug)), 'the file');
  });

  it('[conf 5] sends a request with a body only once', async () => {
    respondWithRedirect(fixture.upstream, '/a', `${fixture.upstream.url}/file`);
    respondWithFile(fixture.upstream, '/file');
    takeRequests();
    const input_schema = { filter: { type: 'string', in: 'body' } };
    const slug = await serveFollowing('/a', { input_schema });
    const errorText = getErrorText(await fixture.call(slug, { filter: 'x' }));
    assert.match(
      errorText,
      /^HTTP 302: the redirect to .* was not followed: the request has a body, which is sent only once$/,
    );
    const [only, ...otherRequests] = takeRequests().home;
    assert.deepEqual([only?.body.toString(), otherRequests], ['{"filter":"x"}', []]);
  });

  it('[conf 5] applies one timeout to the call and all its redirects', async () => {
    otherUpstream.on('GET /held', () => 'hold');
    otherUpstream.take();
    // If a pause of the machine uses up the timeout before the redirect, the test retries with a longer one.
    for (let ms = 2000; otherUpstream.requests.length === 0 && ms <= 16_000; ms *= 2) {
      const location = `${otherUpstream.url}/held`;
      fixture.upstream.on('GET /slow', () => ({ status: 302, headers: { location }, delayMs: ms / 2 }));
      const slug = await serveFollowing('/slow', { timeout_ms: ms });
      // A separate timeout for the redirect would end at least a second later.
      const errorText = await assertWithinDeadline(ms, () => callForError(slug));
      if (otherUpstream.requests.length > 0)
        assert.equal(errorText, `upstream did not answer within ${ms} ms, including redirects`);
    }
    const [held] = otherUpstream.take();
    assert.equal(await held?.closed, 'aborted');
  });

  it('[conf 5] returns an error of the redirect target as error of the call, without the credential', async () => {
    respondWithRedirect(fixture.upstream, '/a', `${otherUpstream.url}/gone`);
    otherUpstream.on('GET /gone', () => ({ status: 401, body: 'signature expired' }));
    const slug = await serveFollowing('/a', {}, { authentication: { type: 'Bearer' } });
    assert.equal(await callForError(slug), 'HTTP 401 Unauthorized\nsignature expired');
    const [call] = await listCalls(fixture.toolhost, slug);
    const host = new URL(fixture.upstream.url).host;
    assert.deepEqual([call?.outcome, call?.upstream_status, call?.upstream_host], ['upstream_status', 401, host]);
  });
});
