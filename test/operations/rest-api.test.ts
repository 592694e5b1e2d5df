import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { operationList } from '@toolhost/server/operations';
import { pluck } from '../support/pluck.ts';
import { createKeyClient } from '../support/toolhost/rest-clients.ts';
import { type Json, type Reply, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

type Operation = {
  operationId: string;
  'x-scope': string;
  parameters: { name: string; in: string; required: boolean }[];
  requestBody?: Json;
  responses: Json;
};

const origin = 'https://api.example';

describe('REST API', async () => {
  const toolhost = await startToolhost();
  const key = await toolhost.createKey();
  after(() => toolhost.stop());

  const rest = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    toolhost.rest(method, path, { key, ...(body !== undefined && { body }), headers });
  const getEtag = (reply: Reply) => reply.headers.get('etag') ?? '';
  const codes: Record<number, string> = {
    400: 'invalid_request',
    401: 'unauthenticated',
    403: 'forbidden',
    404: 'not_found',
    405: 'method_not_allowed',
    409: 'conflict',
    413: 'too_large',
    415: 'unsupported_media_type',
    429: 'too_many_requests',
  };
  /** Asserts that a reply is an RFC 9457 error with its own status and request ID. */
  const assertProblem = (reply: Reply, status: number) => {
    assert.equal(reply.status, status, reply.text);
    assert.match(reply.headers.get('content-type') ?? '', /^application\/problem\+json/);
    assert.deepEqual(
      [reply.body.type, reply.body.status, reply.body.code, reply.body.request_id],
      ['about:blank', status, codes[status], reply.headers.get('x-request-id')],
    );
    assert.ok(String(reply.body.title).length > 0 && String(reply.body.detail).length > 0);
    return reply.body as { title: string; detail: string; problems?: { path: string; message: string }[] };
  };

  it('creates a server with 201, and reads, changes, replaces, and deletes it', async () => {
    const created = await rest('POST', '/servers', buildServerAt('by-rest', origin));
    assert.deepEqual([created.status, getEtag(created)], [201, '"1"']);
    const read = await rest('GET', '/servers/by-rest');
    assert.deepEqual([read.status, getEtag(read)], [200, '"1"']);
    assert.deepEqual((read.body.config as Json).tools, [
      { headers: {}, input_schema: {}, response_transform: '.', timeout_ms: 10_000, ...buildToolAt(`${origin}/thing`) },
    ]);
    const patched = await rest('PATCH', '/servers/by-rest', { description: 'By REST.' });
    assert.deepEqual([patched.status, getEtag(patched)], [200, '"2"']);
    const put = await rest('PUT', '/servers/by-rest', buildServerAt('by-rest', origin));
    assert.deepEqual([put.status, getEtag(put), (put.body.server as Json).description], [200, '"3"', undefined]);
    assertProblem(await rest('PUT', '/servers/by-rest', { name: 'No tools' }), 400);
    assert.equal((await rest('DELETE', '/servers/by-rest')).body.deleted, 'by-rest');
    assertProblem(await rest('GET', '/servers/by-rest'), 404);
    assertProblem(await rest('DELETE', '/servers/by-rest'), 404);
    assertProblem(await rest('POST', '/servers', buildServerAt('by-rest', origin)), 409);
  });

  it('changes nothing if If-Match names another version or is invalid', async () => {
    await rest('POST', '/servers', buildServerAt('matched', origin));
    for (const method of ['PATCH', 'PUT']) {
      const change = buildServerAt('matched', origin, { name: 'Changed' });
      for (const [match, status] of Object.entries({
        '"2"': 409,
        'W/"9"': 409,
        3: 400,
        '"abc"': 400,
        '"1", "2"': 400,
        '""': 400,
      }))
        assertProblem(await rest(method, '/servers/matched', change, { 'if-match': match }), status);
    }
    assertProblem(await rest('POST', '/servers/matched/versions/1/restore', {}, { 'if-match': '"7"' }), 409);
    assertProblem(await rest('PATCH', '/servers/matched', { expected_version: 2 }), 409);
    assert.equal(((await rest('GET', '/servers/matched')).body.server as Json).version, 1);
    const config = buildServerAt('matched', origin);
    for (const [method, body, match, etag] of [
      ['PATCH', { name: 'Weak' }, 'W/"1"', '"2"'],
      ['PUT', config, '"2"', '"3"'],
      ['PATCH', { name: 'Any' }, '*', '"4"'],
    ] as const)
      assert.equal(getEtag(await rest(method, '/servers/matched', body, { 'if-match': match })), etag);
  });

  it('lists servers and keys in pages, each of them once', async () => {
    const send = createKeyClient(toolhost, await toolhost.createKey({ workspace: 'lister' }));
    for (let n = 0; n < 5; n += 1) await send('POST', '/servers', buildServerAt(`listed-${n}`, origin));
    for (let n = 0; n < 4; n += 1) await send('POST', '/keys', { name: `Key ${n}`, scopes: ['call'] });
    for (const field of ['servers', 'keys']) {
      const seen: unknown[] = [];
      let pages = 0;
      for (let cursor: unknown = ''; cursor !== undefined; pages += 1) {
        const { body } = await send('GET', `/${field}?limit=2${cursor && `&cursor=${String(cursor)}`}`);
        seen.push(...pluck(body[field], 'id'));
        cursor = body.next_cursor;
      }
      assert.deepEqual([seen.length, new Set(seen).size, pages], [5, 5, 3]);
    }
    assertProblem(await rest('GET', '/servers?cursor=forged'), 400);
    assertProblem(await rest('GET', '/keys?limit=0'), 400);
  });

  it('[sec E3] shows an API key once, and neither the key nor its hash in its record', async () => {
    const limits = { servers: ['matched'], expires_at: '2100-01-01T00:00:00Z' };
    const created = await rest('POST', '/keys', { name: 'Mine', scopes: ['call', 'call'], ...limits });
    assert.deepEqual([created.status, created.headers.get('cache-control')], [201, 'no-store']);
    const { key: secret, ...record } = created.body;
    assert.match(String(secret), /^thk_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/);
    const { scopes, servers, expires_at } = record;
    assert.deepEqual([scopes, servers, expires_at], [['call'], ['matched'], '2100-01-01T00:00:00.000Z']);
    const listed = await rest('GET', '/keys?limit=200');
    const findListed = ({ body }: Reply) => (body.keys as Json[]).find((row) => row.id === record.id);
    assert.deepEqual(findListed(listed), record);
    assert.equal(listed.text.includes(String(secret).split('_')[2] ?? ''), false);
    assert.doesNotMatch(listed.text, /"\w*hash\w*":/);
    assert.deepEqual((await rest('DELETE', `/keys/${String(record.id)}`)).body, { revoked: record.id });
    assertProblem(await rest('DELETE', `/keys/${String(record.id)}`), 404);
    assert.match(String(findListed(await rest('GET', '/keys?limit=200'))?.revoked_at), /^\d{4}-/);
  });

  it('[sec E3] refuses to create a key with more permissions than the key that creates it', async () => {
    const writer = await toolhost.createKey({ scopes: ['manage:write'] });
    const createKey = (scopes: string[], token: string) =>
      toolhost.rest('POST', '/keys', { key: token, body: { name: 'More', scopes } });
    assert.equal((await createKey(['manage:write'], writer)).status, 201);
    for (const scopes of [['manage'], ['manage:read'], ['call'], ['manage:write', 'call']])
      assertProblem(await createKey(scopes, writer), 403);
    for (const options of [
      { scopes: ['manage:read' as const] },
      { scopes: ['call' as const] },
      { servers: ['matched'] },
    ])
      assertProblem(await createKey(['call'], await toolhost.createKey(options)), 403);
    const expiries = [{ expires_at: '2020-01-01T00:00:00Z' }, { expires_at: 'soon' }];
    const others = [{ scopes: [] }, { scopes: ['root'] }, { name: ' ' }, { servers: [] }, { workspace_id: 'x' }];
    for (const invalidFields of [...expiries, ...others])
      assertProblem(await rest('POST', '/keys', { name: 'Wrong', scopes: ['call'], ...invalidFields }), 400);
  });

  it('reports every invalid request as a problem that names the error', async () => {
    const invalid = await rest('POST', '/servers', { ...buildServerAt('x', origin), nam: 1 });
    assert.deepEqual(pluck(assertProblem(invalid, 400).problems, 'path').toSorted(), ['nam', 'slug']);
    assertProblem(await rest('GET', '/nowhere'), 404);
    const wrongMethod = await rest('POST', '/servers/matched');
    assert.match(assertProblem(wrongMethod, 405).detail, /allows only GET, PUT, PATCH, DELETE/);
    assert.equal(wrongMethod.headers.get('allow'), 'GET, PUT, PATCH, DELETE');
    const unauthenticated = await toolhost.rest('GET', '/servers', { headers: { authorization: '' } });
    assert.equal(unauthenticated.headers.get('www-authenticate')?.startsWith('Bearer'), true);
    assertProblem(unauthenticated, 401);
    assertProblem(await toolhost.rest('GET', '/servers', { key: 'thk_junk' }), 401);
    const send = async (body: string | Buffer, type = 'application/json') => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': type };
      const request = { method: 'POST', body, headers };
      const response = await fetch(`${toolhost.url}/api/v1/servers`, request);
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Json };
    };
    for (const body of ['{', '[]', '"x"', 'null', '1']) assertProblem(await send(body), 400);
    const latin1 = JSON.stringify(buildServerAt('latin', origin, { name: 'Müller' }));
    assert.match(String(assertProblem(await send(Buffer.from(latin1, 'latin1')), 400).detail), /not UTF-8/);
    assertProblem(await rest('GET', '/servers/latin'), 404);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded']) assertProblem(await send('{}', type), 415);
    assertProblem(await send(`{"name":"${'x'.repeat(4 * 1024 * 1024)}"}`), 413);
    assert.ok([400, 413].includes((await send(`{"tools":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)).status));
  });

  it('records the actor and the target of every change, without secrets', async () => {
    const auditor = await toolhost.createKey({ workspace: 'audited' });
    const sendAsAuditor = createKeyClient(toolhost, auditor);
    const authentication = { type: 'Bearer', token: 'hidden-token' };
    const created = await sendAsAuditor('POST', '/servers', buildServerAt('audited', origin, { authentication }));
    await sendAsAuditor('PUT', '/servers/audited/secrets/KEY', { value: 'hidden-value' });
    await sendAsAuditor('PATCH', '/servers/audited', { name: 'Renamed' });
    await sendAsAuditor('POST', '/servers/audited/versions/1/restore', {});
    await sendAsAuditor('DELETE', '/servers/audited/secrets/KEY');
    const createdKey = await sendAsAuditor('POST', '/keys', { name: 'Other', scopes: ['call'] });
    await sendAsAuditor('DELETE', `/keys/${String(createdKey.body.id)}`);
    await sendAsAuditor('DELETE', '/servers/audited');
    await sendAsAuditor('GET', '/servers');
    await sendAsAuditor('POST', '/servers', { name: 'Refused' });
    const { body, text } = await sendAsAuditor('GET', '/audit?limit=9');
    const events = (body.events as Json[]).toReversed();
    const [key, otherKey] = [`key_${auditor.split('_')[1]}`, createdKey.body.id];
    assert.deepEqual(pluck(events, 'operation', 'target'), [
      ...['createApiKey', key, 'createMcpServer', 'audited', 'setSecret', 'audited', 'updateMcpServer', 'audited'],
      ...['restoreVersion', 'audited', 'deleteSecret', 'audited', 'createApiKey', otherKey, 'revokeApiKey', otherKey],
      ...['deleteMcpServer', 'audited'],
    ]);
    const [, first] = events;
    const actor = { actor_kind: 'api_key', actor_id: key, request_id: created.headers.get('x-request-id') };
    assert.partialDeepStrictEqual(first, actor);
    assert.deepEqual(first?.detail, { version: 1, name: 'audited', tools: 1, access: 'api_key' });
    assert.doesNotMatch(text, /hidden/);
    assert.equal(text.includes(String(createdKey.body.key)), false);
  });

  it('matches its OpenAPI document in every path, scope, and parameter', async () => {
    const response = await fetch(`${toolhost.url}/api/v1/openapi.json`);
    type Document = { openapi: string; servers: Json[]; paths: Record<string, Record<string, Operation>> };
    const document = (await response.json()) as Document;
    assert.deepEqual([document.openapi, document.servers], ['3.1.0', [{ url: `${toolhost.url}/api/v1` }]]);
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, op]) => ({ method: method.toUpperCase(), path, op })),
    );
    const routes = operationList.map(({ route }) => `${route.method} ${route.path}`).toSorted();
    assert.deepEqual(described.map(({ method, path }) => `${method} ${path}`).toSorted(), routes);
    assert.equal(new Set(described.map(({ op }) => op.operationId)).size, operationList.length);
    for (const { method, path, op } of described) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].flatMap((match) => [match[1], true]);
      const pathParameters = op.parameters.filter((parameter) => parameter.in === 'path');
      assert.deepEqual(pluck(pathParameters, 'name', 'required'), inPath, path);
      if (method === 'GET' || method === 'DELETE') assert.equal(op.requestBody, undefined, path);
      const scopes = op['x-scope'] === 'call' ? (['manage'] as const) : (['call'] as const);
      const unfit = await toolhost.createKey({ workspace: 'absent', scopes: [...scopes] });
      const send = createKeyClient(toolhost, unfit);
      const refused = await send(method, path.replaceAll(/\{(\w+)\}/g, 'x'), op.requestBody && {});
      assert.match(assertProblem(refused, 403).detail, new RegExp(`needs the scope ${op['x-scope']}`), path);
      assert.ok('200' in op.responses || '201' in op.responses);
      assert.ok('404' in op.responses && '409' in op.responses);
    }
  });
});
