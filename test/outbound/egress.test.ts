import assert from 'node:assert/strict';
import { after, afterEach, describe, it } from 'node:test';
import type { Resolve } from '@toolhost/safe-http/connector';
import { checkUrl } from '@toolhost/safe-http/egress';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startListener, startWebPortListener } from '../support/upstreams/listener.ts';
import { assertWithinDeadline } from '../support/within-deadline.ts';

/** An address of each kind. The tests of the package prove the classification of every address. */
const addresses = [
  '127.0.0.1',
  '10.0.0.1',
  '169.254.169.254',
  '[::1]',
  '[fd12::1]',
  '[::ffff:7f00:1]',
  '[2002:7f00:1::]',
];

const alternativeSpellings = [
  ...['2130706433', '0177.0.0.1', '0x7f.1', '127.1', '0x7f000001', '127。0。0。1', '１２７.0.0.1', '127.0.0.1.'],
  ...['localhost', 'localhost.', 'LOCALHOST', 'app.localhost'],
];

const invalidUrls = [
  ...['https://user@api.example/', 'https://user:word@api.example/', 'https://api.example/#part'],
  ...['ftp://api.example/', 'file:///etc/passwd', 'gopher://api.example/', 'http://api.example/'],
  ...['https://api.example:22/', 'https://api.example:25/', 'https://api.example:6379/', 'https://api.example:7999/'],
  ...['https://api.example:9000/', 'https://api.example:9200/', 'https://intranet/', 'https://db./'],
  ...['https://db.internal/', 'https://db.internal./', 'https://printer.local/', 'https://box.lan/'],
  ...['https://x.home.arpa/'],
];

describe('upstream URLs of a configuration', async () => {
  const resolvedNames: string[] = [];
  const canary = await startWebPortListener();
  const resolve: Resolve = (hostname, callback) => {
    resolvedNames.push(hostname);
    callback(null, [{ address: '127.0.0.1', family: 4 }]);
  };
  const toolhost = await startToolhost({ runtimeOptions: { resolve } });
  after(() => Promise.all([toolhost.stop(), canary.close()]));

  const getProblems = async (config: Json) => {
    const { status, body } = await toolhost.rest('POST', '/servers', { body: config });
    assert.equal(status, 400);
    return new Map((body.problems as { path: string; message: string }[]).map(({ path, message }) => [path, message]));
  };
  const buildConfig = (slug: string, urls: readonly string[]) => {
    return { name: 'Hosts', slug, tools: urls.map((url, index) => buildToolAt(url, { name: `get_${index}` })) };
  };
  /** Maximum number of problems that are reported together. */
  const batchSize = 20;
  const assertAllRejected = async (urls: readonly string[]) => {
    for (let from = 0; from < urls.length; from += batchSize) {
      const batch = urls.slice(from, from + batchSize);
      const problems = await getProblems(buildConfig('bad-hosts', batch));
      for (const [index, url] of batch.entries()) assert.ok(problems.has(`tools[${index}].url`), url);
    }
    assert.equal((await toolhost.rest('GET', '/servers/bad-hosts')).status, 404);
    assert.deepEqual(resolvedNames, []);
    assert.equal(canary.connections, 0);
  };

  it('[sec B1] are rejected for tools at addresses that are not on the public internet', () =>
    assertAllRejected(addresses.map((host) => `https://${host}:${canary.port}/x`)));

  it('[sec B1] are rejected for OAuth endpoints at addresses that are not on the public internet', async () => {
    for (const host of [...addresses, ...alternativeSpellings]) {
      const url = `https://${host}:${canary.port}/x`;
      const oauth = { authorization_url: url, token_url: url, client_id: 'c', client_secret: 's' };
      const problems = await getProblems(buildServerAt('bad-oauth', 'https://api.example', { oauth }));
      assert.deepEqual([...problems.keys()].sort(), ['oauth.authorization_url', 'oauth.token_url'], host);
    }
    assert.equal(canary.connections, 0);
  });

  it('[sec B2] are rejected for this machine in every other spelling of its address', () =>
    assertAllRejected(alternativeSpellings.map((host) => `https://${host}:${canary.port}/x`)));

  it('[sec B8] are rejected with user names, fragments, other schemes, other ports, or names that are not public', () =>
    assertAllRejected(invalidUrls));

  it('[sec B8] are rejected for the service itself in any spelling of its host', async () => {
    const { port } = new URL(toolhost.url);
    await assertAllRejected([toolhost.url, `https://127.0.0.1:${port}/`, `https://127.0.0.1.:${port}/mcp/manage`]);
  });

  it("[sec B8] are rejected for the service's own public name, with and without a final dot", () => {
    for (const host of ['toolhost.example', 'TOOLHOST.example', 'toolhost.example.']) {
      const problem = checkUrl(new URL(`https://${host}/mcp/x`), [], 'toolhost.example') ?? '';
      assert.match(problem, /call this service itself/);
    }
  });

  it('are accepted for public hosts and addresses on web ports', async () => {
    const addressUrls = ['https://8.8.8.8/', 'https://[2606:4700::1111]/'];
    const body = buildConfig('good-hosts', ['https://api.example/', 'https://api.example:8443/', ...addressUrls]);
    assert.equal((await toolhost.rest('POST', '/servers', { body })).status, 201);
  });
});

