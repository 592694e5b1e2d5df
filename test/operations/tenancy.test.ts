import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { operationList } from '@toolhost/server/operations';
import type { Operation } from '../../apps/server/src/operations/operation.ts';
import { buildMinimalInput, toRestRequest } from '../support/operation-inputs.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** Operations that create the server named by their slug if it does not exist. */
const creatingOperations = ['planMcpServer', 'applyMcpServer'];
const namingOperations = operationList.filter(
  (op) => !op.dashboardRole && !creatingOperations.includes(op.name) && /\{(slug|id)\}/.test(op.route.path),
);

describe('objects of another workspace', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let ownerKey: string;
  let ownerSpareKeyId: string;
  let outsiderKey: string;
  let callId: string;
  let grantId: string;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egressPorts: [upstream.port] });
    ownerKey = await toolhost.createKey({ workspace: 'victim' });
    outsiderKey = await toolhost.createKey({ workspace: 'stranger' });
    const config = buildServerAt('owned', upstream.url, { authentication: { type: 'Bearer', token: '{{KEY}}' } });
    await toolhost.rest('POST', '/servers', { key: ownerKey, body: config });
    await toolhost.rest('PUT', '/servers/owned/secrets/KEY', { key: ownerKey, body: { value: 'owned-secret' } });
    const { body } = await toolhost.rest('POST', '/keys', { key: ownerKey, body: { name: 'Spare', scopes: ['call'] } });
    ownerSpareKeyId = String(body.id);
    await toolhost.rest('POST', '/servers/owned/tools/get/call', { key: ownerKey, body: {} });
    const [call] = (await toolhost.rest('GET', '/calls', { key: ownerKey })).body.calls as Json[];
    callId = String(call?.id);
    grantId = 'grt_owned';
    await toolhost.running.app.runner.db
      .insertInto('grants')
      .values({
        id: grantId,
        workspace_id: 'victim',
        server_id: 'srv_x',
        slug: 'owned',
        client_id: 'c',
        client_name: 'c',
        user_id: null,
        person: null,
        scope: '',
        agreement: '',
        sealed_tokens: 'x',
        tokens_version: 1,
        refreshing_until: null,
        generation: 1,
        rotated_at: Date.now(),
        created_at: Date.now(),
        last_used_at: null,
        broken_at: null,
        revoked_at: null,
      })
      .execute();
  });
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  /** Returns all data that the owner can see. */
  const takeSnapshot = async () => {
    const paths = [
      '/servers',
      '/servers/owned',
      '/servers/owned/versions',
      '/servers/owned/secrets',
      '/keys',
      '/calls',
      '/audit',
      '/grants',
    ];
    const replies = await Promise.all(paths.map((path) => toolhost.rest('GET', path, { key: ownerKey })));
    for (const reply of replies) assert.equal(reply.status, 200, reply.text);
    return replies.map((reply) => reply.text);
  };
  const getInput = (op: Operation, ids: { slug: string; key: string; call: string; grant: string }): Json => {
    if (op.name === 'replaceMcpServer') return buildServerAt(ids.slug, upstream.url, { name: 'Taken over' });
    const id = op.name.includes('Grant') ? ids.grant : op.name.includes('Call') ? ids.call : ids.key;
    const own: Json = { slug: ids.slug, id, tool: 'get', name: 'KEY', value: 'v' };
    return {
      ...buildMinimalInput(op),
      ...Object.fromEntries(Object.entries(own).filter(([name]) => name in op.input.shape)),
    };
  };
  const sendRest = (op: Operation, input: Json, key: string) => {
    const { method, path, body } = toRestRequest(op, input);
    return toolhost.rest(method, path, { key, ...(body && { body }) });
  };
  const getForeignIds = () => ({ slug: 'owned', key: ownerSpareKeyId, call: callId, grant: grantId });
  const unknownIds = { slug: 'unknown', key: 'key_000000000000', call: 'call_unknown', grant: 'grt_unknown' };

  for (const op of namingOperations) {
    it(`[sec E1] are not found and unchanged in ${op.name}, with the same 404 as unknown objects`, async () => {
      const before = await takeSnapshot();
      const replies = await Promise.all(
        [getForeignIds(), unknownIds].map((ids) => sendRest(op, getInput(op, ids), outsiderKey)),
      );
      for (const { status } of replies) assert.equal(status, 404);
      const [foreign, unknown] = replies.map(({ body: { request_id: _, ...body } }) => body);
      assert.deepEqual(foreign, unknown);
      if (op.isTool) {
        const toolResults = await Promise.all(
          [getForeignIds(), unknownIds].map((ids) =>
            toolhost.callTool('manage', outsiderKey, op.name, getInput(op, ids)),
          ),
        );
        assert.ok(toolResults.every((result) => result.isError));
        assert.deepEqual(toolResults[0], toolResults[1]);
      }
      const limited = await toolhost.createKey({ workspace: 'victim', servers: ['elsewhere'] });
      assert.ok([403, 404].includes((await sendRest(op, getInput(op, getForeignIds()), limited)).status));
      const current = await takeSnapshot();
      // The owner's own new key is listed and audited. Everything else is unchanged.
      for (const index of [0, 1, 2, 3, 5, 7]) assert.equal(current[index], before[index]);
    });
  }

  for (const [verb, status] of [
    ['plan', 200],
    ['apply', 400],
  ] as const) {
    it(`[sec E1] are unchanged by ${verb}McpServer, which reports only that the slug is unavailable`, async () => {
      const before = await takeSnapshot();
      const body = { config: buildServerAt('owned', upstream.url, { name: 'Taken over' }), secrets: { KEY: 'v' } };
      const reply = await toolhost.rest('POST', `/servers/owned/${verb}`, { key: outsiderKey, body });
      assert.equal(reply.status, status, reply.text);
      assert.deepEqual(reply.body.problems, [
        { path: 'slug', message: '"owned" is taken or was used before; choose another slug' },
      ]);
      const limited = await toolhost.createKey({ workspace: 'victim', servers: ['elsewhere'] });
      const refused = await toolhost.rest('POST', `/servers/owned/${verb}`, { key: limited, body });
      assert.equal(refused.status, 404);
      const current = await takeSnapshot();
      for (const index of [0, 1, 2, 3, 5, 7]) assert.equal(current[index], before[index]);
    });
  }

  it('[sec E1] do not appear in any list', async () => {
    for (const [path, field] of [
      ['/servers', 'servers'],
      ['/servers?slug=owned', 'servers'],
      ['/calls', 'calls'],
      ['/calls?slug=owned', 'calls'],
      ['/grants', 'grants'],
      ['/grants?slug=owned', 'grants'],
    ] as const) {
      assert.deepEqual((await toolhost.rest('GET', path, { key: outsiderKey })).body[field], [], path);
    }
    const { body } = await toolhost.rest('GET', '/keys', { key: outsiderKey });
    assert.equal((body.keys as Json[]).length, 1);
    const cursor = Buffer.from(`${Date.now() + 1000}.srv_zzz`).toString('base64url');
    assert.deepEqual((await toolhost.rest('GET', `/servers?cursor=${cursor}`, { key: outsiderKey })).body.servers, []);
  });

  it('[sec E1] cannot be reached through fields that name an owner', async () => {
    for (const field of [
      'workspace_id',
      'workspaceId',
      'tenant_id',
      'owner',
      'created_by',
      'id',
      'version',
      '__proto__',
    ]) {
      const body = JSON.parse(`{"${field}":"victim","name":"Mine","slug":"mine","tools":[]}`) as Json;
      const { status, text } = await toolhost.rest('POST', '/servers', { key: outsiderKey, body });
      assert.equal(status, 400, field);
      assert.match(text, /unknown field/);
      assert.equal(
        (
          await toolhost.rest('POST', '/keys', {
            key: outsiderKey,
            body: { name: 'x', scopes: ['call'], [field]: 'victim' },
          })
        ).status,
        400,
        field,
      );
    }
    assert.equal((await toolhost.rest('GET', '/servers/mine', { key: outsiderKey })).status, 404);
  });

  it('[sec E1] keep their slug, and others learn only that it is taken', async () => {
    const { status, body } = await toolhost.rest('POST', '/servers', {
      key: outsiderKey,
      body: buildServerAt('owned', upstream.url),
    });
    assert.equal(status, 409);
    assert.equal(body.detail, 'slug: "owned" is taken or was used before; choose another slug');
  });

  it('[sec E2] cannot be imitated with reserved, mixed-case, non-ASCII, or encoded slugs', async () => {
    const slugs = [
      'Owned',
      'OWNED',
      'owned ',
      ' owned',
      'o',
      'ow',
      'owned-',
      '-owned',
      'ow--ned',
      'ow_ned',
      'ow.ned',
      'ow/ned',
      'ow%6eed',
      'оwned',
      'ｏwned',
      'owned\u200b',
      'x'.repeat(64),
      'manage',
      'api',
      'admin',
      'login',
      'oauth',
      'well-known',
      'health',
      'mcp',
    ];
    for (const slug of slugs) {
      const { status, body } = await toolhost.rest('POST', '/servers', {
        key: outsiderKey,
        body: { ...buildServerAt('x', upstream.url), slug },
      });
      assert.deepEqual([status, (body.problems as Json[])[0]?.path], [400, 'slug'], slug);
    }
    for (const path of ['Owned', 'OWNED', 'ow%6Eed', 'owned%20'])
      assert.ok([400, 404].includes((await toolhost.rpc(path, ownerKey, 'ping')).status), path);
  });
});

