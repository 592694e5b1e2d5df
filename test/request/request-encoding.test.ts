import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { callerToken, type OneTool, startOneTool, textOf } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const text = { type: 'string' };

describe('building the upstream request: encodings and digits', () => {
  let one: OneTool;
  before(async () => {
    one = await startOneTool();
  });
  after(() => one.stop());

  const sent = async (tool: Json, args: Json) => {
    const { headers, body } = await one.sent(await one.serve({ method: 'POST', ...tool }), args);
    return { type: headers['content-type'], body: body.toString() };
  };
  const form = 'application/x-www-form-urlencoded';
  const typed = (type: string) => ({ headers: { 'content-type': type } });

  it('[behaviour request 6] sends a form when the static Content-Type or `body` says so', async () => {
    const properties = { a: text, n: {}, list: { type: 'array' }, o: { type: 'object', style: 'json' }, z: {} };
    const full = { type: 'object', properties };
    const args = { a: "x y&z=1+é'()*", n: 1.5, list: [1, 'b'], o: { k: 1 }, z: null };
    const body = 'a=x%20y%26z%3D1%2B%C3%A9%27%28%29%2A&n=1.5&list=1&list=b&o=%7B%22k%22%3A1%7D';
    assert.deepEqual(await sent({ input_schema: full, body: 'form' }, args), { type: form, body });
    assert.deepEqual(await sent({ input_schema: full, ...typed(form) }, args), { type: form, body });
    const utf8 = `${form}; charset=UTF-8`;
    assert.deepEqual(await sent({ input_schema: full, body: 'form', ...typed(utf8) }, args), { type: utf8, body });
    const lists = { type: 'object', properties: { list: { type: 'array' } } };
    const brackets = await sent({ input_schema: lists, body: 'form', array_format: 'brackets' }, { list: [1, 2] });
    assert.equal(brackets.body, 'list%5B%5D=1&list%5B%5D=2');
    const comma = await sent({ input_schema: lists, body: 'form', array_format: 'comma' }, { list: [1, 2] });
    assert.equal(comma.body, 'list=1,2');
  });

  it('[behaviour request 6] sends multipart/form-data with a boundary of its own', async () => {
    const input_schema = { 'file[name]': text, list: { type: 'array' } };
    const args = { 'file[name]': 'line\r\n--boundary\r\n"é"', list: ['a', 2] };
    for (const tool of [
      { body: 'multipart' },
      typed('multipart/form-data'),
      typed('Multipart/Form-Data; boundary=mine'),
    ]) {
      const { headers, rawHeaders, body } = await one.sent(
        await one.serve({ method: 'POST', input_schema, ...tool }),
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

  it('[behaviour Configuration] `body` names the one argument that is the body; the others go to the query', async () => {
    const input_schema = { payload: {}, q: { type: 'string' } };
    const full = { type: 'object', properties: input_schema };
    const tool = { method: 'POST', input_schema: full, body: 'payload' };
    const of = async (payload: unknown, more: Json = {}) => {
      const { url, headers, body } = await one.sent(await one.serve({ ...tool, ...more }), { payload, q: 'x' });
      assert.equal(url, '/v1/things?q=x');
      return [headers['content-type'], body.toString()];
    };
    assert.deepEqual(await of({ a: [1] }), ['application/json', '{"a":[1]}']);
    assert.deepEqual(await of([1, 'é']), ['application/json', '[1,"é"]']);
    assert.deepEqual(await of('plain é'), ['text/plain; charset=utf-8', 'plain é']);
    assert.deepEqual(await of('a,b\n1,2', typed('text/csv')), ['text/csv', 'a,b\n1,2']);
    assert.deepEqual(await of('text', typed('application/json')), ['application/json', '"text"']);
    assert.deepEqual(await of({ a: 1 }, typed('application/vnd.api+json')), ['application/vnd.api+json', '{"a":1}']);
    const raw = 'multipart/form-data; boundary=mine';
    assert.deepEqual(await of('--mine--', typed(raw)), [raw, '--mine--']);
    assert.deepEqual(await sent(tool, {}), { type: undefined, body: '' });
  });

  it('[behaviour request 6] keeps a static Content-Type of JSON as it is written', async () => {
    const input_schema = { a: text };
    const type = 'application/merge-patch+json; charset=utf-8';
    assert.deepEqual(await sent({ method: 'PATCH', input_schema, ...typed(type) }, { a: 'x' }), {
      type,
      body: '{"a":"x"}',
    });
    const amazon = await sent({ input_schema, ...typed('application/x-amz-json-1.1') }, { a: 'x' });
    assert.deepEqual(amazon, { type: 'application/x-amz-json-1.1', body: '{"a":"x"}' });
    const named = await sent({ input_schema, body: 'json', ...typed('text/plain') }, { a: 'x' });
    assert.deepEqual(named, { type: 'text/plain', body: '{"a":"x"}' });
  });

  it('keeps the digits of numbers in path, query, header, form and JSON', async () => {
    const number = { type: 'number' };
    const digits = ['9007199254740993', '1.10', '1.0', '-0', '1e2', '0.0000001', '12345678.123456789', '1E10'];
    const input_schema = {
      p: number,
      q: number,
      'X-N': { ...number, in: 'header' },
      list: { type: 'array' },
      o: { type: 'object' },
    };
    const json = await one.serve({ method: 'POST', url: '/n/:p?q=:q', input_schema });
    const styled = { ...input_schema, o: { type: 'object', style: 'json' } };
    const formed = await one.serve({ method: 'POST', url: '/n/:p?q=:q', input_schema: styled, body: 'form' });
    for (const n of digits) {
      one.upstream.take();
      const args = `{"p":${n},"q":${n},"X-N":${n},"list":[${n}],"o":{"n":${n}}}`;
      for (const slug of [json, formed]) {
        const result = await one.callText(slug, args);
        assert.notEqual(result.isError, true, textOf(result));
      }
      const [asJson, asForm] = one.upstream.take();
      assert.equal(asJson?.url, `/n/${n}?q=${n}`);
      assert.equal(asJson?.headers['x-n'], n);
      assert.equal(asJson?.body.toString(), `{"list":[${n}],"o":{"n":${n}}}`);
      assert.equal(asForm?.body.toString(), `list=${n}&o=${encodeURIComponent(`{"n":${n}}`)}`);
    }
  });

  it('keeps the digits of numbers when a body is one argument, and in the modern era', async () => {
    const input_schema = { payload: { type: 'object' } };
    const slug = await one.serve({ method: 'POST', input_schema, body: 'payload' });
    const payload = '{"id":9007199254740993,"price":1.10}';
    one.upstream.take();
    await one.callText(slug, `{"payload":${payload}}`);
    const meta =
      '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}';
    const modern = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${meta},"name":"run","arguments":{"payload":${payload}}}}`;
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'run' };
    const { status } = await one.toolhost.post(slug, modern, { token: callerToken, headers });
    assert.equal(status, 200);
    assert.deepEqual(
      one.upstream.take().map(({ body }) => body.toString()),
      [payload, payload],
    );
  });
});