describe('addresses that a call may reach', async () => {
  let resolvedAddresses: { address: string; family: number }[] = [];
  let dnsQueries = 0;
  const resolve: Resolve = (_hostname, callback) => {
    dnsQueries += 1;
    callback(null, resolvedAddresses);
  };
  const allowed = await startWebPortListener();
  const elsewhere = await startListener('127.0.0.2', allowed.port);
  const toolhost = await startToolhost({ egressPorts: [allowed.port], runtimeOptions: { resolve } });
  after(() => Promise.all([toolhost.stop(), allowed.close(), elsewhere.close()]));
  afterEach(() => assert.equal(elsewhere.connections, 0));

  let count = 0;
  /** Returns a function that calls a tool at `name.example`. */
  const createTool = async (port: number) => {
    const slug = `names-${++count}`;
    const tools = [buildToolAt(`https://name.example:${port}/thing`, { timeout_ms: 300 })];
    await toolhost.createServer({ name: slug, slug, tools });
    return () => toolhost.callTool(slug, 'some-token', 'get');
  };
  const toV4Addresses = (...list: string[]) => list.map((address) => ({ address, family: 4 }));

  it('[sec B3] exclude a private address behind a public name, with the same error for open and closed ports', async () => {
    const closed = await startWebPortListener('127.0.0.2');
    await closed.close();
    const texts = new Set<string>();
    for (const [address, port] of [
      ['127.0.0.2', allowed.port],
      ['127.0.0.2', closed.port],
      ['10.255.255.1', 8443],
    ] as const) {
      resolvedAddresses = toV4Addresses(address);
      const send = await createTool(port);
      const result = await assertWithinDeadline(500, send);
      assert.equal(result.isError, true);
      texts.add(result.content[0]?.text ?? '');
    }
    const [text = '', ...others] = texts;
    assert.deepEqual(others, []);
    assert.doesNotMatch(text, /\d|example/);
  });

  it('[sec B3] exclude a name when any of its addresses is private', async () => {
    const get = await createTool(allowed.port);
    for (const list of [
      toV4Addresses('8.8.8.8', '127.0.0.2'),
      toV4Addresses('127.0.0.2', '8.8.8.8'),
      [{ address: '::ffff:127.0.0.2', family: 6 }],
      [{ address: '::1', family: 6 }],
    ]) {
      resolvedAddresses = list;
      assert.match((await get()).content[0]?.text ?? '', /does not resolve to an address that may be called/);
    }
    const { body } = await toolhost.rest('GET', `/calls?outcome=blocked&limit=4&slug=names-${count}`);
    assert.equal((body.calls as unknown[]).length, 4);
  });

  it('[sec B4] are checked again for a new connection, which resolves the name again', async () => {
    const get = await createTool(allowed.port);
    resolvedAddresses = toV4Addresses('127.0.0.1');
    dnsQueries = 0;
    const first = get();
    while (allowed.connections === 0) await new Promise((resolve) => setImmediate(resolve));
    resolvedAddresses = toV4Addresses('127.0.0.2');
    assert.match((await first).content[0]?.text ?? '', /did not answer|TLS/);
    assert.match((await get()).content[0]?.text ?? '', /does not resolve to an address that may be called/);
    resolvedAddresses = [];
    assert.match((await get()).content[0]?.text ?? '', /^the host name\.example:\d+ was not found$/);
    assert.deepEqual([dnsQueries, allowed.connections], [3, 1]);
  });
});
