import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { operationList } from '@toolhost/server/operations';
import type { Operation } from '../../apps/server/src/operations/operation.ts';
import { buildMinimalInput, toRestRequest } from '../support/operation-inputs.ts';
import { pluck } from '../support/pluck.ts';
import { buildGrant } from '../support/store/rows.ts';
import { createKeyClient, type Send } from '../support/toolhost/rest-clients.ts';
import { type Json, type Reply, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** Operations that create the server named by their slug if it does not exist. */
const creatingOperations = ['planMcpServer', 'applyMcpServer'];
const namingOperations = operationList.filter(
  (op) => !op.dashboardRole && !creatingOperations.includes(op.name) && /\{(slug|id)\}/.test(op.route.path),
);

describe('objects of another workspace', async () => {
  const upstream = await startRecordingUpstream();
  const toolhost = await startToolhost({ egressPorts: [upstream.port] });
  const ownerKey = await toolhost.createKey({ workspace: 'victim' });
  const asOwner = createKeyClient(toolhost, ownerKey);
  const outsiderKey = await toolhost.createKey({ workspace: 'stranger' });
  const asOutsider = createKeyClient(toolhost, outsiderKey);
  const config = buildServerAt('owned', upstream.url, { authentication: { type: 'Bearer', token: '{{KEY}}' } });
  await asOwner('POST', '/servers', config);
  await asOwner('PUT', '/servers/owned/secrets/KEY', { value: 'owned-secret' });
  const { body: spareKey } = await asOwner('POST', '/keys', { name: 'Spare', scopes: ['call'] });
  await asOwner('POST', '/servers/owned/tools/get/call', {});
  const [call] = (await asOwner('GET', '/calls')).body.calls as Json[];
  const grant = buildGrant({ id: 'grt_owned', workspace_id: 'victim', slug: 'owned', created_at: Date.now() });
  await toolhost.running.app.runner.db.insertInto('grants').values(grant).execute();
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  /** Returns all data that the owner can see, except the keys and audit events that a test itself adds. */
  const takeSnapshot = async () => {
    const ofServer = ['', '/versions', '/secrets'].map((path) => `/servers/owned${path}`);
    const paths = ['/servers', ...ofServer, '/calls', '/grants'];
    const replies = await Promise.all(paths.map((path) => asOwner('GET', path)));
    for (const reply of replies) assert.equal(reply.status, 200, reply.text);
    return replies.map((reply) => reply.text);
  };
  const getInput = (op: Operation, ids: { slug: string; key: unknown; call: unknown; grant: string }): Json => {
    if (op.name === 'replaceMcpServer') return buildServerAt(ids.slug, upstream.url, { name: 'Taken over' });
    const id = op.name.includes('Grant') ? ids.grant : op.name.includes('Call') ? ids.call : ids.key;
    const own = Object.entries({ slug: ids.slug, id, tool: 'get', name: 'KEY', value: 'v' });
    return { ...buildMinimalInput(op), ...Object.fromEntries(own.filter(([name]) => name in op.input.shape)) };
  };
  const sendRest = (op: Operation, input: Json, send: Send<Reply>) => {
    const { method, path, body } = toRestRequest(op, input);
    return send(method, path, body);
  };
  const foreignIds = { slug: 'owned', key: spareKey.id, call: call?.id, grant: 'grt_owned' };
  const unknownIds = { slug: 'unknown', key: 'key_000000000000', call: 'call_unknown', grant: 'grt_unknown' };
  const createLimitedClient = async () =>
    createKeyClient(toolhost, await toolhost.createKey({ workspace: 'victim', servers: ['elsewhere'] }));

  for (const op of namingOperations) {
    it(`[sec E1] are not found and unchanged in ${op.name}, with the same 404 as unknown objects`, async () => {
      const before = await takeSnapshot();
      const inputs = [foreignIds, unknownIds].map((ids) => getInput(op, ids)) as [Json, Json];
      const replies = await Promise.all(inputs.map((input) => sendRest(op, input, asOutsider)));
      for (const { status } of replies) assert.equal(status, 404);
      const [foreign, unknown] = replies.map(({ body: { request_id: _, ...body } }) => body);
      assert.deepEqual(foreign, unknown);
      if (op.isTool) {
        const calls = inputs.map((input) => toolhost.callTool('manage', outsiderKey, op.name, input));
        const [foreignResult, unknownResult] = await Promise.all(calls);
        assert.ok(foreignResult?.isError);
        assert.deepEqual(foreignResult, unknownResult);
      }
      const limited = await sendRest(op, inputs[0], await createLimitedClient());
      assert.ok([403, 404].includes(limited.status));
      assert.deepEqual(await takeSnapshot(), before);
    });
  }

  for (const [verb, status] of Object.entries({ plan: 200, apply: 400 })) {
    it(`[sec E1] are unchanged by ${verb}McpServer, which reports only that the slug is unavailable`, async () => {
      const before = await takeSnapshot();
      const body = { config: buildServerAt('owned', upstream.url, { name: 'Taken over' }), secrets: { KEY: 'v' } };
      const reply = await asOutsider('POST', `/servers/owned/${verb}`, body);
      assert.equal(reply.status, status, reply.text);
      const problem = { path: 'slug', message: '"owned" is taken or was used before; choose another slug' };
      assert.deepEqual(reply.body.problems, [problem]);
      const asLimited = await createLimitedClient();
      assert.equal((await asLimited('POST', `/servers/owned/${verb}`, body)).status, 404);
      assert.deepEqual(await takeSnapshot(), before);
    });
  }

  it('[sec E1] do not appear in any list', async () => {
    for (const field of ['servers', 'calls', 'grants'])
      for (const path of [`/${field}`, `/${field}?slug=owned`])
        assert.deepEqual((await asOutsider('GET', path)).body[field], [], path);
    const { body } = await asOutsider('GET', '/keys');
    assert.equal((body.keys as Json[]).length, 1);
    const cursor = Buffer.from(`${Date.now() + 1000}.srv_zzz`).toString('base64url');
    assert.deepEqual((await asOutsider('GET', `/servers?cursor=${cursor}`)).body.servers, []);
  });

  it('[sec E1] cannot be reached through fields that name an owner', async () => {
    const fields = ['workspace_id', 'workspaceId', 'tenant_id', 'owner', 'created_by', 'id', 'version', '__proto__'];
    for (const field of fields) {
      const body = JSON.parse(`{"${field}":"victim","name":"Mine","slug":"mine","tools":[]}`) as Json;
      const { status, text } = await asOutsider('POST', '/servers', body);
      assert.match(`${status} ${text}`, /^400 .*unknown field/, field);
      const key = { name: 'x', scopes: ['call'], [field]: 'victim' };
      assert.equal((await asOutsider('POST', '/keys', key)).status, 400, field);
    }
    assert.equal((await asOutsider('GET', '/servers/mine')).status, 404);
  });

  it('[sec E1] keep their slug, and others learn only that it is taken', async () => {
    const { status, body } = await asOutsider('POST', '/servers', buildServerAt('owned', upstream.url));
    assert.equal(status, 409);
    assert.equal(body.detail, 'slug: "owned" is taken or was used before; choose another slug');
  });

  it('[sec E2] cannot be imitated with reserved, mixed-case, non-ASCII, or encoded slugs', async () => {
    const slugs = [
      ...['Owned', 'OWNED', 'owned ', ' owned', 'o', 'ow', 'owned-', '-owned', 'ow--ned', 'ow_ned', 'ow.ned', 'ow/ned'],
      ...['ow%6eed', 'оwned', 'ｏwned', 'owned\u200b', 'x'.repeat(64)],
      ...['manage', 'api', 'admin', 'login', 'oauth', 'well-known', 'health', 'mcp'],
    ];
    for (const slug of slugs) {
      const { status, body } = await asOutsider('POST', '/servers', { ...buildServerAt('x', upstream.url), slug });
      assert.deepEqual([status, pluck(body.problems, 'path')[0]], [400, 'slug'], slug);
    }
    for (const path of ['Owned', 'OWNED', 'ow%6Eed', 'owned%20'])
      assert.ok([400, 404].includes((await toolhost.rpc(path, ownerKey, 'ping')).status), path);
  });
});

describe('a key with restricted access', async () => {
  const upstream = await startRecordingUpstream();
  const toolhost = await startToolhost({ egressPorts: [upstream.port] });
  for (const slug of ['first', 'second']) await toolhost.createServer(buildServerAt(slug, upstream.url));
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
    const requestAsLimited = createKeyClient(toolhost, await toolhost.createKey({ servers: ['first'] }));
    assert.deepEqual(pluck((await requestAsLimited('GET', '/servers')).body.servers, 'slug'), ['first']);
    assert.equal((await requestAsLimited('PATCH', '/servers/first', { description: 'Mine.' })).status, 200);
    assert.equal((await requestAsLimited('POST', '/servers', buildServerAt('third', upstream.url))).status, 404);
    assert.equal((await requestAsLimited('POST', '/check', buildServerAt('third', upstream.url))).status, 404);
    // The document title would become the slug of a new server.
    const info = { title: 'Fourth', version: '1' };
    const document = JSON.stringify({ openapi: '3.0.0', info, servers: [{ url: upstream.url }], paths: {} });
    const imported = await requestAsLimited('POST', '/import', { document, name: 'Fourth', mode: 'create' });
    assert.equal(imported.status, 404);
    for (const path of ['/servers/second', '/servers?slug=second', '/calls?slug=second', '/grants?slug=second'])
      assert.equal((await requestAsLimited('GET', path)).status, 404, path);
    for (const path of ['/keys', '/audit']) assert.equal((await requestAsLimited('GET', path)).status, 403, path);
    assert.equal((await requestAsLimited('DELETE', '/servers/second')).status, 404);
    assert.equal((await requestAsLimited('DELETE', '/grants/grt_x')).status, 403);
    await toolhost.callTool('second', 'some-token', 'get');
    await toolhost.callTool('first', 'some-token', 'get');
    assert.deepEqual(pluck((await requestAsLimited('GET', '/calls')).body.calls, 'server'), ['first']);
  });
});
