import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { after, describe, it } from 'node:test';
import { type Browser, createBrowser, getNextUrl, visibleText } from '../support/browser/browser.ts';
import { type FreshRequest, freshRequest } from '../support/fresh-request.ts';
import { registerClient } from '../support/oauth/oauth-client.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { buildProductionEnv } from '../support/toolhost/production-env.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { sendUntilClosed } from '../support/upstreams/raw-request.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const exampleKey = 'local-example-key';
const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };

/** Paths of every kind of endpoint, except the probes, which load balancers send to an IP address. */
const paths = [
  ...['/', '/servers', '/favicon.svg', '/login', '/login/callback?code=x', '/local-identity/auth'],
  ...['/mcp/projects', '/mcp/manage', '/mcp/manage/authorize', '/mcp/manage/callback'],
  ...['/.well-known/oauth-protected-resource/mcp/manage', '/.well-known/oauth-authorization-server/mcp/manage'],
  ...['/.well-known/ai-catalog.json', '/api/v1/session', '/api/v1/openapi.json', '/metrics'],
];

/** Names that a hostile web page can resolve to this machine, and spellings that only resemble an accepted name. */
const getForgedHosts = (port: string) =>
  [
    ...[
      'evil.example',
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      'evil-localhost',
      'localhost.',
      '127.0.0.2',
    ],
    ...['0.0.0.0', '[::]', '[::ffff:127.0.0.1]', '127.1', '2130706433', '192.168.1.5', 'toolhost', 'me@localhost'],
  ].flatMap((name) => [name, `${name}:${port}`]);

