import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../support/eventually.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { startTraceCollector } from '../support/toolhost/trace-collector.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

/** Creates a unique secret that differs in every encoding. */
const createCanary = (name: string) => `${name}/canary+${randomBytes(9).toString('hex')}~`;

/** Returns the encodings in which a value may leak. */
function encode(value: string): Map<string, string> {
  const bytes = Buffer.from(value);
  // Base64 differs at each of the three offsets where a value can start, and its ends depend on the surrounding bytes.
  const inner = [0, 1, 2].map((shift) =>
    Buffer.from(`${'\0'.repeat(shift)}${value}`)
      .toString('base64')
      .slice(4, -4),
  );
  return new Map([
    ['raw', value],
    ['URL-encoded', encodeURIComponent(value)],
    ['hex', bytes.toString('hex')],
    ['JSON', JSON.stringify(value).slice(1, -1)],
    ...inner.flatMap((text, shift): [string, string][] => [
      [`base64 at ${shift}`, text],
      [`base64url at ${shift}`, text.replaceAll('+', '-').replaceAll('/', '_')],
    ]),
  ]);
}

function findSecrets(text: string, secrets: Record<string, string>): string[] {
  return Object.entries(secrets).flatMap(([name, value]) =>
    [...encode(value)].filter(([, form]) => text.includes(form)).map(([encoding]) => `${name}, ${encoding}`),
  );
}

/** Returns a text in the forms in which an upstream may echo it. */
function toEchoForms(text: string): string {
  const decoded = decodeURIComponent(text.replaceAll('%%', ''));
  return [text, decoded, Buffer.from(decoded.split('=').at(-1) ?? '').toString('base64')].join(' ');
}

/** Returns the user name and password of a Basic Authorization header. */
const decodeBasic = (header = '') => Buffer.from(header.replace(/^Basic /, ''), 'base64').toString();

/** Tool with a secret in its path, its query, and a constant. */
const toolWithSecrets = {
  name: 'get',
  description: 'Posts with secrets in every location.',
  method: 'POST',
  url: '/x?key={{QUERY}}',
  input_schema: { fixed: { type: 'string', value: 'v-{{CONSTANT}}' } },
};

