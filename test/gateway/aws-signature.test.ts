import assert from 'node:assert/strict';
import { createHmac, hash } from 'node:crypto';
import { before, describe, it } from 'node:test';
import { signRequest } from '../../apps/server/src/gateway/call/call-credentials.ts';
import { getErrorText, getResultText, startOneTool } from '../support/one-tool.ts';
import { patchServer, setSecret } from '../support/server-requests.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';
import suite from './aws-sigv4-vectors.json' with { type: 'json' };

const keys = { access_key_id: 'AKIDEXAMPLE', secret_access_key: 'secret/Access+Key', session_token: 'session/Token==' };

/** Percent-encodes as AWS does (RFC 3986). */
const percentEncode = (text: string) =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

/** Computes the signature that AWS expects for a request, written from the Signature Version 4 specification. */
function expectedSignature(
  request: RecordedRequest,
  { secret, scope, signed }: { secret: string; scope: string; signed: string },
) {
  const [path = '', query = ''] = request.url.split('?');
  const isS3 = scope.includes('/s3/');
  // S3 encodes an object name once and leaves its slashes.
  const decodedPath = isS3 ? decodeURIComponent(path) : path;
  const canonicalPath = decodedPath.split('/').map(percentEncode).join('/');
  const canonicalQuery = query
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const [name = '', value = ''] = pair.split('=');
      return `${percentEncode(decodeURIComponent(name))}=${percentEncode(decodeURIComponent(value))}`;
    })
    .sort()
    .join('&');
  const { rawHeaders } = request;
  const lines = signed.split(';').map((name) => {
    const values = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
    return `${name}:${values.map((value) => value.trim().replaceAll(/ +/g, ' ')).join(',')}\n`;
  });
  const parts = [request.method, canonicalPath, canonicalQuery, lines.join(''), signed];
  const canonical = [...parts, hash('sha256', request.body, 'hex')].join('\n');
  const text = ['AWS4-HMAC-SHA256', request.headers['x-amz-date'], scope, hash('sha256', canonical, 'hex')].join('\n');
  const hmac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest();
  const key = scope.split('/').reduce<string | Buffer>((before, part) => hmac(before, part), `AWS4${secret}`);
  return hmac(key, text).toString('hex');
}

function assertSigned(request: RecordedRequest, service: string, region = 'eu-central-1'): void {
  const match = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
    request.headers.authorization ?? '',
  );
  assert.ok(match, String(request.headers.authorization));
  const [, id = '', scope = '', signed = '', signature = ''] = match;
  const date = String(request.headers['x-amz-date']);
  assert.match(date, /^\d{8}T\d{6}Z$/);
  assert.deepEqual([id, scope], [keys.access_key_id, `${date.slice(0, 8)}/${region}/${service}/aws4_request`]);
  assert.equal(signature, expectedSignature(request, { secret: keys.secret_access_key, scope, signed }));
  for (const name of ['host', 'x-amz-date', 'x-amz-security-token'])
    assert.ok(signed.split(';').includes(name), signed);
}

describe('AWS Signature Version 4', () => {
  it('[conf 4] signs every request of the published test suite as published', () => {
    const { accessKeyId, secretAccessKey, region, service } = suite;
    assert.ok(suite.vectors.length > 25);
    for (const vector of suite.vectors) {
      const pairs = Array.from({ length: vector.headers.length / 2 }, (_, i) => vector.headers.slice(2 * i, 2 * i + 2));
      const host = pairs.find(([name]) => name?.toLowerCase() === 'host')?.[1];
      const others = pairs.filter(([name]) => name?.toLowerCase() !== 'host');
      const request = {
        method: vector.method,
        origin: `https://${host}`,
        path: vector.path,
        headers: others.flat().map((text) => text.trim()),
        body: vector.body === '' ? undefined : vector.body,
      };
      const signing = { accessKeyId, secretAccessKey, region, service, sessionToken: vector.sessionToken };
      const lines = signRequest(request, signing, Date.parse(suite.time), vector.signsBody === true);
      assert.equal(lines.at(-1), vector.authorization, vector.name);
    }
  });
});

