import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { callerToken, getResultText, type OneToolFixture, startOneTool } from '../support/one-tool.ts';
import { boolean, object, text } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const optional = { type: 'string', optional: true };

describe('the upstream request: URL, body, and encoding', () => {
  let oneTool: OneToolFixture;
  before(async () => {
    oneTool = await startOneTool();
  });
  after(() => oneTool.stop());

  /** Returns method, path with query, and body of the one request that a call results in. */
  const buildRequest = async (tool: Json, args: Json = {}) => {
    const { method, url, body } = await oneTool.captureRequest(await oneTool.createToolServer(tool), args);
    return [`${method} ${url}`, body.toString()];
  };
  const buildUrl = async (url: string, input_schema: Json, args: Json = {}, more: Json = {}) => {
    const [line] = await buildRequest({ url, input_schema, ...more }, args);
    return line?.replace(/^GET /, '');
  };

  it('[spec 4.3.1] uses the method, URL, and static headers of the tool', async () => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      const headers = { 'X-Static': 'as Written', accept: 'text/csv' };
      const request = await oneTool.captureRequest(
        await oneTool.createToolServer({ method, headers, url: '/v1/a%20b/c,d?x=1&y=a+b%2F&&z' }),
      );
      assert.equal(request.method, method);
      assert.equal(request.url, '/v1/a%20b/c,d?x=1&y=a+b%2F&&z');
      assert.equal(request.headers['x-static'], 'as Written');
      assert.equal(request.headers.accept, 'text/csv');
    }
  });

  it('[spec 4.3.2] replaces each token in path and query, also after an operator prefix', async () => {
    const input_schema = { org: text, id: text };
    const args = { org: 'acme', id: '5' };
    assert.equal(await buildUrl('/orgs/:org/items/:id', input_schema, args), '/orgs/acme/items/5');
    assert.equal(await buildUrl('/items?id=eq.:id&org=:org', input_schema, args), '/items?id=eq.5&org=acme');
    assert.equal(
      await buildUrl('/:org/:org?a=:org-:org.x', { org: text }, { org: 'é' }),
      '/%C3%A9/%C3%A9?a=%C3%A9-%C3%A9.x',
    );
  });

  it('[spec 4.3.3] appends GET arguments that are not in the URL to the query, together with templates', async () => {
    const input_schema = { id: text, q: optional, page: { type: 'integer', optional: true } };
    assert.equal(
      await buildUrl('/items/:id?sort=up', input_schema, { page: 2, q: 'a b', id: 'x' }),
      '/items/x?sort=up&q=a%20b&page=2',
    );
    assert.equal(await buildUrl('/items/:id', input_schema, { id: 'x' }), '/items/x');
  });

  it('[spec 4.3.4] sends PATCH arguments that are not in the URL as JSON, and keeps the filter in the query', async () => {
    const input_schema = { id: text, name: optional, status: optional };
    assert.deepEqual(
      await buildRequest({ method: 'PATCH', url: '/items?id=eq.:id', input_schema }, { id: '5', status: 'done' }),
      ['PATCH /items?id=eq.5', '{"status":"done"}'],
    );
  });

  it('[spec 4.3.5] [behaviour request 6] sends the arguments of a POST as JSON with its Content-Type', async () => {
    const input_schema = { name: text, list: { type: 'array' }, deep: { type: 'object' }, flag: boolean };
    const args = { flag: false, deep: { a: [null, 'ü'] }, list: [1, 'x'], name: 'A' };
    const slug = await oneTool.createToolServer({ method: 'POST', input_schema });
    const request = await oneTool.captureRequest(slug, args);
    assert.equal(request.body.toString(), '{"name":"A","list":[1,"x"],"deep":{"a":[null,"ü"]},"flag":false}');
    assert.equal(request.headers['content-type'], 'application/json');
    assert.equal(request.headers['content-length'], String(request.body.length));
  });

  it('[spec 4.3.6] [behaviour request 4] sends PUT arguments in the body and DELETE arguments in the query', async () => {
    const tool = { url: '/items/:id', input_schema: { id: text, name: optional } };
    assert.deepEqual(await buildRequest({ ...tool, method: 'PUT' }, { id: '5', name: 'n' }), [
      'PUT /items/5',
      '{"name":"n"}',
    ]);
    assert.deepEqual(await buildRequest({ ...tool, method: 'DELETE' }, { id: '5', name: 'n' }), [
      'DELETE /items/5?name=n',
      '',
    ]);
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
    const request = await oneTool.captureRequest(
      await oneTool.createToolServer({ method: 'POST', url: '/items?x=1', input_schema }),
      args,
    );
    assert.equal(request.url, '/items?x=1&q=a');
    assert.equal(request.body.toString(), '{"b":[1],"rest":"r"}');
    assert.equal(Buffer.from(String(request.headers['x-trace']), 'latin1').toString('latin1'), 'é');
    const removal = { method: 'DELETE', input_schema: { ids: { type: 'array', in: 'body', optional: true } } };
    assert.deepEqual(await buildRequest(removal, { ids: [1, 2] }), ['DELETE /v1/things', '{"ids":[1,2]}']);
    assert.deepEqual(await buildRequest(removal), ['DELETE /v1/things', '']);
    const inPath = { url: '/items/:id', input_schema: { id: { type: 'string', in: 'path' } } };
    assert.deepEqual(await buildRequest(inPath, { id: 'a' }), ['GET /items/a', '']);
  });

  it('[behaviour request 1] matches the longest declared name, in one pass, and keeps other colons', async () => {
    const input_schema = {
      id: text,
      id_long: text,
      user: optional,
      'user.name': text,
      'ids[]': optional,
      cancel: optional,
    };
    const args = { id: 'A', id_long: ':id', 'user.name': 'U' };
    assert.equal(await buildUrl('/:id_long/:id/:user.name', input_schema, args), '/%3Aid/A/U');
    assert.equal(
      await buildUrl('/x:stop/:id:stop/12:30?t=12:30&:=1', { id: text }, { id: 'A' }),
      '/x:stop/A:stop/12:30?t=12:30&:=1',
    );
    assert.equal(await buildUrl('/x:cancel', { cancel: text }, { cancel: 'now' }), '/xnow');
    assert.equal(await buildUrl('/a?i=:ids[]', { 'ids[]': text }, { 'ids[]': '7' }), '/a?i=7');
  });

  it('[behaviour request 2] keeps the literal text around tokens, including dots', async () => {
    const input_schema = { name: text, ext: text };
    const args = { name: 'report', ext: 'pdf' };
    assert.equal(await buildUrl('/files/:name.:ext', input_schema, args), '/files/report.pdf');
    assert.equal(await buildUrl('/.:name/..:ext.', input_schema, args), '/.report/..pdf.');
    assert.equal(await buildUrl('/%2e:name/a%2Fb/:ext', input_schema, args), '/%2ereport/a%2Fb/pdf');
    assert.equal(await buildUrl('//:name//:ext/', input_schema, args), '//report//pdf/');
    assert.equal(await buildUrl('?a=..:name&b=:ext(.)', input_schema, args), '/?a=..report&b=pdf(.)');
  });

  it('[behaviour request 3] drops a query pair whose token is absent, and rejects an absent path token', async () => {
    const input_schema = { id: optional, a: optional, b: optional };
    const url = '/items?x=1&id=eq.:id&range=:a-:b&y';
    assert.equal(await buildUrl(url, input_schema), '/items?x=1&y');
    assert.equal(await buildUrl(url, input_schema, { id: '5', a: '1', b: '' }), '/items?x=1&id=eq.5&range=1-&y');
    assert.equal(await buildUrl('/items?id=eq.:id', input_schema), '/items');
    const nullable = object({ id: { type: ['string', 'null'] } }, ['id']);
    assert.match(
      await oneTool.captureRefusal(await oneTool.createToolServer({ url: '/items/:id', input_schema: nullable }), {
        id: null,
      }),
      /^id: is missing; it is part of the path/,
    );
    assert.match(
      await oneTool.captureRefusal(await oneTool.createToolServer({ url, input_schema }), { a: '1' }),
      /^b: is missing; the query value range/,
    );
  });

  it('[behaviour request 5] writes strings, numbers, booleans, and objects of a query as text, and omits null', async () => {
    const properties = { s: text, n: {}, b: {}, o: {}, z: {}, list: {}, 'ids[]': {}, 'a.b-c': {} };
    const input_schema = object(properties);
    const url = await buildUrl('/q', input_schema, {
      s: "a&b=c d+é/?#%'()*!",
      n: 1.5,
      b: true,
      o: { k: ['v', 1] },
      z: null,
      'ids[]': 'x',
      'a.b-c': '~_.-',
    });
    assert.equal(
      url,
      '/q?s=a%26b%3Dc%20d%2B%C3%A9%2F%3F%23%25%27%28%29%2A%21&n=1.5&b=true&o=%7B%22k%22%3A%5B%22v%22%2C1%5D%7D&ids%5B%5D=x&a.b-c=~_.-',
    );
    assert.equal(await buildUrl('/q?z=:z', input_schema, { z: null, b: false }), '/q?b=false');
  });

  it('[behaviour request 5] writes query arrays by array_format', async () => {
    const input_schema = { ids: { type: 'array', optional: true } };
    const args = { ids: ['a', 1, null, true, { x: [2] }] };
    const buildWithFormat = (array_format: string | undefined) =>
      buildUrl('/q', input_schema, args, array_format ? { array_format } : {});
    assert.equal(await buildWithFormat(undefined), '/q?ids=a&ids=1&ids=true&ids=%7B%22x%22%3A%5B2%5D%7D');
    assert.equal(await buildWithFormat('repeat'), await buildWithFormat(undefined));
    assert.equal(await buildWithFormat('comma'), '/q?ids=a,1,true,%7B%22x%22%3A%5B2%5D%7D');
    assert.equal(
      await buildWithFormat('brackets'),
      '/q?ids%5B%5D=a&ids%5B%5D=1&ids%5B%5D=true&ids%5B%5D=%7B%22x%22%3A%5B2%5D%7D',
    );
    assert.equal(await buildUrl('/q', input_schema, { ids: [] }), '/q');
    assert.equal(await buildUrl('/q?i=in.(:ids)', input_schema, { ids: [1, 2] }), '/q?i=in.(1,2)');
  });

  it('[behaviour request 6] sends {} when declared body fields are absent, and no body when none is declared', async () => {
    for (const method of ['POST', 'PUT', 'PATCH']) {
      assert.deepEqual(await buildRequest({ method, input_schema: { a: optional } }), [`${method} /v1/things`, '{}']);
      const bare = await oneTool.captureRequest(
        await oneTool.createToolServer({ method, url: '/x/:id', input_schema: { id: text } }),
        { id: '1' },
      );
      assert.deepEqual([bare.url, bare.body.toString(), bare.headers['content-type']], ['/x/1', '', undefined]);
    }
    const nullable = object({ a: { type: ['string', 'null'] } });
    assert.deepEqual(await buildRequest({ method: 'POST', input_schema: nullable }, { a: null }), [
      'POST /v1/things',
      '{"a":null}',
    ]);
  });

  it('[find E3] treats null as absent where the schema does not allow null, and sends it where it does', async () => {
    const nullableText = { anyOf: [text, { type: 'null' }] };
    const schema = object({ id: text, q: text, kept: nullableText, limit: { type: 'integer', default: 5 } }, ['id']);
    const args = { id: 'x', q: null, kept: null, limit: null };
    const [line, body] = await buildRequest({ method: 'POST', url: '/items/:id?q=:q', input_schema: schema }, args);
    assert.equal(line, 'POST /items/x');
    assert.deepEqual(JSON.parse(body ?? ''), { kept: null, limit: 5 });
    assert.equal(await buildUrl('/items/:id', schema, args), '/items/x?limit=5');
    const { isError } = await oneTool.call(
      await oneTool.createToolServer({ url: '/items/:id', input_schema: schema }),
      { id: null },
    );
    assert.equal(isError, true, 'a required argument that is null is missing');
  });

  it('[behaviour request 7] fills in defaults of absent arguments, in path, query, and body', async () => {
    const input_schema = {
      v: { type: 'string', default: 'v2' },
      limit: { type: 'integer', default: 10 },
      filter: { type: 'object', default: { on: true } },
    };
    const tool = { method: 'POST', url: '/:v/items?limit=:limit', input_schema };
    assert.deepEqual(await buildRequest(tool), ['POST /v2/items?limit=10', '{"filter":{"on":true}}']);
    assert.deepEqual(await buildRequest(tool, { v: 'v1', limit: 0, filter: {} }), [
      'POST /v1/items?limit=0',
      '{"filter":{}}',
    ]);
    const full = object({ v: { type: 'string', default: 'd' } }, ['v']);
    assert.equal(await buildUrl('/:v', full), '/d');
  });

  it('accepts arguments with names of inherited object properties', async () => {
    const input_schema = { toString: optional, valueOf: optional, hasOwnProperty: optional };
    assert.equal(await buildUrl('/a/b?x=:valueOf', input_schema), '/a/b');
    assert.equal(await buildUrl('/a', input_schema, { toString: 'x' }), '/a?toString=x');
    assert.deepEqual(await buildRequest({ method: 'POST', input_schema }), ['POST /v1/things', '{}']);
    const missing = await oneTool.captureRefusal(
      await oneTool.createToolServer({ url: '/:toString', input_schema: { toString: text } }),
    );
    assert.equal(missing, 'The arguments are invalid: toString: is missing');
  });

  const send = async (tool: Json, args: Json) => {
    const { headers, body } = await oneTool.captureRequest(
      await oneTool.createToolServer({ method: 'POST', ...tool }),
      args,
    );
    return { type: headers['content-type'], body: body.toString() };
  };
  const form = 'application/x-www-form-urlencoded';
  const withContentType = (type: string) => ({ headers: { 'content-type': type } });

  it('[behaviour request 6] sends a form when the static Content-Type or `body` requires it', async () => {
    const properties = { a: text, n: {}, list: { type: 'array' }, o: { type: 'object', style: 'json' }, z: {} };
    const full = object(properties);
    const args = { a: "x y&z=1+é'()*", n: 1.5, list: [1, 'b'], o: { k: 1 }, z: null };
    const body = 'a=x%20y%26z%3D1%2B%C3%A9%27%28%29%2A&n=1.5&list=1&list=b&o=%7B%22k%22%3A1%7D';
    assert.deepEqual(await send({ input_schema: full, body: 'form' }, args), { type: form, body });
    assert.deepEqual(await send({ input_schema: full, ...withContentType(form) }, args), { type: form, body });
    const utf8 = `${form}; charset=UTF-8`;
    assert.deepEqual(await send({ input_schema: full, body: 'form', ...withContentType(utf8) }, args), {
      type: utf8,
      body,
    });
    const lists = object({ list: { type: 'array' } });
    const brackets = await send({ input_schema: lists, body: 'form', array_format: 'brackets' }, { list: [1, 2] });
    assert.equal(brackets.body, 'list%5B%5D=1&list%5B%5D=2');
    const comma = await send({ input_schema: lists, body: 'form', array_format: 'comma' }, { list: [1, 2] });
    assert.equal(comma.body, 'list=1,2');
  });

  it('[behaviour request 6] sends multipart/form-data with its own boundary', async () => {
    const input_schema = { 'file[name]': text, list: { type: 'array' } };
    const args = { 'file[name]': 'line\r\n--boundary\r\n"é"', list: ['a', 2] };
    for (const tool of [
      { body: 'multipart' },
      withContentType('multipart/form-data'),
      withContentType('Multipart/Form-Data; boundary=mine'),
    ]) {
      const { headers, rawHeaders, body } = await oneTool.captureRequest(
        await oneTool.createToolServer({ method: 'POST', input_schema, ...tool }),
        args,
      );
      const types = rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-type');
      assert.equal(types.length, 1);
      assert.match(headers['content-type'] ?? '', /^multipart\/form-data; boundary=/);
      const fields = await new Response(new Uint8Array(body), {
        headers: { 'content-type': String(headers['content-type']) },
      }).formData();
      assert.deepEqual(
        [...fields],
        [
          ['file[name]', args['file[name]']],
          ['list', 'a'],
          ['list', '2'],
        ],
      );
    }
  });

  it('[behaviour Configuration] sends the argument that `body` names as the body, and the others in the query', async () => {
    const input_schema = { payload: {}, q: text };
    const full = object(input_schema);
    const tool = { method: 'POST', input_schema: full, body: 'payload' };
    const sendPayload = async (payload: unknown, more: Json = {}) => {
      const { url, headers, body } = await oneTool.captureRequest(
        await oneTool.createToolServer({ ...tool, ...more }),
        { payload, q: 'x' },
      );
      assert.equal(url, '/v1/things?q=x');
      return [headers['content-type'], body.toString()];
    };
    assert.deepEqual(await sendPayload({ a: [1] }), ['application/json', '{"a":[1]}']);
    assert.deepEqual(await sendPayload([1, 'é']), ['application/json', '[1,"é"]']);
    assert.deepEqual(await sendPayload('plain é'), ['text/plain; charset=utf-8', 'plain é']);
    assert.deepEqual(await sendPayload('a,b\n1,2', withContentType('text/csv')), ['text/csv', 'a,b\n1,2']);
    assert.deepEqual(await sendPayload('text', withContentType('application/json')), ['application/json', '"text"']);
    assert.deepEqual(await sendPayload({ a: 1 }, withContentType('application/vnd.api+json')), [
      'application/vnd.api+json',
      '{"a":1}',
    ]);
    const raw = 'multipart/form-data; boundary=mine';
    assert.deepEqual(await sendPayload('--mine--', withContentType(raw)), [raw, '--mine--']);
    assert.deepEqual(await send(tool, {}), { type: undefined, body: '' });
  });

  it('[behaviour request 6] keeps a static JSON Content-Type as written', async () => {
    const input_schema = { a: text };
    const type = 'application/merge-patch+json; charset=utf-8';
    assert.deepEqual(await send({ method: 'PATCH', input_schema, ...withContentType(type) }, { a: 'x' }), {
      type,
      body: '{"a":"x"}',
    });
    const amazon = await send({ input_schema, ...withContentType('application/x-amz-json-1.1') }, { a: 'x' });
    assert.deepEqual(amazon, { type: 'application/x-amz-json-1.1', body: '{"a":"x"}' });
    const named = await send({ input_schema, body: 'json', ...withContentType('text/plain') }, { a: 'x' });
    assert.deepEqual(named, { type: 'text/plain', body: '{"a":"x"}' });
  });

  it('keeps the digits of numbers in path, query, header, form, and JSON', async () => {
    const number = { type: 'number' };
    const digits = ['9007199254740993', '1.10', '1.0', '-0', '1e2', '0.0000001', '12345678.123456789', '1E10'];
    const input_schema = {
      p: number,
      q: number,
      'X-N': { ...number, in: 'header' },
      list: { type: 'array' },
      o: { type: 'object' },
    };
    const json = await oneTool.createToolServer({ method: 'POST', url: '/n/:p?q=:q', input_schema });
    const styled = { ...input_schema, o: { type: 'object', style: 'json' } };
    const formed = await oneTool.createToolServer({
      method: 'POST',
      url: '/n/:p?q=:q',
      input_schema: styled,
      body: 'form',
    });
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
    assert.deepEqual(
      oneTool.upstream.take().map(({ body }) => body.toString()),
      [payload, payload],
    );
  });
});
