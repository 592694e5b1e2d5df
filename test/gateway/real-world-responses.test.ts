import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { getResultText, startOneTool } from '../support/one-tool.ts';
import { buildJsonResponse, buildResponse, createResponseCaller } from '../support/response-caller.ts';
import { PNG } from '../support/upstreams/content-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

const requestSentNote = /the request itself was carried out/;

describe('the handling of real-world API responses', () => {
  const fixture = useFixture(startOneTool);
  const { call, getText, getError } = createResponseCaller(fixture);
  const users = '{"users":[{"name":"A","ssn":"000-00-0000"},{"name":"B","ssn":"000-00-0001"}]}';
  const guards = [
    ")]}'\n",
    ")]}',\r\n",
    'while(1);',
    'for (;;);',
    'throw 1; <do not be evil>\n',
    '&&&START&&&',
    '{}&&',
  ];
  const selectFields = (json: string, ...response_fields: string[]) =>
    getText(buildJsonResponse(json), { response_fields });

  it('[behaviour The tool result] detects JSON by the bytes and not by the media type if a filter needs JSON', async () => {
    const textTypes = ['text/html; charset=utf-8', 'text/plain', 'text/javascript', 'application/x-ndjson'];
    const otherTypes = ['application/octet-stream', 'image/png', 'application/json', 'multipart/mixed; boundary=b'];
    const output_schema = { type: 'object', properties: { a: { type: 'integer' } } };
    for (const type of [...textTypes, ...otherTypes, undefined]) {
      const selected = await getText(buildResponse(type, users), { response_fields: ['users.name'] });
      assert.equal(selected, '{"users":[{"name":"A"},{"name":"B"}]}', String(type));
      const wrapped = buildResponse(type, '{"data":[1,2],"token":"x"}');
      assert.equal(await getText(wrapped, { response_transform: 'data' }), '[1,2]', String(type));
      const { structuredContent } = await call(buildResponse(type, '\ufeff{"a": 1}'), { output_schema });
      assert.deepEqual(structuredContent, { a: 1 }, String(type));
    }
    const latin = Buffer.from('{"a":"caf\xe9","b":1}', 'latin1');
    const latinResponse = buildResponse('text/plain; charset=iso-8859-1', latin);
    assert.equal(await getText(latinResponse, { response_fields: ['a'] }), '{"a":"café"}');
    const long = JSON.stringify({ a: 1, b: 'x'.repeat(600_000) });
    assert.equal(await getText(buildResponse('text/plain', long), { response_fields: ['a'] }), '{"a":1}');
  });

  it('[behaviour The tool result] skips an anti-hijacking prefix before JSON in a filter, and keeps it in text', async () => {
    for (const guard of guards) {
      for (const type of ['application/json', 'text/plain']) {
        const response = buildResponse(type, `${guard}{"a":1,"b":2}`);
        assert.equal(await getText(response, { response_fields: ['a'] }), '{"a":1}', guard);
      }
      assert.equal(await getText(buildJsonResponse(`${guard}{"a":1}`)), `${guard}{"a":1}`);
    }
  });

  it('[behaviour The tool result] returns an error and nothing unfiltered if a filter cannot be applied', async () => {
    const secret = '000-00-0000';
    const event = `event: x\ndata: {"ssn":"${secret}"}\n\n`;
    const part = `--b\r\ncontent-type: application/json\r\n\r\n{"ssn":"${secret}"}\r\n--b--`;
    const responses: [type: string | undefined, body: string][] = [
      ['application/x-ndjson', `{"ssn":"${secret}"}\n{"ssn":"${secret}"}\n`],
      ['text/event-stream', event],
      ['multipart/mixed; boundary=b', part],
      ['text/html', `<p>${secret}</p>`],
      ['application/json', `{"ssn":"${secret}","a":NaN}`],
      ['application/vnd.x.raw+json', `# ${secret}`],
      [undefined, `callback({"ssn":"${secret}"})`],
      ['application/pdf', `%PDF ${secret}\0`],
    ];
    const filters = [
      { response_fields: ['name'] },
      { response_transform: 'name' },
      { output_schema: { type: 'object' } },
    ];
    for (const [type, body] of responses) {
      for (const filter of filters) {
        const message = await getError(buildResponse(type, body), filter);
        assert.match(message, /^(response_\w+|output_schema) requires a JSON response, but /);
        assert.match(message, requestSentNote);
        assert.ok(!message.includes(secret), message);
      }
    }
    for (const body of [`"${secret}"`, '5', 'true', `["${secret}"]`, `[[1],{"name":1}]`]) {
      const message = await getError(buildJsonResponse(body), { response_fields: ['name'] });
      assert.match(message, /^response_fields selects fields of an object .*carried out$/, body);
    }
    const selection = { response_fields: ['a.b'] };
    const items = buildResponse('text/plain', '{"a":[1,{"b":2,"c":3},null,["x"]]}');
    assert.equal(await getText(items, selection), '{"a":[{},{"b":2},null,[{}]]}');
    assert.equal(await getText(buildResponse('text/plain', 'null'), selection), 'null');
    const missing = await getError(buildResponse('text/plain', users), { response_transform: 'people' });
    assert.match(missing, /has the keys "users"; the request itself was carried out$/);
  });

  it('[behaviour The tool result] returns an error with the existing keys if response_fields match nothing, and * matches any key', async () => {
    const getSelectionError = (json: string, field: string) =>
      getError(buildJsonResponse(json), { response_fields: [field] });
    const map = '{"users":{"u1":{"name":"A","x":1},"u2":{"name":"B","x":2}}}';
    const start = 'response_fields "users.name" does not exist in the response: "users" has the keys "u1", "u2"; ';
    const message = await getSelectionError(map, 'users.name');
    assert.ok(message.startsWith(start), message);
    assert.match(message, /\* matches any key: "users\.\*\.name"; the request itself was carried out$/);
    const failures: [json: string, field: string, found: string][] = [
      ['{"error":"no","code":5}', 'data.id', 'the response has the keys "error", "code"'],
      ['[{"id":1},{"id":2}]', 'name', 'the response has the keys "id"'],
      ['{"a":1}', 'a.b', '"a" has no keys, because it is a single value'],
      ['{"a":{"b":{"c":1}}}', '*.*.d', '"*.*" has the keys "c"'],
      [`{"long":[{"x":"${'y'.repeat(100_000)}"}]}`, 'long.y', '"long" has the keys "x"'],
    ];
    for (const [json, field, description] of failures) {
      const message = await getSelectionError(json, field);
      const start = `response_fields "${field}" does not exist in the response: ${description}`;
      assert.ok(message.startsWith(start), message);
    }
    const matches: [json: string, fields: string[], expected: string][] = [
      [map, ['users.*.name'], '{"users":{"u1":{"name":"A"},"u2":{"name":"B"}}}'],
      ['{"a":{"x":1,"y":2},"b":{"y":3}}', ['*.y'], '{"a":{"y":2},"b":{"y":3}}'],
      ['{"a":{"x":1,"y":2},"b":{"y":3}}', ['*.y', 'a.x'], '{"b":{"y":3},"a":{"x":1}}'],
      ['{"items":[{"id":1,"n":2},{"id":3}]}', ['items.*.id'], '{"items":[{"id":1},{"id":3}]}'],
      ['{"users":{}}', ['users.name'], '{"users":{}}'],
      ['{"users":[]}', ['users.name'], '{"users":[]}'],
      ['{"users":null}', ['users.name'], '{"users":null}'],
      ['[]', ['name'], '[]'],
      ['{}', ['name'], '{}'],
      ['[{"id":1},{"name":2}]', ['name'], '[{},{"name":2}]'],
    ];
    for (const [json, fields, expected] of matches) assert.equal(await selectFields(json, ...fields), expected, json);
  });

  it('[behaviour The tool result] returns invalid JSON as text with a note if no filter needs JSON', async () => {
    const texts = ['{"a": NaN, "b": 1}', ')]}\'\n{"a":1}', '{"a":1,}', '{"a":1}{"b":2}', "{'a':1}", '<html>', '{"a":'];
    const note = 'The request was carried out. Its response is passed on as text, because it is not strict JSON.';
    for (const body of texts) {
      const content = [body, note].map((text) => ({ type: 'text', text }));
      assert.deepEqual(await call(buildJsonResponse(body)), { content });
    }
    const latin = await call(buildJsonResponse(Buffer.from('{"a":"caf\xe9"}', 'latin1')));
    assert.deepEqual([getResultText(latin), latin.content.length], ['{"a":"café"}', 2]);
  });

  it('[behaviour The tool result] reads a plain body if Content-Encoding has a value that is no coding', async () => {
    const buildCoded = (coding: string, body: string | Buffer, type = 'application/json') =>
      buildResponse(type, body, { 'content-encoding': coding });
    for (const coding of ['none', 'identity', 'utf-8', 'UTF-8', 'iso-8859-1', 'aws-chunked', 'whatever'])
      assert.equal(await getText(buildCoded(coding, '{"a":1}')), '{"a":1}', coding);
    for (const coding of ['none', 'binary', 'utf-8'])
      assert.equal((await call(buildCoded(coding, PNG, 'image/png'))).content[1]?.type, 'image', coding);
    assert.match(await getError(buildCoded('compress', Buffer.from([0x1f, 0x9d, 0xff]))), /unknown content coding/);
  });

  it('[behaviour The tool result] skips unsolicited interim responses, including 100 Continue', async () => {
    const final = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}';
    const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';
    const proceed = 'HTTP/1.1 100 Continue\r\n\r\n';
    const responses: string[][] = [
      [proceed + final],
      [proceed, final],
      [...(proceed + final)],
      ['HTTP/1.1 100\r\nDate: x\r\n\r\n', proceed + hints + proceed, final],
      [hints, proceed, final],
    ];
    let pieces: string[] = [];
    const server = createServer((socket) => {
      socket.setNoDelay();
      socket.on('error', () => undefined);
      socket.on('data', async () => {
        for (const piece of pieces) {
          socket.write(piece);
          await delay(2);
        }
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const raw = await startOneTool({ egressPorts: [port] });
    for (const method of ['GET', 'POST']) {
      const slug = await raw.createToolServer({ method, url: `http://127.0.0.1:${port}/` });
      for (const response of responses) {
        pieces = response;
        // The second call reuses the connection of the first.
        for (let calls = 0; calls < 2; calls++)
          assert.equal(getResultText(await raw.call(slug)), '{"a":1}', response.join('|'));
      }
    }
    await raw.stop();
    server.close();
  });

  it('[behaviour The tool result] supports paths with any key, with spaces, dots, or empty, and with item indexes', async () => {
    const dots = '{"@odata.count":2,"value":[],"Global Quote":{"05. price":"229.87"}}';
    const unusualKeysJson =
      '{"a":{"c":1,"b":2},"a.b":3,"x.y":{"z":4},"x":{"q":5},"":{"e":6},"b\\\\":7," s ":8,"\\"\\"":9,".d":10,"n.o":{"p.q":11}}';
    const pathCases: [json: string, path: string, expected: string][] = [
      [dots, '@odata.count', '2'],
      [dots, '@odata\\.count', '2'],
      [dots, 'Global Quote.05. price', '"229.87"'],
      [dots, 'Global Quote.05\\. price', '"229.87"'],
      [unusualKeysJson, 'a.b', '2'],
      [unusualKeysJson, 'a\\.b', '3'],
      [unusualKeysJson, 'x.y.z', '4'],
      [unusualKeysJson, '"".e', '6'],
      [unusualKeysJson, 'b\\\\', '7'],
      [unusualKeysJson, ' s ', '8'],
      [unusualKeysJson, '\\""', '9'],
      [unusualKeysJson, '\\.d', '10'],
      [unusualKeysJson, 'n.o.p.q', '11'],
      ['{"n.o":1,"n":{"o":2}}', 'n.o', '2'],
      ['{"n":{"o":2},"n.o":1}', 'n.o', '2'],
    ];
    for (const [json, response_transform, expected] of pathCases)
      assert.equal(await getText(buildJsonResponse(json), { response_transform }), expected, response_transform);
    const list = '{"items":[{"a":1,"b":2},{"a":3,"b":4},{"a":5,"b":6}],"m":{"0":{"a":7}}}';
    const fieldCases: [json: string, fields: string[], expected: string][] = [
      [dots, ['Global Quote.05. price', '@odata.count'], '{"Global Quote":{"05. price":"229.87"},"@odata.count":2}'],
      ['{"o.n":1,"o.c":2,"o.x":3}', ['o.c', 'o.n'], '{"o.c":2,"o.n":1}'],
      [unusualKeysJson, ['a\\.b', '"".e', ' s '], '{"a.b":3,"":{"e":6}," s ":8}'],
      [list, ['items.0.a', 'm.0.a'], '{"items":[{"a":1}],"m":{"0":{"a":7}}}'],
      [list, ['items.2', 'items.1.b'], '{"items":[{"b":4},{"a":5,"b":6}]}'],
      [list, ['items.b', 'items.0.a'], '{"items":[{"a":1},{"b":4},{"b":6}]}'],
      [list, ['items.7.a'], '{"items":[]}'],
      ['[{"a":1,"b":2},{"a":3}]', ['1.a'], '[{"a":3}]'],
    ];
    for (const [json, fields, expected] of fieldCases)
      assert.equal(await selectFields(json, ...fields), expected, fields.join());
  });
});