describe('a request to an upstream with AWS signatures', () => {
  const fixture = useFixture(startOneTool);
  let key: string;
  before(async () => {
    key = await fixture.toolhost.createKey();
  });

  const credentials = { access_key_id: '{{AWS_ID}}', secret_access_key: '{{AWS_SECRET}}' };
  const serve = async (service: string, tool: Json, region = 'eu-central-1', server: Json = {}) => {
    const { session_token } = keys;
    const authentication = { type: 'AwsSigV4', ...credentials, session_token, region, service };
    const slug = await fixture.createToolServer(tool, { authentication, ...server });
    await setSecret(fixture.toolhost, slug, 'AWS_ID', keys.access_key_id);
    await setSecret(fixture.toolhost, slug, 'AWS_SECRET', keys.secret_access_key);
    return slug;
  };
  const callForRequest = async (slug: string, args: Json = {}) => {
    fixture.upstream.take();
    const result = await fixture.toolhost.callTool(slug, key, 'run', args);
    assert.notEqual(result.isError, true, getResultText(result));
    return fixture.upstream.take()[0] ?? assert.fail('nothing was sent');
  };
  const text = { type: 'string', optional: true };

  it('[conf 4] is signed over exactly what is sent: path, query, headers, and every kind of body', async () => {
    const unusualText = "a b/c+d&e=f ~!*'()ü→%41[]|";
    const tools: [Json, Json][] = [
      [{ url: '/v1/things' }, {}],
      [
        { url: '/v1/:id/x?b=2&a=:q', input_schema: { id: { type: 'string' }, q: text, z: text } },
        { id: unusualText, q: unusualText, z: unusualText },
      ],
      [{ url: '/v1/[static]|x?y^|=a[b]&empty=&flag', input_schema: { z: text } }, { z: '1' }],
      [{ url: '/', input_schema: { list: { type: 'array' } } }, { list: ['b', 'a', 'B'] }],
      [{ method: 'POST', input_schema: { a: text } }, { a: unusualText }],
      [{ method: 'PUT', body: 'form', input_schema: { a: text } }, { a: unusualText }],
      [{ method: 'POST', body: 'multipart', input_schema: { a: text } }, { a: unusualText }],
      [
        { method: 'PUT', body: 'file', input_schema: { file: { type: 'string', content: 'base64' } } },
        { file: Buffer.from([0, 255, 128, 10, 13]).toString('base64') },
      ],
      [{ method: 'DELETE', headers: { 'X-Amz-Meta-A': 'a  b', 'My-Header': 'x' } }, {}],
    ];
    for (const [tool, args] of tools)
      assertSigned(await callForRequest(await serve('execute-api', tool), args), 'execute-api');
  });

  it('[conf 4] has the body hash in a header and a path that is encoded once for S3', async () => {
    const input_schema = { key: { type: 'string' }, content: text };
    const tool = { method: 'PUT', url: '/bucket/:key', body: 'content', input_schema };
    const request = await callForRequest(await serve('s3', tool), { key: 'a b+c/ü.txt', content: 'hello' });
    assertSigned(request, 's3');
    assert.equal(request.headers['x-amz-content-sha256'], hash('sha256', 'hello', 'hex'));
  });

  it('[conf 4] can take its region from a variable, and API and preview mask all secrets', async () => {
    const slug = await serve('execute-api', {}, '{{region}}', { variables: { region: { value: 'us-west-2' } } });
    assertSigned(await callForRequest(slug), 'execute-api', 'us-west-2');
    const { text: shown, body } = await fixture.toolhost.rest('GET', `/servers/${slug}`);
    const { text: preview } = await fixture.toolhost.rest('POST', `/servers/${slug}/tools/run/preview`, { body: {} });
    assert.match(preview, /\["Authorization","\*{8}"\]/);
    for (const response of [shown, preview])
      for (const value of Object.values(keys)) assert.ok(!response.includes(value), response);
    assert.equal((body.server as Json).access, 'api_key');
  });

  it('[conf 4] is not sent to a host that the keys were not set for', async () => {
    const slug = await serve('execute-api', {});
    const config = (await fixture.toolhost.rest('GET', `/servers/${slug}`)).body.config as { tools: Json[] };
    const tools = config.tools.map((tool) => ({ ...tool, url: 'https://evil.example/x' }));
    await patchServer(fixture.toolhost, slug, { tools });
    const message = getErrorText(await fixture.toolhost.callTool(slug, key, 'run'));
    assert.match(message, /the secret AWS_ID was set before this tool called/);
  });

  it('[conf 4] returns no keys and no signature that the upstream echoes', async () => {
    const echo = (headers: object) => `${JSON.stringify(headers)} ${Object.values(keys).join(' ')}`;
    fixture.upstream.on('GET /v1/things', ({ headers }) => ({ status: 403, body: echo(headers) }));
    const slug = await serve('execute-api', {});
    fixture.upstream.take();
    const message = getErrorText(await fixture.toolhost.callTool(slug, key, 'run'));
    const [request] = fixture.upstream.take();
    const signature = request?.headers.authorization?.split('Signature=')[1] ?? assert.fail('no signature');
    for (const value of [...Object.values(keys), signature]) assert.ok(!message.includes(value), message);
    fixture.upstream.on('GET /v1/things', () => ({ body: {} }));
  });

  it('[conf 4] is signed again for each redirect within the same origin', async () => {
    fixture.upstream.on('GET /v1/things', () => ({ status: 302, headers: { location: '/elsewhere?x=1' } }));
    const slug = await serve('execute-api', { redirects: 'follow' });
    fixture.upstream.take();
    await fixture.toolhost.callTool(slug, key, 'run');
    const requests = fixture.upstream.take();
    assert.equal(requests.map(({ url }) => url).join(' '), '/v1/things /elsewhere?x=1');
    for (const request of requests) assertSigned(request, 'execute-api');
    fixture.upstream.on('GET /v1/things', () => ({ body: {} }));
  });
});