describe('a key with restricted access', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egressPorts: [upstream.port] });
    for (const slug of ['first', 'second']) await toolhost.createServer(buildServerAt(slug, upstream.url));
  });
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  it('[sec E1] reads everything and changes nothing with manage:read', async () => {
    const viewer = await toolhost.createKey({ scopes: ['manage:read'] });
    const before = (await toolhost.rest('GET', '/audit')).text;
    for (const op of operationList) {
      const path = op.route.path
        .replaceAll('{slug}', 'first')
        .replaceAll('{tool}', 'get')
        .replaceAll('{name}', 'KEY')
        .replaceAll(/\{(?:version|before)\}/g, '1')
        .replaceAll('{part}', 'server')
        .replaceAll(/\{\w+\}/g, 'key_x');
      const body = { ...('config' in op.input.shape && { config: {} }), ...('to' in op.input.shape && { to: 'copy' }) };
      const hasBody = op.route.method !== 'GET' && op.route.method !== 'DELETE';
      const address = op.name === 'search' ? `${path}?query=x` : path;
      const { status } = await toolhost.rest(op.route.method, address, { key: viewer, ...(hasBody && { body }) });
      if (op.scope !== 'manage:read' || op.dashboardRole) assert.equal(status, 403, op.name);
      else assert.equal(status, /\{id\}/.test(op.route.path) ? 404 : 200, op.name);
    }
    assert.equal((await toolhost.rest('GET', '/audit')).text, before);
    assert.deepEqual(upstream.take(), []);
  });

  it('has no access to other servers or to the workspace if it is limited to a server', async () => {
    const limited = await toolhost.createKey({ servers: ['first'] });
    const requestAsLimited = (method: string, path: string, body?: Json) =>
      toolhost.rest(method, path, { key: limited, ...(body && { body }) });
    assert.deepEqual(
      ((await requestAsLimited('GET', '/servers')).body.servers as Json[]).map((server) => server.slug),
      ['first'],
    );
    assert.equal((await requestAsLimited('PATCH', '/servers/first', { description: 'Mine.' })).status, 200);
    assert.equal((await requestAsLimited('POST', '/servers', buildServerAt('third', upstream.url))).status, 404);
    assert.equal((await requestAsLimited('POST', '/check', buildServerAt('third', upstream.url))).status, 404);
    // The document title would become the slug of a new server.
    const document = { openapi: '3.0.0', info: { title: 'Fourth', version: '1' }, servers: [{ url: upstream.url }] };
    const imported = { document: { ...document, paths: {} }, name: 'Fourth', mode: 'create' };
    assert.equal(
      (await requestAsLimited('POST', '/import', { ...imported, document: JSON.stringify(imported.document) })).status,
      404,
    );
    for (const path of ['/servers/second', '/servers?slug=second', '/calls?slug=second', '/grants?slug=second'])
      assert.equal((await requestAsLimited('GET', path)).status, 404, path);
    for (const path of ['/keys', '/audit']) assert.equal((await requestAsLimited('GET', path)).status, 403, path);
    assert.equal((await requestAsLimited('DELETE', '/servers/second')).status, 404);
    assert.equal((await requestAsLimited('DELETE', '/grants/grt_x')).status, 403);
    await toolhost.callTool('second', 'some-token', 'get');
    await toolhost.callTool('first', 'some-token', 'get');
    assert.deepEqual(
      ((await requestAsLimited('GET', '/calls')).body.calls as Json[]).map((call) => call.server),
      ['first'],
    );
  });
});
