import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { object } from '../support/schemas.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as command } from '../support/toolhost/toolhost-command.ts';
import {
  type RecordedRequest,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';

/**
 * A description in four files: paths, the body of an operation, and schemas that reference each other in both
 * directions.
 */
const files: Record<string, string> = {
  'openapi.yaml': `
openapi: 3.1.0
info: {title: Shop, version: '1'}
servers: [{url: 'https://shop.example.com'}]
paths:
  /orders:
    $ref: ./paths/orders.yaml
  /things:
    get:
      operationId: listThings
      summary: All things of the shop
      parameters: [{$ref: 'schemas/all.yaml#/parameters/color'}]
components:
  schemas:
    $ref: schemas/all.yaml
`,
  'paths/orders.yaml': `
post:
  operationId: createOrder
  summary: Order a thing of the shop
  requestBody:
    content:
      application/json:
        schema: {$ref: '../schemas/order.json'}
`,
  'schemas/order.json': JSON.stringify(
    object({ thing: { $ref: 'all.yaml#/Thing' }, count: { $ref: '../openapi.yaml#/components/schemas/Count' } }, [
      'thing',
    ]),
  ),
  'schemas/all.yaml': `
Thing: {type: object, properties: {color: {$ref: '#/Color'}}}
Color: {type: string, enum: [red, blue]}
Count: {type: integer, maximum: 7}
parameters:
  color: {name: color, in: query, schema: {$ref: '#/Color'}}
`,
};

const token = 'Bearer the-token-of-the-description';

function mapTools(config: Json): Map<string, Json> {
  return new Map((config.tools as Json[]).map((tool) => [String(tool.name), tool]));
}

/** Checks that the tools contain the description, however its files were read. */
function checkTools(config: Json): void {
  const text = JSON.stringify(mapTools(config).get('create_order'));
  assert.match(text, /"enum":\["red","blue"\]/);
  assert.match(text, /"maximum":7/);
  assert.match(JSON.stringify(mapTools(config).get('list_things')), /"enum":\["red","blue"\]/);
}

describe('import sources', () => {
  let site: RecordingUpstream;
  let otherSite: RecordingUpstream;
  let toolhost: TestToolhost;
  let folder: string;
  before(async () => {
    [site, otherSite] = await Promise.all([startRecordingUpstream(), startRecordingUpstream()]);
    otherSite.on('*', ({ url }) => (url === '/openapi.yaml' ? { body: files['openapi.yaml'] } : { status: 404 }));
    site.on('*', ({ url, headers }) => {
      if (headers.authorization !== token) return { status: 401 };
      if (url === '/elsewhere') return { status: 302, headers: { location: `${otherSite.url}/openapi.yaml` } };
      const body = files[url.slice(1)];
      return body === undefined ? { status: 404 } : { body };
    });
    toolhost = await startToolhost({ egressPorts: [site.port, otherSite.port] });
    folder = mkdtempSync(join(tmpdir(), 'toolhost-description-'));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(folder, 'api', path, '..'), { recursive: true });
      writeFileSync(join(folder, 'api', path), text);
    }
    writeFileSync(join(folder, 'secret.yaml'), 'never: read');
  });
  after(async () => {
    await toolhost?.stop();
    await Promise.all([site?.close(), otherSite?.close()]);
    rmSync(folder, { recursive: true, force: true });
  });

  const rest = async (method: string, path: string, body?: Json, status = 200) => {
    const reply = await toolhost.rest(method, path, body && { body });
    assert.equal(reply.status, status, reply.text);
    return reply;
  };
  const listAuthorizations = (requests: readonly RecordedRequest[]) =>
    new Set(requests.map(({ headers }) => headers.authorization));

  it('[imp 3] imports a description in several files behind a login, and re-imports it with the same headers', async () => {
    const url = `${site.url}/openapi.yaml`;
    const refused = await rest('POST', '/import', { url }, 400);
    assert.match(refused.text, /HTTP 401; provide headers with a credential/);
    const body = { mode: 'create', url, headers: { Authorization: token }, include: ['*'], slug: 'files' };
    const created = await rest('POST', '/import', body);
    assert.deepEqual(created.body.findings, []);
    const server = await rest('GET', '/servers/files');
    checkTools(server.body.config as Json);
    // The headers are stored, but never returned.
    const secrets = await rest('GET', '/servers/files/secrets');
    const audit = await rest('GET', '/audit');
    for (const { text } of [created, server, secrets, audit]) assert.doesNotMatch(text, /the-token-of/);
    assert.deepEqual(secrets.body.secrets, []);
    site.take();
    const reimported = await rest('POST', '/servers/files/import', {});
    assert.equal(reimported.body.same_document, true);
    assert.deepEqual(listAuthorizations(site.take()), new Set([token]));
    const compared = await rest('POST', '/servers/files/import/compare', {});
    assert.equal((compared.body.imported as Json).error, undefined, compared.text);
  });

  it('[imp 3] sends headers only to the origin of the URL, and reports a missing file as a finding', async () => {
    const headers = { Authorization: token };
    await rest('POST', '/import', { url: `${site.url}/elsewhere`, headers });
    assert.deepEqual(listAuthorizations(otherSite.take()), new Set([undefined]));
    const url = `${site.url}/openapi.yaml`;
    const refused = await rest('POST', '/import', { url, headers: { Host: 'a', 'X-Y': 'a\nb' } }, 400);
    assert.match(refused.text, /headers\.Host/);
    assert.match(refused.text, /headers\.X-Y/);
    const orders = files['paths/orders.yaml'] ?? '';
    files['paths/orders.yaml'] = orders.replace('../schemas/order.json', '../schemas/gone.json');
    const partly = await rest('POST', '/import', { url, headers });
    files['paths/orders.yaml'] = orders;
    assert.match(JSON.stringify(partly.body.findings), /schemas\/gone\.json.*HTTP 404/);
  });

  it('[imp 4] reads files below the folder of the description, and accepts headers for a URL, on the command line', async () => {
    const description = join(folder, 'api', 'openapi.yaml');
    const out = join(folder, 'shop.json');
    const result = await command(['import', description, '--include', '*', '--out', out]);
    assert.equal(result.code, 0, result.stderr);
    checkTools(JSON.parse(readFileSync(out, 'utf8')) as Json);
    writeFileSync(join(folder, 'api', 'outside.yaml'), `paths: {/a: {$ref: ../secret.yaml}, /b: {get: {summary: It}}}`);
    const outside = await command(['import', join(folder, 'api', 'outside.yaml'), '--plan']);
    assert.match(outside.stdout, /paths\.\/a.*secret\.yaml.*not fetched/);
    const fetched = ['import', `${site.url}/openapi.yaml`, '--plan', '--header'];
    assert.match((await command([...fetched, `authorization: ${token}`])).stdout, /2 operations: 2 whole/);
    const malformedHeader = await command([...fetched, 'the-token-of-someone']);
    assert.notEqual(malformedHeader.code, 0);
    assert.doesNotMatch(malformedHeader.stderr, /the-token-of/);
    const denied = await command(['import', `${site.url}/openapi.yaml`, '--plan']);
    assert.match(denied.stderr, /HTTP 401\. Pass a credential with --header/);
    const slug = await command(['import', `${site.url}/openapi.yaml`, '--plan', '--slug', 'No Slug']);
    assert.match(slug.stderr, /--slug No Slug: .*allowed: 3 to 63/);
  });
});
