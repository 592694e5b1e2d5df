import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { buildProductionEnv } from '../support/toolhost/production-env.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { sendUntilClosed } from '../support/upstreams/raw-request.ts';
import { useFixture } from '../support/use-fixtures.ts';

const name = 'tools.example.com';
const managementHost = 'manage.mcp.example.com';
const foreignHost = 'evil.example';

/** RFC 9112, 3.2.2: a server accepts an absolute-form request target and then ignores the Host header. */
describe('a request with an absolute-form target', () => {
  let port: number;
  let key: string;
  const toolhost = useFixture(async () => {
    port = await findFreePort();
    const env = { BASE_URL: `https://${name}`, SERVER_HOSTS: '*.mcp.example.com', PORT: String(port) };
    return startToolhost({ env: buildProductionEnv(env) });
  });
  const httpToolhost = useFixture(startToolhost);
  before(async () => {
    key = await toolhost.createKey();
  });

  type RequestOptions = { method?: string; host?: string | undefined; version?: string; headers?: string[] };

  /** Sends one request and returns the status and the whole response. */
  async function sendRequest(
    target: string,
    { method = 'POST', host = foreignHost, version = '1.1', headers = [] }: RequestOptions = {},
    to = port,
  ): Promise<{ status: number; text: string }> {
    const body = method === 'POST' ? '{"jsonrpc":"2.0","id":1,"method":"ping"}' : '';
    const lines = [
      `${method} ${target} HTTP/${version}`,
      ...(host === '' ? [] : [`Host: ${host}`]),
      `Authorization: Bearer ${key}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Connection: close',
      ...headers,
    ];
    const text = await sendUntilClosed(`http://127.0.0.1:${to}`, `${lines.join('\r\n')}\r\n\r\n${body}`);
    return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), text };
  }

  it('[sec F4] is served as if the target host were in the Host header, whatever that header says', async () => {
    for (const host of [name, foreignHost, managementHost, '127.0.0.1'])
      assert.equal((await sendRequest(`https://${name}/mcp/manage`, { host })).status, 200, host);
    for (const target of [
      `http://${name}/mcp/manage`,
      `HTTPS://${name.toUpperCase()}:443/mcp/manage?x=1`,
      `https://${managementHost}/mcp`,
      `http://${managementHost}:443/mcp`,
    ])
      assert.equal((await sendRequest(target)).status, 200, target);
    assert.equal((await sendRequest(`http://${name}/mcp/manage`, { version: '1.0', host: '' })).status, 200);
    const page = { method: 'GET', headers: ['Accept: text/html'] };
    for (const target of [`https://${name}`, `https://${name}?x=1`, `https://${name}/servers?x=1`])
      assert.equal((await sendRequest(target, page)).status, 200, target);
  });

  it('[mcp 40] gets the OAuth metadata of the URL in the target', async () => {
    const path = '/.well-known/oauth-protected-resource/mcp';
    const below = await sendRequest(`https://${name}${path}/manage`, { method: 'GET', host: managementHost });
    assert.match(below.text, new RegExp(`"resource":"https://${name}/mcp/manage"`));
    const at = await sendRequest(`https://${managementHost}${path}`, { method: 'GET', host: name });
    assert.match(at.text, new RegExp(`"resource":"https://${managementHost}/mcp"`));
  });

  it('[sec F4] [mcp 57] gets 421 for an unknown target host, whatever the Host header says', async () => {
    const otherNames = [foreignHost, `${name}:80`, `${name}.${foreignHost}`, `x.${managementHost}`];
    for (const host of [name, managementHost])
      for (const other of [...otherNames, '127.0.0.1', '[::1]'])
        assert.equal((await sendRequest(`http://${other}/mcp/manage`, { host })).status, 421, `${other} ${host}`);
  });

  it('[sec F4] is subject to every other rule: paths, server hosts, origins, and hops', async () => {
    for (const path of ['/mcp/../mcp/manage', '//mcp/manage', '/mcp/%2e%2e/x', '/mcp\\manage'])
      assert.equal((await sendRequest(`https://${name}${path}`, { host: name })).status, 400, path);
    for (const path of ['/', '/mcp/manage', '/api/v1/servers', '/metrics']) {
      const { status } = await sendRequest(`https://${managementHost}${path}`, { method: 'GET', host: name });
      assert.equal(status, 404, path);
    }
    const sent = (header: string) => sendRequest(`https://${name}/mcp/manage`, { host: name, headers: [header] });
    for (const [header, status] of Object.entries({
      [`Origin: https://${foreignHost}`]: 403,
      'Toolhost-Hop: 1': 508,
      [`Host: ${name}`]: 400,
    }))
      assert.equal((await sent(header)).status, status);
  });

  it('[sec F4] is rejected with 400 if the target has user info, no host, or another scheme', async () => {
    for (const host of [name, managementHost])
      for (const target of [
        ...['user@', 'user:password@', '@'].map((userInfo) => `https://${userInfo}${name}/mcp/manage`),
        `https://${name}@${foreignHost}/mcp/manage`,
        `https://${foreignHost}\\@${name}/mcp/manage`,
        ...[`https://${name}#/mcp/manage`, 'https:///mcp/manage', 'https:/mcp/manage', `ftp://${name}/mcp/manage`],
        ...[`${name}/mcp/manage`, 'mcp/manage'],
      ]) {
        const { status, text } = await sendRequest(target, { host });
        assert.equal(status, 400, target);
        assert.doesNotMatch(text, /password|evil/);
      }
  });

  it('[sec F4] is rejected for an https target if the service URL is http', async () => {
    const { host, port: to } = new URL(httpToolhost.url);
    const get = (target: string) => sendRequest(target, { method: 'GET', headers: ['Accept: text/html'] }, Number(to));
    assert.deepEqual([(await get(`http://${host}/`)).status, (await get(`http://${foreignHost}/`)).status], [200, 421]);
    assert.notEqual((await get(`https://${host}/`)).status, 200);
  });
});