describe('local mode in a container (LOCAL_MODE=container)', () => {
  const fixtures = useFixtures();
  const DATA_DIR = fixtures.folder();
  const toolhost = fixtures.start(
    () => startChildToolhost({ DATA_DIR, DEMO: '1', LOCAL_MODE: 'container', ALLOWED_HOSTS: 'compose-name:8080' }),
    (service) => service.end(),
  );
  const getPrintedLink = (child: ChildToolhost) =>
    /http:\S+\/login\/link\/\S+/.exec(child.output('stdout'))?.[0] ?? assert.fail(child.output('stdout'));
  /** Creates a link inside the container. */
  const openInContainer = async (env: Record<string, string>, ...args: string[]) => {
    const opened = await runToolhostCommand(['open', ...args], { env: { LOCAL_MODE: 'container', ...env } });
    assert.equal(opened.code, 0, opened.stderr);
    return opened.stdout.trim();
  };
  const send = (path: string, host: string, { headers, ...request }: FreshRequest = {}) =>
    freshRequest(toolhost.url + path, { ...request, headers: { host, ...headers } });

  it('[ship 2] listens on every address of the container, and says in the banner what keeps neighbors out', async () => {
    const { port } = new URL(toolhost.url);
    assert.equal((await fetch(`http://127.0.0.2:${port}/livez`)).status, 200);
    assert.match(
      toolhost.output('stderr'),
      /^ {2}Container .*Only publishing its port on 127\.0\.0\.1 keeps neighbors out\.$/m,
    );
  });

  it('[ship 2] signs in only with the printed link or one of toolhost open, not with one click', async () => {
    const getSessionStatus = async (browser: Browser) => (await browser.get(`${toolhost.url}/api/v1/session`)).status;
    const neighbor = createBrowser();
    for (const path of ['/', '/login', '/login/link/unknown']) {
      const page = await neighbor.get(toolhost.url + path);
      assert.match(visibleText(page), /toolhost open/, path);
      assert.doesNotMatch(page.html, /<form|<button/, path);
    }
    const { origin, port } = new URL(toolhost.url);
    const click = { method: 'POST', headers: { origin, 'sec-fetch-site': 'same-origin' } };
    const clicked = await fetch(`${toolhost.url}/login`, click);
    assert.deepEqual([clicked.status, clicked.headers.get('set-cookie')], [403, null]);
    assert.equal(await getSessionStatus(neighbor), 401);
    for (const link of [getPrintedLink(toolhost), await openInContainer({ DATA_DIR, PORT: port })]) {
      const browser = createBrowser();
      assert.equal((await browser.get(link)).status, 302);
      assert.equal(await getSessionStatus(browser), 200);
      assert.equal((await neighbor.get(link)).status, 410);
    }
    const unreachableInside = await openInContainer({ DATA_DIR, PORT: port, BASE_URL: 'http://127.0.0.1:9' });
    assert.match(unreachableInside, /^http:\/\/127\.0\.0\.1:9\/login\/link\//);
  });

  it('[ship 2] logs agents in only from a browser that is signed in', async () => {
    const { port } = new URL(toolhost.url);
    const args = ['keys', 'create', '--name', 'me', '--scopes', 'manage,call', '--quiet'];
    const key = (await runToolhostCommand(args, { env: { DATA_DIR } })).stdout.trim();
    const tool = {
      name: 'read',
      description: 'Reads the items of the API.',
      method: 'GET',
      url: 'https://api.example.com',
    };
    const body = { name: 'People', slug: 'people', login: {}, tools: [tool] };
    const created = await send('/api/v1/servers', `127.0.0.1:${port}`, { key, body });
    assert.equal(created.status, 201, created.text);
    for (const [slug, button] of [
      ['manage', 'Allow and log in'],
      ['people', 'Allow'],
    ] as const) {
      const browser = createBrowser();
      const client = await registerClient({ issuer: `${toolhost.url}/mcp/${slug}` });
      const consent = await browser.get(client.authorization().url);
      const refused = await browser.press(consent, button);
      assert.equal(refused.status, 403, slug);
      assert.match(visibleText(refused), /not signed in at this host name; open the link/, slug);
      await browser.get(await openInContainer({ DATA_DIR, PORT: port }));
      const allowed = await browser.press(consent, button);
      assert.equal(allowed.status, 200, slug);
      assert.match(getNextUrl(allowed).href, /\/local-identity\/auth|[?&]code=/, slug);
    }
  });

  it('[ship 2] accepts the loopback names with any port, and ALLOWED_HOSTS', async () => {
    const { port } = new URL(toolhost.url);
    const names = ['127.0.0.1', 'localhost', '[::1]', 'LocalHost'];
    const hosts = names.flatMap((name) => [name, `${name}:${port}`, `${name}:9000`, `${name}:1`]);
    for (const host of [...hosts, 'compose-name:8080']) {
      const { status, text } = await send('/mcp/projects', host, { key: exampleKey, body: list });
      assert.equal(status, 200, host);
      assert.match(text, /list_projects/);
    }
  });

  it('[sec E7] refuses every other host with 421 at every endpoint, in the Host header and in an absolute target', async () => {
    const { port } = new URL(toolhost.url);
    for (const host of [...getForgedHosts(port), 'localhost:99999', 'localhost:', 'compose-name'])
      for (const path of paths) {
        const { status, text } = await send(path, host, { key: exampleKey });
        assert.equal(status, 421, `${host} ${path}`);
        assert.doesNotMatch(text, /issuer|<form|list_projects/);
      }
    assert.match(await sendUntilClosed(toolhost.url, 'GET / HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 421 /);
    for (const path of paths) {
      const head = `GET http://evil.example${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`;
      assert.match(await sendUntilClosed(toolhost.url, head), /^HTTP\/1\.1 421 /, path);
    }
  });

  it('[sec E7] rejects web pages of other ports of this machine, although it accepts these ports as its own', async () => {
    for (const origin of ['http://127.0.0.1:9000', 'http://localhost:3000', 'http://[::1]'])
      for (const path of ['/mcp/projects', '/api/v1/session']) {
        const host = new URL(toolhost.url).host;
        const { status } = await send(path, host, { key: exampleKey, body: list, headers: { origin } });
        assert.equal(status, 403, `${origin} ${path}`);
      }
  });

  it('[mcp 57] builds OAuth metadata and the challenge from an accepted host with any port', async () => {
    for (const host of ['localhost:9000', '127.0.0.1:1', '[::1]']) {
      const url = `http://${host}/mcp/manage`;
      const { body: resource } = await send('/.well-known/oauth-protected-resource/mcp/manage', host);
      assert.deepEqual([resource.resource, resource.authorization_servers], [url, [url]]);
      const { body: server } = await send('/.well-known/oauth-authorization-server/mcp/manage', host);
      assert.deepEqual([server.issuer, server.token_endpoint], [url, `${url}/token`]);
      const { status, headers } = await send('/mcp/manage', host, { body: list });
      const metadata = `"http://${host}/.well-known/oauth-protected-resource/mcp/manage"`;
      assert.deepEqual([status, String(headers['www-authenticate']).includes(metadata)], [401, true], host);
    }
  });

  it('[ship 2] tells a person on another published port which BASE_URL to set, before any page shows a wrong URL', async () => {
    const browser = createBrowser('203.0.113.1', (url, options) => {
      const headers = { ...(options?.headers as Record<string, string>), host: 'localhost:9000' };
      const { pathname, search } = new URL(String(url));
      return freshRequest(toolhost.url + pathname + search, { headers }).then(
        (reply) => new Response(reply.text, { status: reply.status }),
      );
    });
    for (const path of ['/', '/login', '/mcp/manage/authorize']) {
      const page = await browser.get(`http://localhost:9000${path}`);
      assert.equal(page.status, 421);
      assert.match(visibleText(page), /another port.*start it again with BASE_URL=http:\/\/localhost:9000/);
    }
  });

  it('[ship 2] signs in at localhost and at another published port that BASE_URL names', async () => {
    const port = await findFreePort();
    const publisher = createServer((client) => {
      const service = connect(port, '127.0.0.1');
      for (const [from, to] of [
        [client, service],
        [service, client],
      ] as const)
        from.on('error', () => to.destroy()).pipe(to);
    });
    await once(publisher.listen(0, '127.0.0.1'), 'listening');
    const publishedPort = (publisher.address() as AddressInfo).port;
    const base = `http://127.0.0.1:${publishedPort}`;
    const env = { DATA_DIR: fixtures.folder(), PORT: String(port), BASE_URL: base };
    const published = await startChildToolhost({ LOCAL_MODE: 'container', ...env });
    try {
      for (const origin of [base, `http://localhost:${publishedPort}`]) {
        const browser = createBrowser();
        const link = await openInContainer(env, ...(origin === base ? [] : ['--url', origin]));
        assert.equal(new URL(link).origin, origin);
        assert.equal(getNextUrl(await browser.get(link)).href, `${origin}/`);
        const { html } = await browser.get(`${origin}/api/v1/session`);
        const session = JSON.parse(html) as Json;
        assert.deepEqual([session.base_url, session.management_url], [base, `${base}/mcp/manage`]);
      }
    } finally {
      await published.end();
      publisher.close();
    }
  });

  it('[sec E7] is ignored with a public BASE_URL, which stays the only host', async () => {
    const port = await findFreePort();
    const env = buildProductionEnv({ DATA_DIR: fixtures.folder(), LOCAL_MODE: 'container', PORT: String(port) });
    const service = await startChildToolhost(env);
    after(() => service.end());
    assert.doesNotMatch(service.output('stderr'), /neighbors/);
    for (const [host, status] of Object.entries({
      'tools.example.com': 200,
      localhost: 421,
      [`127.0.0.1:${port}`]: 421,
    }))
      assert.equal((await freshRequest(`http://127.0.0.1:${port}/`, { headers: { host } })).status, status, host);
  });
});

describe('local mode outside of a container', () => {
  const fixtures = useFixtures();
  const toolhost = fixtures.start(
    () => startChildToolhost({ DATA_DIR: fixtures.folder(), DEMO: '1' }),
    (service) => service.end(),
  );

  it('[ship 2] moves a sign-in with an identity provider from localhost to the base URL, which needs its cookie', async () => {
    const identity = {
      OIDC_ISSUER: 'https://id.example.com',
      OIDC_CLIENT_ID: 'toolhost',
      OIDC_CLIENT_SECRET: 'secret',
    };
    const service = await startChildToolhost({ DATA_DIR: fixtures.folder(), ...identity });
    after(() => service.end());
    const { port } = new URL(service.url);
    const page = await createBrowser().get(`http://localhost:${port}/login?return_to=/servers`);
    assert.equal(getNextUrl(page).href, `http://127.0.0.1:${port}/login?return_to=/servers`);
  });

  it('[sec E7] refuses to listen beyond loopback, and says what to do on a machine and in a container', async () => {
    for (const HOST of ['0.0.0.0', '::', '192.168.1.5', 'foo', '127.0.0.1.evil.example']) {
      const env = { DATA_DIR: fixtures.folder(), PORT: '0', HOST };
      const { code, stdout, stderr } = await runToolhostCommand(['serve'], { env });
      assert.deepEqual([code, stdout], [1, ''], HOST);
      assert.match(
        stderr,
        /HOST: found ".*"; allowed in local mode: 127\.0\.0\.1, .*anyone who reaches it can sign in/,
      );
      assert.match(
        stderr,
        /set BASE_URL to a public https:\/\/ URL\. In a container, set LOCAL_MODE=container and publish/,
      );
    }
  });

  it('[sec E7] is not reachable at other addresses, and refuses forged hosts and other ports with 421 at every endpoint', async () => {
    const { port } = new URL(toolhost.url);
    await assert.rejects(fetch(`http://127.0.0.2:${port}/livez`));
    for (const host of [...getForgedHosts(port), 'localhost', 'localhost:9000', '127.0.0.1:9000'])
      for (const path of paths) {
        const headers = { host };
        const { status } = await freshRequest(toolhost.url + path, { key: exampleKey, headers });
        assert.equal(status, 421, `${host} ${path}`);
      }
  });
});
