import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callerToken, getErrorText, getResultText, startOneTool } from '../support/one-tool.ts';
import { integer, number, object, text } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

const optional = { type: 'string', optional: true };

describe('adversarial and invalid arguments', () => {
  const oneTool = useFixture(startOneTool);

  const adversarialValues = [
    ...['../admin', '..%2f', '%2e%2e%2f', 'a/b', '/etc/passwd', '//evil.example', 'a?x=1', 'a#f', 'a&b=1', 'a=b'],
    ...['a;b', 'a..b', 'a\\..\\b', '..\\', '@evil.example', ':80', ' ', 'a b', '%', '%00', '+', '.well-known', '...'],
    ...['%2e%2e', 'é☃😀', ':id', '{{NAME}}'],
  ];

  it('[sec C1] become one segment and one query value, and leave the static parts unchanged', async () => {
    const slug = await oneTool.createToolServer({
      url: '/v1/:id/static%20part/x-:id?q=eq.:id&fixed=a%2Fb',
      input_schema: { id: text, auto: text },
    });
    for (const value of adversarialValues) {
      const { url } = await oneTool.captureRequest(slug, { id: value, auto: value });
      const [path = '', query = '', ...more] = url.split('?');
      assert.deepEqual(more, []);
      const segments = path.split('/');
      assert.deepEqual([segments.length, segments[1], segments[3]], [5, 'v1', 'static%20part'], url);
      assert.equal(decodeURIComponent(segments[2] ?? ''), value);
      assert.equal(decodeURIComponent(segments[4] ?? ''), `x-${value}`);
      const pairs = query.split('&').map((pair) => pair.split('='));
      const parts = pairs.map(([name, part, ...others]) => [name, decodeURIComponent(part ?? ''), ...others]);
      assert.deepEqual(parts, [
        ['q', `eq.${value}`],
        ['fixed', 'a/b'],
        ['auto', value],
      ]);
    }
  });

  it('[sec C1] are rejected in templates if they have control characters, and encoded in an automatic query', async () => {
    const template = { input_schema: { id: text } };
    const inPath = await oneTool.createToolServer({ url: '/v1/:id', ...template });
    const inQuery = await oneTool.createToolServer({ url: '/v1?q=eq.:id', ...template });
    const automatic = await oneTool.createToolServer({ url: '/v1', ...template });
    for (const value of ['a\r\nX-Evil: 1', 'a\0b', '\n', '\x7f', 'a\tb']) {
      assert.equal(await oneTool.captureRefusal(inPath, { id: value }), 'id: must not contain control characters');
      assert.equal(await oneTool.captureRefusal(inQuery, { id: value }), 'id: must not contain control characters');
      const { url } = await oneTool.captureRequest(automatic, { id: value });
      assert.equal(new URLSearchParams(url.split('?')[1]).get('id'), value);
    }
  });

  it('[sec C1] cannot end a header and start another one', async () => {
    const slug = await oneTool.createToolServer({ input_schema: { 'X-Note': { ...optional, in: 'header' } } });
    const refusal = /^the value of the header X-Note contains characters/;
    for (const value of ['a\r\nX-Evil: 1', 'a\nb', 'a\0', 'snow ☃', ' outer', 'outer '])
      assert.match(await oneTool.captureRefusal(slug, { 'X-Note': value }), refusal);
    assert.equal((await oneTool.captureRequest(slug, { 'X-Note': 'a b\tc' })).headers['x-note'], 'a b\tc');
    assert.equal((await oneTool.captureRequest(slug)).headers['x-note'], undefined);
  });

  it('[sec C2] cannot produce an empty or dot segment', async () => {
    const input_schema = { id: text, b: { ...text, default: 'x' } };
    const alone = await oneTool.createToolServer({ url: '/v1/:id/end', input_schema });
    const prefixed = await oneTool.createToolServer({ url: '/v1/x-:id', input_schema });
    const joined = await oneTool.createToolServer({ url: '/v1/:id:b', input_schema });
    for (const value of ['', '.', '..']) {
      for (const slug of [alone, prefixed, joined]) {
        assert.equal(await oneTool.captureRefusal(slug, { id: value }), 'id: must not be empty, "." or ".."');
      }
    }
    const dotted = await oneTool.createToolServer({ url: '/v1/.:list', input_schema: { list: { type: 'array' } } });
    assert.equal(await oneTool.captureRefusal(dotted, { list: [] }), 'list: must not be empty, "." or ".."');
    const connections = oneTool.upstream.connections;
    assert.match(await oneTool.captureRefusal(alone, {}), /^The arguments are invalid: id: is missing$/);
    assert.equal(oneTool.upstream.connections, connections);
  });

  it('[sec C8] stay one filter: the upstream sees exactly the key `id`', async () => {
    const slug = await oneTool.createToolServer({ url: '/rest?id=eq.:id', input_schema: { id: text } });
    for (const id of ['5&or=(a.eq.1)', '5,6', 'in.(1,2)', '5)&(id', '5%26or=1', '5#', '5;select=*']) {
      const { url } = await oneTool.captureRequest(slug, { id });
      const query = new URLSearchParams(url.split('?')[1]);
      assert.deepEqual([...query], [['id', `eq.${id}`]]);
      assert.equal(url.split('&').length, 1);
    }
  });

  it('[sec C7] [behaviour The tool result] are rejected by name if they do not fit, with the found and the allowed values', async () => {
    const input_schema = {
      status: { type: 'string', enum: ['active', 'archived'] },
      count: { type: 'integer', minimum: 1, optional: true },
      day: { type: 'string', format: 'date', optional: true },
      tags: { type: 'array', items: { type: 'string', maxLength: 3 }, optional: true },
      who: { type: 'object', properties: { name: text }, required: ['name'], optional: true },
    };
    const slug = await oneTool.createToolServer({ method: 'POST', input_schema });
    const getMessage = async (args: Json) =>
      (await oneTool.captureRefusal(slug, args)).replace('The arguments are invalid: ', '');
    const allowed = 'allowed: status, count, day, tags, who';
    assert.equal(await getMessage({}), 'status: is missing');
    assert.equal(await getMessage({ status: 'open' }), 'status: found "open"; allowed: "active", "archived"');
    const misspelled = await getMessage({ status: 'active', coutn: 2 });
    assert.equal(misspelled, 'coutn: unknown argument; did you mean `count`?');
    assert.equal(await getMessage({ status: 'active', zzzzzz: 2 }), `zzzzzz: unknown argument; ${allowed}`);
    const wrong = { status: 5, count: 0, day: 'tomorrow', tags: ['ok', 'long', null], who: {}, extra: 1 };
    assert.deepEqual((await getMessage(wrong)).split('; ').sort(), [
      ...['allowed: "active", "archived"', allowed, 'allowed: string', 'count: found 0', 'extra: unknown argument'],
      ...['maxLength 3 is not met', 'minimum 1 is not met', 'status: found "5"', 'tags.1: found "long"'],
      ...['tags.2: found null', 'who.name: is missing'],
    ]);
    const fresh = await oneTool.createToolServer({ method: 'POST', input_schema: {} });
    assert.match(await oneTool.captureRefusal(fresh, { a: 1 }), /a: unknown argument; the tool takes no arguments$/);
  });

  it('[sec C7] are checked behind $ref, anyOf, and closed properties', async () => {
    const input_schema = {
      type: 'object',
      properties: {
        kind: { $ref: '#/$defs/kind' },
        id: { anyOf: [integer, { type: 'string', maxLength: 2 }] },
        open: { type: 'object', additionalProperties: false, properties: { inner: {} } },
      },
      $defs: { kind: { enum: ['a', 'b'] } },
      required: ['kind'],
    };
    const slug = await oneTool.createToolServer({ method: 'POST', input_schema });
    const cases: [args: Json, message: string][] = [
      [{ kind: 'c' }, 'kind: found "c"; allowed: "a", "b"'],
      [{ kind: 'a', id: 'long' }, 'id: found "long"; allowed: integer; id: found "long"; maxLength 2 is not met'],
      [{ kind: 'a', open: { iner: 1 } }, 'open.iner: unknown property; did you mean `inner`?'],
      [{ kind: 'a', other: 1 }, 'other: unknown argument; allowed: kind, id, open'],
      [{ other: 1 }, 'other: unknown argument; allowed: kind, id, open; kind: is missing'],
    ];
    for (const [args, message] of cases)
      assert.equal(await oneTool.captureRefusal(slug, args), `The arguments are invalid: ${message}`);
    const { body } = await oneTool.captureRequest(slug, { kind: 'a', id: 'ok', open: { inner: null } });
    assert.equal(body.toString(), '{"kind":"a","id":"ok","open":{"inner":null}}');
  });

  it('[sec C7] are rejected if no request can carry them: 1e999, lone surrogates in values and names', async () => {
    const open = object({ n: number, s: text, o: { type: 'object' } });
    const slug = await oneTool.createToolServer({ method: 'POST', input_schema: open });
    oneTool.upstream.take();
    const cases: [string, RegExp][] = [
      ['{"n":1e999}', /^The arguments are invalid: n: the number is too large$/],
      ['{"n":-1e400}', /n: the number is too large$/],
      ['{"o":{"deep":[1e999]}}', /o\.deep\.0: the number is too large$/],
      ['{"s":"\\ud800"}', /s: is not well-formed Unicode text$/],
      ['{"o":{"\\udfff":1}}', /o\.�: the name is not well-formed Unicode text$/],
      ['{"\\ud800":1}', /�: the name is not well-formed Unicode text$/],
      ['{"__proto__":1}', /__proto__: unknown argument/],
      ['{"constructor":1}', /constructor: unknown argument/],
    ];
    for (const [args, expectedMessage] of cases)
      assert.match(getErrorText(await oneTool.callText(slug, args)), expectedMessage);
    assert.deepEqual(oneTool.upstream.take(), []);
  });

  it('[sec C7] are rejected quickly in great number or length, and the process keeps running', async () => {
    const input_schema = {
      list: { type: 'array', items: text, optional: true },
      closed: { type: 'array', optional: true },
    };
    const closed = object({ o: { type: 'object', additionalProperties: false } });
    const slug = await oneTool.createToolServer({ method: 'POST', input_schema });
    const strict = await oneTool.createToolServer({ method: 'POST', input_schema: closed });
    const numbers = await oneTool.captureRefusal(slug, { list: Array(50_000).fill(1) });
    assert.equal(numbers, 'The arguments are invalid: list.0: found 1; allowed: string');
    const unknown = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`x${i}`, 1]));
    const many = await oneTool.captureRefusal(slug, unknown);
    assert.match(many, /^The arguments are invalid: x0: unknown argument; .*; and \d+ more$/);
    assert.ok((await oneTool.captureRefusal(strict, { o: unknown })).length < 2000);
    assert.ok((await oneTool.captureRefusal(slug, { ['n'.repeat(500_000)]: 1 })).length < 2000);
    const call = { name: 'run', arguments: { list: ['x'.repeat(2_000_000)] } };
    assert.equal((await oneTool.toolhost.rpc(slug, callerToken, 'tools/call', call)).status, 413);
    assert.equal(getResultText(await oneTool.call(slug, { list: ['x'] })).length > 0, true);
  });
});
