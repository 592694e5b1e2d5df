import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { sendUntilClosed } from '../support/upstreams/raw-request.ts';

const name = 'tools.example.com';
const managementHost = 'manage.mcp.example.com';
const foreignHost = 'evil.example';

/** RFC 9112, 3.2.2: a server accepts an absolute-form request target and then ignores the Host header. */
describe('a request with an absolute-form target', () => {
  let toolhost: TestToolhost;
  let httpToolhost: TestToolhost;
  let port: number;
  let key: string;
  before(async () => {
    port = await findFreePort();
    toolhost = await startToolhost({
      env: {
        BASE_URL: `https://${name}`,
        SERVER_HOSTS: '*.mcp.example.com',
        HOST: '127.0.0.1',
        PORT: String(port),
        MASTER_KEY: randomBytes(32).toString('base64'),
        OIDC_ISSUER: 'https://provider.example',
        OIDC_CLIENT_ID: 'client',
        OIDC_CLIENT_SECRET: 'of-the-client',
      },
    });
    httpToolhost = await startToolhost();
    key = await toolhost.createKey();
  });
  after(() => Promise.all([toolhost.stop(), httpToolhost.stop()]));

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
    for (const host of [name, managementHost])
      for (const other of [
        foreignHost,
        `${name}:80`,
        `${name}.${foreignHost}`,
        `x.${managementHost}`,
        '127.0.0.1',
        '[::1]',
      ])
        assert.equal((await sendRequest(`http://${other}/mcp/manage`, { host })).status, 421, `${other} ${host}`);
  });

  it('[sec F4] is subject to every other rule: paths, server hosts, origins, and hops', async () => {
    for (const path of ['/mcp/../mcp/manage', '//mcp/manage', '/mcp/%2e%2e/x', '/mcp\\manage'])
      assert.equal((await sendRequest(`https://${name}${path}`, { host: name })).status, 400, path);
    for (const path of ['/', '/mcp/manage', '/api/v1/servers', '/metrics'])
      assert.equal(
        (await sendRequest(`https://${managementHost}${path}`, { method: 'GET', host: name })).status,
        404,
        path,
      );
    const sent = (header: string) => sendRequest(`https://${name}/mcp/manage`, { host: name, headers: [header] });
    assert.equal((await sent(`Origin: https://${foreignHost}`)).status, 403);
    assert.equal((await sent('Toolhost-Hop: 1')).status, 508);
    assert.equal((await sent(`Host: ${name}`)).status, 400);
  });

  it('[sec F4] is rejected with 400 if the target has user info, no host, or another scheme', async () => {
    for (const host of [name, managementHost])
      for (const target of [
        `https://user@${name}/mcp/manage`,
        `https://user:password@${name}/mcp/manage`,
        `https://@${name}/mcp/manage`,
        `https://${name}@${foreignHost}/mcp/manage`,
        `https://${foreignHost}\\@${name}/mcp/manage`,
        `https://${name}#/mcp/manage`,
        'https:///mcp/manage',
        'https:/mcp/manage',
        `ftp://${name}/mcp/manage`,
        `${name}/mcp/manage`,
        'mcp/manage',
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