describe('[sec A10] the search for leaked secrets', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-sweep-'));
  const upstream = useFixture(startRecordingUpstream);
  const collector = useFixture(startTraceCollector);
  let child: ChildToolhost;
  let [closedPort, key, callKey] = [0, '', ''];
  const outputs: string[] = [];
  const masterKey = randomBytes(32);
  const canaryNames = [
    ...['clientSecret', 'storedToken', 'secret', 'callerToken', 'queryToken', 'triedToken', 'argument', 'answer'],
    ...['inPath', 'inQuery', 'inConstant', 'password', 'clientCredential', 'awsSecret', 'awsSession'],
  ];
  const secrets: Record<string, string> = {
    ...Object.fromEntries(canaryNames.map((name) => [name, createCanary(name)])),
    cookie: createCanary('cookie').replaceAll('/', '.'),
    serviceToken: createCanary('service-token').replaceAll('+', '.'),
    awsId: createCanary('aws-id').replaceAll(/[/+~]/g, ''),
    // Media type, header text, and key of an upstream response, and name of an argument.
    said: `said-${randomBytes(9).toString('hex')}`,
    master: masterKey.toString('base64'),
    masterBytes: masterKey.toString('latin1'),
  };

  before(async () => {
    closedPort = await findFreePort();
    const env = { MASTER_KEY: String(secrets.master) };
    const preparation = await startToolhost({ dataDir, env });
    [key, callKey] = [await preparation.createKey(), await preparation.createKey({ scopes: ['call'] })];
    await preparation.stop();
    Object.assign(secrets, { key, callKey, keySecret: key.split('_')[2] });
    child = await startChildToolhost({
      ...env,
      DATA_DIR: dataDir,
      LOG_LEVEL: 'trace',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      EGRESS_ALLOW: `127.0.0.1:${upstream.port},127.0.0.1:${closedPort}`,
    });
  });
  after(() => rmSync(dataDir, { recursive: true }));

  const overloadedError =
    /service is overloaded|overloaded for the moment|Too many requests are queued|The request did not start within/;
  const send = async (
    path: string,
    token: string,
    body?: unknown,
    method = body === undefined ? 'GET' : 'POST',
  ): Promise<{ status: number; text: string }> => {
    const response = await fetch(child.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json' },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    outputs.push(JSON.stringify([...response.headers]), text);
    // On a busy machine the service sheds load for a moment. Rejected requests changed nothing and are sent again.
    const wait = response.headers.get('retry-after');
    if (wait !== null && overloadedError.test(text)) {
      await delay(Number(wait) * 1000);
      return send(path, token, body, method);
    }
    return { status: response.status, text };
  };
  const rest = (method: string, path: string, body?: unknown) => send(`/api/v1${path}`, key, body, method);
  const call = (slug: string, token: string, name = 'get', args: Json = {}) =>
    send(`/mcp/${slug}`, token, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } });
  const create = async (slug: string, overrides: Json, status = 201) =>
    assert.equal((await rest('POST', '/servers', buildServerAt(slug, upstream.url, overrides))).status, status, slug);
  const setSecret = async (slug: string, name: string, value: unknown) =>
    assert.equal((await rest('PUT', `/servers/${slug}/secrets/${name}`, { value })).status, 200);

  it('collects the output while servers are created, changed, rejected, and shown', async () => {
    const { clientSecret, storedToken, secret } = secrets;
    const urls = { authorization_url: 'https://id.example/a', token_url: 'https://id.example/t' };
    const oauth = { ...urls, client_id: 'c', client_secret: clientSecret };
    const headers = { 'X-Service': '{{KEY}}' };
    await create('with-login', { oauth });
    await create('with-token', { authentication: { type: 'Bearer', token: storedToken } });
    await create('with-secret', { tools: [buildToolAt(`${upstream.url}/thing`, { headers })] });
    await setSecret('with-secret', 'KEY', secret);
    for (const change of [
      { client_id: '' },
      { client_secret: { value: clientSecret } },
      { client_secret: [clientSecret] },
      { client_secrets: clientSecret },
    ])
      await create('refused', { oauth: { ...oauth, ...change } }, 400);
    for (const authentication of [
      { type: 'Bearer', token: `${storedToken}\n` },
      { type: 'Bearer', token: [storedToken] },
      { type: 'Basic', token: `{{${storedToken}` },
    ])
      await create('refused', { authentication }, 400);
    const invalidValues = [{ value: `${secret}\n` }, { value: [secret] }, { value: 1, secret }];
    for (const invalid of [...invalidValues, `{"value":"${secret}`, `["${secret}"]`])
      assert.equal((await rest('PUT', '/servers/with-secret/secrets/KEY', invalid)).status, 400);
    await call('manage', key, 'setSecret', { slug: 'with-secret', name: 'KEY', value: secret });
    await call('manage', key, 'updateMcpServer', { slug: 'with-login', oauth });
    await call('manage', key, 'getMcpServer', { slug: 'with-login' });
    await call('manage', key, 'previewToolCall', { slug: 'with-token', tool: 'get' });
    const lists = ['/with-login/versions', '/with-secret/secrets'];
    for (const path of ['', '/with-login', '/with-token', '/with-secret', ...lists])
      await rest('GET', `/servers${path}`);
    await rest('POST', '/servers/with-secret/tools/get/preview', {});
    await rest('POST', '/servers/with-login/versions/1/restore', {});
  });

  it('collects the output while tools call upstreams that respond, reject, echo, or are unreachable', async () => {
    const { callerToken = '', queryToken = '', triedToken, argument, answer } = secrets;
    const echo = (path: string) =>
      buildToolAt(`${upstream.url}${path}`, { input_schema: { q: { type: 'string', optional: true } } });
    upstream.on('GET /fine', () => ({ body: { fine: true } }));
    upstream.on('GET /echo', ({ headers, url }) => {
      const sent = String(headers.authorization ?? headers['x-service'] ?? url.split('=')[1]).replace(/^Bearer /, '');
      const encoded = `${encodeURIComponent(sent)} ${Buffer.from(sent).toString('base64')} ${JSON.stringify(sent)}`;
      return { status: 500, body: `${answer} ${sent} ${encoded}` };
    });
    const byQuery = { authentication: { type: 'QueryParam' } };
    await create('forwarding', { authentication: { type: 'Bearer' }, tools: [echo('/echo')] });
    await create('by-query', { ...byQuery, tools: [echo('/echo')] });
    await create('not-there', { ...byQuery, tools: [{ ...echo('/'), url: `http://127.0.0.1:${closedPort}/x` }] });
    for (const [slug, overrides] of [
      ['with-token', {}],
      ['with-secret', { headers: { 'X-Service': '{{KEY}}' } }],
    ] as const)
      for (const path of ['/fine', '/echo']) {
        await rest('PATCH', `/servers/${slug}`, { tools: [buildToolAt(`${upstream.url}${path}`, overrides)] });
        assert.equal((await call(slug, callKey)).status, 200);
      }
    for (const [slug, token] of [
      ['forwarding', callerToken],
      ['by-query', queryToken],
      ['not-there', queryToken],
    ] as const) {
      assert.equal((await call(slug, token)).status, 200);
      await call(slug, token, 'get', { q: 1 });
      await call(slug, token, 'none', { q: argument });
      await rest('POST', `/servers/${slug}/tools/get/call`, { token: triedToken });
    }
    await call('forwarding', callerToken, 'get', { other: argument });
    const { said = '' } = secrets;
    await call('forwarding', callerToken, 'get', { [String(argument)]: { [said]: said } });
    // A trace contains the host of a followed redirect.
    const responseHeads = (host: string): [number, Record<string, string>][] => [
      [404, { 'content-type': `application/x-${said}` }],
      [302, { location: `https://${host}.example/${said}?${said}` }],
      [200, { 'content-type': `image/${said}` }],
      [200, { 'content-type': 'application/json' }],
    ];
    for (const [path, redirects] of [['/said'], ['/followed', 'follow']] as const) {
      const overrides = { ...(redirects && { redirects }), response_transform: 'a' };
      await create(path.slice(1), { tools: [buildToolAt(`${upstream.url}${path}`, overrides)] });
      for (const [status, headers] of responseHeads(redirects ? 'files' : said)) {
        upstream.on(`GET ${path}`, () => ({ status, headers, body: `{"${said}":"${said}"}` }));
        assert.equal((await call(path.slice(1), callerToken)).status, 200);
      }
    }
    assert.ok(upstream.requests.some((request) => request.url.includes(encodeURIComponent(queryToken))));
  });

  it('[conf 3] [conf 4] collects the output while credentials of every other kind are set, sent, echoed, and rejected', async () => {
    const { inPath, inQuery, inConstant, password, cookie, clientCredential, awsId, awsSecret, awsSession } = secrets;
    upstream.on('POST /token', () => ({ body: { access_token: secrets.serviceToken, expires_in: 60 } }));
    upstream.on('*', ({ url, headers, body }) => ({
      status: 403,
      body: `${toEchoForms(url)} ${JSON.stringify(headers)} ${body.toString()} ${decodeBasic(headers.authorization)}`,
    }));
    const token_url = `${upstream.url}/token`;
    const client = { type: 'ClientCredentials', token_url, client_id: 'c', client_secret: clientCredential };
    const awsKeys = { access_key_id: '{{ID}}', secret_access_key: awsSecret, session_token: awsSession };
    const cookies = [
      { type: 'Cookie', cookie: 'sid', token: cookie },
      { type: 'QueryParam', token: inQuery },
    ];
    const credentialKinds: Record<string, Json> = {
      pair: { authentication: { type: 'Basic', user: 'someone', password } },
      cookies: { authentication: cookies },
      client: { authentication: client },
      'client-body': { authentication: { ...client, client_auth: 'body' } },
      signed: { authentication: { type: 'AwsSigV4', ...awsKeys, region: 'r', service: 's3' } },
      located: { base_url: `${upstream.url}/bot{{PATH}}`, tools: [toolWithSecrets] },
    };
    for (const [slug, overrides] of Object.entries(credentialKinds)) await create(slug, overrides);
    await setSecret('signed', 'ID', awsId);
    for (const [name, value] of Object.entries({ PATH: inPath, QUERY: inQuery, CONSTANT: inConstant }))
      await setSecret('located', name, value);
    for (const slug of Object.keys(credentialKinds)) {
      assert.equal((await rest('POST', `/servers/${slug}/capture`, { hours: 1 })).status, 200, slug);
      upstream.take();
      assert.match((await call(slug, callKey)).text, /HTTP 403/, slug);
      assert.ok(upstream.take().length > 0, slug);
      await rest('POST', `/servers/${slug}/tools/get/call`, {});
      await rest('POST', `/servers/${slug}/tools/get/preview`, {});
      const { calls } = JSON.parse((await rest('GET', `/servers/${slug}/calls`)).text) as { calls: { id: string }[] };
      for (const { id } of calls) await rest('GET', `/calls/${id}`);
      for (const path of ['', '/secrets', '/versions']) await rest('GET', `/servers/${slug}${path}`);
    }
    upstream.on('POST /token', ({ headers, body }) => ({ status: 400, body: `${headers.authorization} ${body}` }));
    for (const slug of ['client', 'client-body']) {
      const authentication = { ...(credentialKinds[slug]?.authentication as Json), scopes: ['x'] };
      assert.equal((await rest('PATCH', `/servers/${slug}`, { authentication })).status, 200);
      assert.match((await call(slug, callKey)).text, /no token for the API/);
    }
    for (const authentication of [
      { type: 'Basic', user: 'a:b', password },
      { type: 'Basic', password: [password] },
      [
        { type: 'Cookie', cookie: 'a b', token: cookie },
        { type: 'AwsSigV4', secret_access_key: awsSecret },
      ],
      { type: 'ClientCredentials', client_secret: clientCredential, token_url: 7 },
    ])
      await create('refused', { authentication }, 400);
  });

  it('collects the output while credentials are sent to the wrong endpoint', async () => {
    assert.equal((await call('forwarding', key)).status, 401);
    // [sec A1] The alert.
    await eventually(() => assert.match(child.output(), /"level":40.*"slug":"forwarding".*an API key was sent/));
    await call('with-token', `${callKey}x`);
    await call('with-login', String(secrets.callerToken));
    await send(`/mcp/forwarding?access_token=${encodeURIComponent(String(secrets.callerToken))}`, 'x y', {});
    await send(`/api/v1/servers?key=${encodeURIComponent(key)}`, callKey);
    await send('/api/v1/servers', `${key}x`);
    await send(`/mcp/manage`, callKey, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
    for (const path of ['/calls', '/audit', '/keys']) assert.equal((await rest('GET', path)).status, 200);
  });

  it('finds no secret in responses, metrics, traces, logs, and the database', async () => {
    for (const form of encode(secrets.secret ?? '').values())
      assert.notDeepEqual(findSecrets(`<${form}>`, secrets), [], 'the search finds every encoding');
    assert.ok(outputs.some((answer) => answer.includes('[redacted]')));
    assert.match((await send('/metrics', key)).text, /toolhost_calls_total/);
    assert.equal(await child.end(), 0);
    assert.ok(collector.spans.length > 10);
    for (const { body } of collector.requests) assert.deepEqual(findSecrets(body.toString('latin1'), secrets), []);
    // An upstream error is passed on, including the upstream's own texts.
    const { answer: _, argument: __, said: ___, ...sensitive } = secrets;
    assert.deepEqual(findSecrets(outputs.join('\n'), sensitive), []);
    assert.deepEqual(findSecrets(child.output(), secrets), []);
    const files = readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).filter((file) => file.includes('sqlite'));
    for (const name of files)
      assert.deepEqual(findSecrets(readFileSync(join(dataDir, name)).toString('latin1'), secrets), [], name);
  });
});
