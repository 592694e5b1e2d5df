import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callerToken, getResultText } from '../support/one-tool.ts';
import { pluck } from '../support/pluck.ts';
import { boolean, number, object, text } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useOneTool } from '../support/use-one-tool.ts';

const optional = { type: 'string', optional: true };
const list = { type: 'array' };
const nullable = { type: ['string', 'null'] };

describe('the upstream request: URL, body, and encoding', () => {
  const oneTool = useOneTool();
  const { send, getRefusal } = oneTool;

  /** Checks the method, the path with its query, and the body of the one request that a call results in. */
  const assertRequest = async (tool: Json, args: Json, line: string, sentBody = '') => {
    const { method, url, body } = await send(tool, args);
    assert.deepEqual([`${method} ${url}`, body.toString()], [line, sentBody]);
  };
  const assertUrl = (url: string, input_schema: Json, args: Json, sent: string, more: Json = {}) =>
    assertRequest({ url, input_schema, ...more }, args, `GET ${sent}`);

  it('[spec 4.3.1] uses the method, URL, and static headers of the tool', async () => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      const headers = { 'X-Static': 'as Written', accept: 'text/csv' };
      const request = await send({ method, headers, url: '/v1/a%20b/c,d?x=1&y=a+b%2F&&z' });
      assert.deepEqual([request.method, request.url], [method, '/v1/a%20b/c,d?x=1&y=a+b%2F&&z']);
      assert.deepEqual([request.headers['x-static'], request.headers.accept], ['as Written', 'text/csv']);
    }
  });

  it('[spec 4.3.2] replaces each token in path and query, also after an operator prefix', async () => {
    const input_schema = { org: text, id: text };
    const args = { org: 'acme', id: '5' };
    await assertUrl('/orgs/:org/items/:id', input_schema, args, '/orgs/acme/items/5');
    await assertUrl('/items?id=eq.:id&org=:org', input_schema, args, '/items?id=eq.5&org=acme');
    const twice = '/:org/:org?a=:org-:org.x';
    await assertUrl(twice, { org: text }, { org: 'é' }, '/%C3%A9/%C3%A9?a=%C3%A9-%C3%A9.x');
  });

  it('[spec 4.3.3] appends GET arguments that are not in the URL to the query, together with templates', async () => {
    const input_schema = { id: text, q: optional, page: { type: 'integer', optional: true } };
    const args = { page: 2, q: 'a b', id: 'x' };
    await assertUrl('/items/:id?sort=up', input_schema, args, '/items/x?sort=up&q=a%20b&page=2');
    await assertUrl('/items/:id', input_schema, { id: 'x' }, '/items/x');
  });

  it('[spec 4.3.4] sends PATCH arguments that are not in the URL as JSON, and keeps the filter in the query', async () => {
    const input_schema = { id: text, name: optional, status: optional };
    const tool = { method: 'PATCH', url: '/items?id=eq.:id', input_schema };
    await assertRequest(tool, { id: '5', status: 'done' }, 'PATCH /items?id=eq.5', '{"status":"done"}');
  });

  it('[spec 4.3.5] [behaviour request 6] sends the arguments of a POST as JSON with its Content-Type', async () => {
    const input_schema = { name: text, list, deep: { type: 'object' }, flag: boolean };
    const args = { flag: false, deep: { a: [null, 'ü'] }, list: [1, 'x'], name: 'A' };
    const request = await send({ method: 'POST', input_schema }, args);
    assert.equal(request.body.toString(), '{"name":"A","list":[1,"x"],"deep":{"a":[null,"ü"]},"flag":false}');
    assert.equal(request.headers['content-type'], 'application/json');
    assert.equal(request.headers['content-length'], String(request.body.length));
  });

  it('[spec 4.3.6] [behaviour request 4] sends PUT arguments in the body and DELETE arguments in the query', async () => {
    const tool = { url: '/items/:id', input_schema: { id: text, name: optional } };
    const args = { id: '5', name: 'n' };
    await assertRequest({ ...tool, method: 'PUT' }, args, 'PUT /items/5', '{"name":"n"}');
    await assertRequest({ ...tool, method: 'DELETE' }, args, 'DELETE /items/5?name=n');
  });

  it('[behaviour request 4] lets `in` override the location of an argument', async () => {
    const inLocation = (type: string, location: string) => ({ type, in: location, optional: true });
    const input_schema = {
      q: inLocation('string', 'query'),
      b: inLocation('array', 'body'),
      'X-Trace': inLocation('string', 'header'),
      rest: optional,
    };
    const args = { q: 'a', b: [1], 'X-Trace': 'é', rest: 'r' };
    const request = await send({ method: 'POST', url: '/items?x=1', input_schema }, args);
    assert.equal(request.url, '/items?x=1&q=a');
    assert.equal(request.body.toString(), '{"b":[1],"rest":"r"}');
    assert.equal(Buffer.from(String(request.headers['x-trace']), 'latin1').toString('latin1'), 'é');
    const removal = { method: 'DELETE', input_schema: { ids: inLocation('array', 'body') } };
    await assertRequest(removal, { ids: [1, 2] }, 'DELETE /v1/things', '{"ids":[1,2]}');
    await assertRequest(removal, {}, 'DELETE /v1/things');
    await assertUrl('/items/:id', { id: { ...text, in: 'path' } }, { id: 'a' }, '/items/a');
  });

  it('[behaviour request 1] matches the longest declared name, in one pass, and keeps other colons', async () => {
    const names = { user: optional, 'user.name': text, 'ids[]': optional, cancel: optional };
    const input_schema = { id: text, id_long: text, ...names };
    const args = { id: 'A', id_long: ':id', 'user.name': 'U' };
    await assertUrl('/:id_long/:id/:user.name', input_schema, args, '/%3Aid/A/U');
    const colons = '/x:stop/:id:stop/12:30?t=12:30&:=1';
    await assertUrl(colons, { id: text }, { id: 'A' }, '/x:stop/A:stop/12:30?t=12:30&:=1');
    await assertUrl('/x:cancel', { cancel: text }, { cancel: 'now' }, '/xnow');
    await assertUrl('/a?i=:ids[]', { 'ids[]': text }, { 'ids[]': '7' }, '/a?i=7');
  });

  it('[behaviour request 2] keeps the literal text around tokens, including dots', async () => {
    for (const [url, sent] of [
      ['/files/:name.:ext', '/files/report.pdf'],
      ['/.:name/..:ext.', '/.report/..pdf.'],
      ['/%2e:name/a%2Fb/:ext', '/%2ereport/a%2Fb/pdf'],
      ['//:name//:ext/', '//report//pdf/'],
      ['?a=..:name&b=:ext(.)', '/?a=..report&b=pdf(.)'],
    ] as const)
      await assertUrl(url, { name: text, ext: text }, { name: 'report', ext: 'pdf' }, sent);
  });

  it('[behaviour request 3] drops a query pair whose token is absent, and rejects an absent path token', async () => {
    const input_schema = { id: optional, a: optional, b: optional };
    const url = '/items?x=1&id=eq.:id&range=:a-:b&y';
    await assertUrl(url, input_schema, {}, '/items?x=1&y');
    await assertUrl(url, input_schema, { id: '5', a: '1', b: '' }, '/items?x=1&id=eq.5&range=1-&y');
    await assertUrl('/items?id=eq.:id', input_schema, {}, '/items');
    const inPath = { url: '/items/:id', input_schema: object({ id: nullable }, ['id']) };
    assert.match(await getRefusal(inPath, { id: null }), /^id: is missing; it is part of the path/);
    assert.match(await getRefusal({ url, input_schema }, { a: '1' }), /^b: is missing; the query value range/);
  });

  it('[behaviour request 5] writes strings, numbers, booleans, and objects of a query as text, and omits null', async () => {
    const input_schema = object({ s: text, n: {}, b: {}, o: {}, z: {}, list: {}, 'ids[]': {}, 'a.b-c': {} });
    const values = { n: 1.5, b: true, o: { k: ['v', 1] }, z: null, 'ids[]': 'x', 'a.b-c': '~_.-' };
    const sentText = 's=a%26b%3Dc%20d%2B%C3%A9%2F%3F%23%25%27%28%29%2A%21';
    const sent = `/q?${sentText}&n=1.5&b=true&o=%7B%22k%22%3A%5B%22v%22%2C1%5D%7D&ids%5B%5D=x&a.b-c=~_.-`;
    await assertUrl('/q', input_schema, { s: "a&b=c d+é/?#%'()*!", ...values }, sent);
    await assertUrl('/q?z=:z', input_schema, { z: null, b: false }, '/q?b=false');
  });

  it('[behaviour request 5] writes query arrays by array_format', async () => {
    const input_schema = { ids: { ...list, optional: true } };
    const args = { ids: ['a', 1, null, true, { x: [2] }] };
    const json = '%7B%22x%22%3A%5B2%5D%7D';
    await assertUrl('/q', input_schema, args, `/q?ids=a&ids=1&ids=true&ids=${json}`);
    for (const [array_format, sent] of [
      ['repeat', `ids=a&ids=1&ids=true&ids=${json}`],
      ['comma', `ids=a,1,true,${json}`],
      ['brackets', `ids%5B%5D=a&ids%5B%5D=1&ids%5B%5D=true&ids%5B%5D=${json}`],
    ])
      await assertUrl('/q', input_schema, args, `/q?${sent}`, { array_format });
    await assertUrl('/q', input_schema, { ids: [] }, '/q');
    await assertUrl('/q?i=in.(:ids)', input_schema, { ids: [1, 2] }, '/q?i=in.(1,2)');
  });

  it('[behaviour request 6] sends {} when declared body fields are absent, and no body when none is declared', async () => {
    for (const method of ['POST', 'PUT', 'PATCH']) {
      await assertRequest({ method, input_schema: { a: optional } }, {}, `${method} /v1/things`, '{}');
      const bare = await send({ method, url: '/x/:id', input_schema: { id: text } }, { id: '1' });
      assert.deepEqual([bare.url, bare.body.toString(), bare.headers['content-type']], ['/x/1', '', undefined]);
    }
    const tool = { method: 'POST', input_schema: object({ a: nullable }) };
    await assertRequest(tool, { a: null }, 'POST /v1/things', '{"a":null}');
  });

  it('[find E3] treats null as absent where the schema does not allow null, and sends it where it does', async () => {
    const kept = { anyOf: [text, { type: 'null' }] };
    const input_schema = object({ id: text, q: text, kept, limit: { type: 'integer', default: 5 } }, ['id']);
    const args = { id: 'x', q: null, kept: null, limit: null };
    const { method, url, body } = await send({ method: 'POST', url: '/items/:id?q=:q', input_schema }, args);
    assert.equal(`${method} ${url}`, 'POST /items/x');
    assert.deepEqual(JSON.parse(body.toString()), { kept: null, limit: 5 });
    await assertUrl('/items/:id', input_schema, args, '/items/x?limit=5');
    const slug = await oneTool.createToolServer({ url: '/items/:id', input_schema });
    const { isError } = await oneTool.call(slug, { id: null });
    assert.equal(isError, true, 'a required argument that is null is missing');
  });

  it('[behaviour request 7] fills in defaults of absent arguments, in path, query, and body', async () => {
    const input_schema = {
      v: { type: 'string', default: 'v2' },
      limit: { type: 'integer', default: 10 },
      filter: { type: 'object', default: { on: true } },
    };
    const tool = { method: 'POST', url: '/:v/items?limit=:limit', input_schema };
    await assertRequest(tool, {}, 'POST /v2/items?limit=10', '{"filter":{"on":true}}');
    await assertRequest(tool, { v: 'v1', limit: 0, filter: {} }, 'POST /v1/items?limit=0', '{"filter":{}}');
    await assertUrl('/:v', object({ v: { type: 'string', default: 'd' } }, ['v']), {}, '/d');
  });

  it('accepts arguments with names of inherited object properties', async () => {
    const input_schema = { toString: optional, valueOf: optional, constructor: optional, prototype: optional };
    await assertUrl('/a/b?x=:valueOf', input_schema, {}, '/a/b');
    await assertUrl('/a', input_schema, { toString: 'x' }, '/a?toString=x');
    await assertRequest({ method: 'POST', input_schema }, {}, 'POST /v1/things', '{}');
    const missing = await getRefusal({ url: '/:toString', input_schema: { toString: text } });
    assert.equal(missing, 'The arguments are invalid: toString: is missing');
  });

  /** Checks the Content-Type and the body of a POST request. */
  const assertBody = async (tool: Json, args: Json, type: string | undefined, sentBody: string) => {
    const { headers, body } = await send({ method: 'POST', ...tool }, args);
    assert.deepEqual([headers['content-type'], body.toString()], [type, sentBody]);
  };
  const form = 'application/x-www-form-urlencoded';
  const withContentType = (type: string) => ({ headers: { 'content-type': type } });

  it('[behaviour request 6] sends a form when the static Content-Type or `body` requires it', async () => {
    const input_schema = object({ a: text, n: {}, list, o: { type: 'object', style: 'json' }, z: {} });
    const args = { a: "x y&z=1+é'()*", n: 1.5, list: [1, 'b'], o: { k: 1 }, z: null };
    const sent = 'a=x%20y%26z%3D1%2B%C3%A9%27%28%29%2A&n=1.5&list=1&list=b&o=%7B%22k%22%3A1%7D';
    const utf8 = `${form}; charset=UTF-8`;
    await assertBody({ input_schema, body: 'form' }, args, form, sent);
    await assertBody({ input_schema, ...withContentType(form) }, args, form, sent);
    await assertBody({ input_schema, body: 'form', ...withContentType(utf8) }, args, utf8, sent);
    const lists = { input_schema: object({ list }), body: 'form' };
    const brackets = 'list%5B%5D=1&list%5B%5D=2';
    await assertBody({ ...lists, array_format: 'brackets' }, { list: [1, 2] }, form, brackets);
    await assertBody({ ...lists, array_format: 'comma' }, { list: [1, 2] }, form, 'list=1,2');
  });

  it('[behaviour request 6] sends multipart/form-data with its own boundary', async () => {
    const input_schema = { 'file[name]': text, list };
    const args = { 'file[name]': 'line\r\n--boundary\r\n"é"', list: ['a', 2] };
    const expected = [
      ['file[name]', args['file[name]']],
      ['list', 'a'],
      ['list', '2'],
    ];
    const types = ['multipart/form-data', 'Multipart/Form-Data; boundary=mine'];
    for (const tool of [{ body: 'multipart' }, ...types.map(withContentType)]) {
      const { headers, rawHeaders, body } = await send({ method: 'POST', input_schema, ...tool }, args);
      const names = rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-type');
      const type = headers['content-type'] ?? '';
      assert.equal(names.length, 1);
      assert.match(type, /^multipart\/form-data; boundary=/);
      const parsed = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
      assert.deepEqual([...parsed], expected);
    }
  });

  it('[behaviour Configuration] sends the argument that `body` names as the body, and the others in the query', async () => {
    const tool = { method: 'POST', input_schema: object({ payload: {}, q: text }), body: 'payload' };
    const raw = 'multipart/form-data; boundary=mine';
    const cases: [payload: unknown, contentType: string | undefined, type: string, body: string][] = [
      [{ a: [1] }, undefined, 'application/json', '{"a":[1]}'],
      [[1, 'é'], undefined, 'application/json', '[1,"é"]'],
      ['plain é', undefined, 'text/plain; charset=utf-8', 'plain é'],
      ['a,b\n1,2', 'text/csv', 'text/csv', 'a,b\n1,2'],
      ['text', 'application/json', 'application/json', '"text"'],
      [{ a: 1 }, 'application/vnd.api+json', 'application/vnd.api+json', '{"a":1}'],
      ['--mine--', raw, raw, '--mine--'],
    ];
    for (const [payload, contentType, type, sentBody] of cases) {
      const more = contentType === undefined ? {} : withContentType(contentType);
      const { url, headers, body } = await send({ ...tool, ...more }, { payload, q: 'x' });
      assert.deepEqual([url, headers['content-type'], body.toString()], ['/v1/things?q=x', type, sentBody]);
    }
    await assertBody(tool, {}, undefined, '');
  });

  it('[behaviour request 6] keeps a static JSON Content-Type as written', async () => {
    const merge = 'application/merge-patch+json; charset=utf-8';
    const amazon = 'application/x-amz-json-1.1';
    for (const [type, more] of [
      [merge, { method: 'PATCH' }],
      [amazon, {}],
      ['text/plain', { body: 'json' }],
    ] as const) {
      const tool = { input_schema: { a: text }, ...withContentType(type), ...more };
      await assertBody(tool, { a: 'x' }, type, '{"a":"x"}');
    }
  });

  it('keeps the digits of numbers in path, query, header, form, and JSON', async () => {
    const digits = ['9007199254740993', '1.10', '1.0', '-0', '1e2', '0.0000001', '12345678.123456789', '1E10'];
    const input_schema = { p: number, q: number, 'X-N': { ...number, in: 'header' }, list, o: { type: 'object' } };
    const tool = { method: 'POST', url: '/n/:p?q=:q', input_schema };
    const styled = { ...input_schema, o: { type: 'object', style: 'json' } };
    const json = await oneTool.createToolServer(tool);
    const formed = await oneTool.createToolServer({ ...tool, input_schema: styled, body: 'form' });
    for (const n of digits) {
      oneTool.upstream.take();
      const args = `{"p":${n},"q":${n},"X-N":${n},"list":[${n}],"o":{"n":${n}}}`;
      for (const slug of [json, formed]) {
        const result = await oneTool.callText(slug, args);
        assert.notEqual(result.isError, true, getResultText(result));
      }
      const [asJson, asForm] = oneTool.upstream.take();
      assert.equal(asJson?.url, `/n/${n}?q=${n}`);
      assert.equal(asJson?.headers['x-n'], n);
      assert.equal(asJson?.body.toString(), `{"list":[${n}],"o":{"n":${n}}}`);
      assert.equal(asForm?.body.toString(), `list=${n}&o=${encodeURIComponent(`{"n":${n}}`)}`);
    }
  });

  it('keeps the digits of numbers when a body is one argument, and with the stateless protocol generation', async () => {
    const input_schema = { payload: { type: 'object' } };
    const slug = await oneTool.createToolServer({ method: 'POST', input_schema, body: 'payload' });
    const payload = '{"id":9007199254740993,"price":1.10}';
    oneTool.upstream.take();
    await oneTool.callText(slug, `{"payload":${payload}}`);
    const meta =
      '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}';
    const statelessCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${meta},"name":"run","arguments":{"payload":${payload}}}}`;
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'run' };
    const { status } = await oneTool.toolhost.post(slug, statelessCall, { token: callerToken, headers });
    assert.equal(status, 200);
    assert.deepEqual(pluck(oneTool.upstream.take(), 'body').map(String), [payload, payload]);
  });
});
