import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { errorOf, type OneTool, startOneTool, textOf } from '../support/one-tool.ts';
import type { Json, ToolReply } from '../support/toolhost/toolhost.ts';

const carriedOut = /the request itself was carried out/;

describe('answers of real APIs', () => {
  let one: OneTool;
  before(async () => {
    one = await startOneTool();
  });
  after(() => one.stop());

  let routes = 0;
  const resultOf = async (type: string | undefined, body: string | Buffer, tool: Json = {}): Promise<ToolReply> => {
    const path = `/answer-${++routes}`;
    one.upstream.on(`GET ${path}`, () => ({ headers: type === undefined ? {} : { 'content-type': type }, body }));
    return one.call(await one.serve({ ...tool, url: path }));
  };
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

  it('[behaviour The tool result] where a filter needs JSON, the bytes decide and not the media type', async () => {
    const types = ['text/html; charset=utf-8', 'text/plain', 'text/javascript', 'application/octet-stream', undefined];
    for (const type of [
      ...types,
      'image/png',
      'application/x-ndjson',
      'application/json',
      'multipart/mixed; boundary=b',
    ]) {
      const said = String(type);
      const kept = await resultOf(type, users, { response_fields: ['users.name'] });
      assert.equal(textOf(kept), '{"users":[{"name":"A"},{"name":"B"}]}', said);
      assert.equal(
        textOf(await resultOf(type, '{"data":[1,2],"token":"x"}', { response_transform: 'data' })),
        '[1,2]',
        said,
      );
      const output_schema = { type: 'object', properties: { a: { type: 'integer' } } };
      assert.deepEqual((await resultOf(type, '\ufeff{"a": 1}', { output_schema })).structuredContent, { a: 1 }, said);
    }
    const latin = Buffer.from('{"a":"caf\xe9","b":1}', 'latin1');
    assert.equal(
      textOf(await resultOf('text/plain; charset=iso-8859-1', latin, { response_fields: ['a'] })),
      '{"a":"café"}',
    );
    const long = JSON.stringify({ a: 1, b: 'x'.repeat(600_000) });
    assert.equal(textOf(await resultOf('text/plain', long, { response_fields: ['a'] })), '{"a":1}');
  });

  it('[behaviour The tool result] a guard before JSON is skipped by a filter, and stays in a text', async () => {
    for (const guard of guards) {
      for (const type of ['application/json', 'text/plain']) {
        assert.equal(
          textOf(await resultOf(type, `${guard}{"a":1,"b":2}`, { response_fields: ['a'] })),
          '{"a":1}',
          guard,
        );
      }
      assert.equal(textOf(await resultOf('application/json', `${guard}{"a":1}`)), `${guard}{"a":1}`);
    }
  });

  it('[behaviour The tool result] a filter that cannot be applied is an error, and nothing goes out unfiltered', async () => {
    const secret = '000-00-0000';
    const event = `event: x\ndata: {"ssn":"${secret}"}\n\n`;
    const part = `--b\r\ncontent-type: application/json\r\n\r\n{"ssn":"${secret}"}\r\n--b--`;
    const answers: [type: string | undefined, body: string][] = [
      ['application/x-ndjson', `{"ssn":"${secret}"}\n{"ssn":"${secret}"}\n`],
      ['text/event-stream', event],
      ['multipart/mixed; boundary=b', part],
      ['text/html', `<p>${secret}</p>`],
      ['application/json', `{"ssn":"${secret}","a":NaN}`],
      ['application/vnd.x.raw+json', `# ${secret}`],
      [undefined, `callback({"ssn":"${secret}"})`],
      ['application/pdf', `%PDF ${secret}\0`],
    ];
    const filters: Json[] = [
      { response_fields: ['name'] },
      { response_transform: 'name' },
      { output_schema: { type: 'object' } },
    ];
    for (const [type, body] of answers) {
      for (const filter of filters) {
        const message = errorOf(await resultOf(type, body, filter));
        assert.match(message, /^response_\w+ needs a JSON answer; |^output_schema needs a JSON answer; /);
        assert.match(message, carriedOut);
        assert.ok(!message.includes(secret), message);
      }
    }
    for (const body of [`"${secret}"`, '5', 'true', `["${secret}"]`, `[[1],{"name":1}]`]) {
      const message = errorOf(await resultOf('application/json', body, { response_fields: ['name'] }));
      assert.match(message, /^response_fields keep fields of an object .*carried out$/, body);
    }
    const kept = { response_fields: ['a.b'] };
    assert.equal(
      textOf(await resultOf('text/plain', '{"a":[1,{"b":2,"c":3},null,["x"]]}', kept)),
      '{"a":[{},{"b":2},null,[{}]]}',
    );
    assert.equal(textOf(await resultOf('text/plain', 'null', kept)), 'null');
    const missing = errorOf(await resultOf('text/plain', users, { response_transform: 'people' }));
    assert.match(missing, /has the keys "users"; the request itself was carried out$/);
  });

  it('[behaviour The tool result] what cannot be read as JSON goes out as text with a note, where nothing needs JSON', async () => {
    const texts = ['{"a": NaN, "b": 1}', ')]}\'\n{"a":1}', '{"a":1,}', '{"a":1}{"b":2}', "{'a':1}", '<html>', '{"a":'];
    for (const body of texts) {
      const { content, isError, structuredContent } = await resultOf('application/json', body);
      const note = 'The request was carried out. Its answer is passed on as text, because it is not strict JSON.';
      assert.deepEqual(content, [
        { type: 'text', text: body },
        { type: 'text', text: note },
      ]);
      assert.deepEqual([isError, structuredContent], [undefined, undefined]);
    }
    const latin = await resultOf('application/json', Buffer.from('{"a":"caf\xe9"}', 'latin1'));
    assert.deepEqual([textOf(latin), latin.content.length], ['{"a":"café"}', 2]);
  });
});
