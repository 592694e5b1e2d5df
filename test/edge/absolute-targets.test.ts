import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { freePort } from '../support/upstreams/listener.ts';
import { untilClosed } from '../support/upstreams/wire.ts';

const name = 'tools.example.com';
const own = 'manage.mcp.example.com';
const evil = 'evil.example';

/** RFC 9112, 3.2.2: a server accepts an absolute-form request target and then ignores the Host header. */
describe('a request with an absolute-form target', () => {
  let toolhost: TestToolhost;
  let plain: TestToolhost;
  let port: number;
  let key: string;
  before(async () => {
    port = await freePort();
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
    plain = await startToolhost();
    key = await toolhost.key();
  });
  after(() => Promise.all([toolhost.stop(), plain.stop()]));

  type Sent = { method?: string; host?: string | undefined; version?: string; headers?: string[] };

  /** Sends one request and returns the status and the whole response. */
  async function ask(
    target: string,
    { method = 'POST', host = evil, version = '1.1', headers = [] }: Sent = {},
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
    const text = await untilClosed(`http://127.0.0.1:${to}`, `${lines.join('\r\n')}\r\n\r\n${body}`);
    return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), text };
  }

  it('[sec F4] is served as if the target host were in the Host header, whatever that header says', async () => {
    for (const host of [name, evil, own, '127.0.0.1'])
      assert.equal((await ask(`https://${name}/mcp/manage`, { host })).status, 200, host);
    for (const target of [
      `http://${name}/mcp/manage`,
      `HTTPS://${name.toUpperCase()}:443/mcp/manage?x=1`,
      `https://${own}/mcp`,
      `http://${own}:443/mcp`,
    ])
      assert.equal((await ask(target)).status, 200, target);
    assert.equal((await ask(`http://${name}/mcp/manage`, { version: '1.0', host: '' })).status, 200);
    const page = { method: 'GET', headers: ['Accept: text/html'] };
    for (const target of [`https://${name}`, `https://${name}?x=1`, `https://${name}/servers?x=1`])
      assert.equal((await ask(target, page)).status, 200, target);
  });

  it('[mcp 40] gets the OAuth metadata of the URL in the target', async () => {
    const path = '/.well-known/oauth-protected-resource/mcp';
    const below = await ask(`https://${name}${path}/manage`, { method: 'GET', host: own });
    assert.match(below.text, new RegExp(`"resource":"https://${name}/mcp/manage"`));
    const at = await ask(`https://${own}${path}`, { method: 'GET', host: name });
    assert.match(at.text, new RegExp(`"resource":"https://${own}/mcp"`));
  });

  it('[sec F4] [mcp 57] gets 421 for an unknown target host, whatever the Host header says', async () => {
    for (const host of [name, own])
      for (const other of [evil, `${name}:80`, `${name}.${evil}`, `x.${own}`, '127.0.0.1', '[::1]'])
        assert.equal((await ask(`http://${other}/mcp/manage`, { host })).status, 421, `${other} ${host}`);
  });

  it('[sec F4] is subject to every other rule: paths, server hosts, origins, and hops', async () => {
    for (const path of ['/mcp/../mcp/manage', '//mcp/manage', '/mcp/%2e%2e/x', '/mcp\\manage'])
      assert.equal((await ask(`https://${name}${path}`, { host: name })).status, 400, path);
    for (const path of ['/', '/mcp/manage', '/api/v1/servers', '/metrics'])
      assert.equal((await ask(`https://${own}${path}`, { method: 'GET', host: name })).status, 404, path);
    const sent = (header: string) => ask(`https://${name}/mcp/manage`, { host: name, headers: [header] });
    assert.equal((await sent(`Origin: https://${evil}`)).status, 403);
    assert.equal((await sent('Toolhost-Hop: 1')).status, 508);
    assert.equal((await sent(`Host: ${name}`)).status, 400);
  });

  it('[sec F4] is rejected with 400 if the target has user info, no host, or another scheme', async () => {
    for (const host of [name, own])
      for (const target of [
        `https://user@${name}/mcp/manage`,
        `https://user:password@${name}/mcp/manage`,
        `https://@${name}/mcp/manage`,
        `https://${name}@${evil}/mcp/manage`,
        `https://${evil}\\@${name}/mcp/manage`,
        `https://${name}#/mcp/manage`,
        'https:///mcp/manage',
        'https:/mcp/manage',
        `ftp://${name}/mcp/manage`,
        `${name}/mcp/manage`,
        'mcp/manage',
      ]) {
        const { status, text } = await ask(target, { host });
        assert.equal(status, 400, target);
        assert.doesNotMatch(text, /password|evil/);
      }
  });

  it('[sec F4] is rejected for an https target if the service URL is http', async () => {
    const { host, port: to } = new URL(plain.url);
    const get = (target: string) => ask(target, { method: 'GET', headers: ['Accept: text/html'] }, Number(to));
    assert.deepEqual([(await get(`http://${host}/`)).status, (await get(`http://${evil}/`)).status], [200, 421]);
    assert.notEqual((await get(`https://${host}/`)).status, 200);
  });
});
