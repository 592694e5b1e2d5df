import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { callerToken, errorOf, type OneTool, startOneTool, textOf } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const text = { type: 'string' };
const optional = { type: 'string', optional: true };

describe('adversarial and invalid arguments', () => {
  let one: OneTool;
  before(async () => {
    one = await startOneTool();
  });
  after(() => one.stop());

  const nasty = [
    '../admin',
    '..%2f',
    '%2e%2e%2f',
    'a/b',
    '/etc/passwd',
    '//evil.example',
    'a?x=1',
    'a#f',
    'a&b=1',
    'a=b',
    'a;b',
    'a..b',
    'a\\..\\b',
    '..\\',
    '@evil.example',
    ':80',
    ' ',
    'a b',
    '%',
    '%00',
    '+',
    '.well-known',
    '...',
    '%2e%2e',
    'é☃😀',
    ':id',
    '{{NAME}}',
  ];

  it('[sec C1] become one segment and one query value, and leave the static parts unchanged', async () => {
    const slug = await one.serve({
      url: '/v1/:id/static%20part/x-:id?q=eq.:id&fixed=a%2Fb',
      input_schema: { id: text, auto: text },
    });
    for (const value of nasty) {
      const { url } = await one.sent(slug, { id: value, auto: value });
      const [path = '', query = '', ...more] = url.split('?');
      assert.deepEqual(more, []);
      const segments = path.split('/');
      assert.deepEqual([segments.length, segments[1], segments[3]], [5, 'v1', 'static%20part'], url);
      assert.equal(decodeURIComponent(segments[2] ?? ''), value);
      assert.equal(decodeURIComponent(segments[4] ?? ''), `x-${value}`);
      const pairs = query.split('&').map((pair) => pair.split('='));
      assert.deepEqual(
        pairs.map(([name]) => name),
        ['q', 'fixed', 'auto'],
      );
      assert.deepEqual(
        pairs.map((pair) => pair.length),
        [2, 2, 2],
      );
      assert.deepEqual(
        pairs.map(([, part]) => decodeURIComponent(part ?? '')),
        [`eq.${value}`, 'a/b', value],
      );
    }
  });

  it('[sec C1] are rejected in templates if they have control characters, and encoded in an automatic query', async () => {
    const template = { input_schema: { id: text } };
    const inPath = await one.serve({ url: '/v1/:id', ...template });
    const inQuery = await one.serve({ url: '/v1?q=eq.:id', ...template });
    const automatic = await one.serve({ url: '/v1', ...template });
    for (const value of ['a\r\nX-Evil: 1', 'a\0b', '\n', '\x7f', 'a\tb']) {
      assert.equal(await one.refused(inPath, { id: value }), 'id: must not contain control characters');
      assert.equal(await one.refused(inQuery, { id: value }), 'id: must not contain control characters');
      const { url } = await one.sent(automatic, { id: value });
      assert.equal(new URLSearchParams(url.split('?')[1]).get('id'), value);
    }
  });

  it('[sec C1] cannot end a header and start another one', async () => {
    const slug = await one.serve({ input_schema: { 'X-Note': { ...optional, in: 'header' } } });
    for (const value of ['a\r\nX-Evil: 1', 'a\nb', 'a\0', 'snow ☃', ' outer', 'outer ']) {
      assert.match(await one.refused(slug, { 'X-Note': value }), /^the value of the header X-Note contains characters/);
    }
    assert.equal((await one.sent(slug, { 'X-Note': 'a b\tc' })).headers['x-note'], 'a b\tc');
    assert.equal((await one.sent(slug)).headers['x-note'], undefined);
  });

  it('[sec C2] cannot produce an empty or dot segment', async () => {
    const input_schema = { id: text, b: { ...text, default: 'x' } };
    const alone = await one.serve({ url: '/v1/:id/end', input_schema });
    const prefixed = await one.serve({ url: '/v1/x-:id', input_schema });
    const together = await one.serve({ url: '/v1/:id:b', input_schema });
    for (const value of ['', '.', '..']) {
      for (const slug of [alone, prefixed, together]) {
        assert.equal(await one.refused(slug, { id: value }), 'id: must not be empty, "." or ".."');
      }
    }
    const dotted = await one.serve({ url: '/v1/.:list', input_schema: { list: { type: 'array' } } });
    assert.equal(await one.refused(dotted, { list: [] }), 'list: must not be empty, "." or ".."');
    const connections = one.upstream.connections;
    assert.match(await one.refused(alone, {}), /^The arguments are invalid: id: is missing$/);
    assert.equal(one.upstream.connections, connections);
  });

  it('[sec C8] stay one filter: the upstream sees exactly the key `id`', async () => {
    const slug = await one.serve({ url: '/rest?id=eq.:id', input_schema: { id: text } });
    for (const id of ['5&or=(a.eq.1)', '5,6', 'in.(1,2)', '5)&(id', '5%26or=1', '5#', '5;select=*']) {
      const { url } = await one.sent(slug, { id });
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
      who: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], optional: true },
    };
    const slug = await one.serve({ method: 'POST', input_schema });
    const said = async (args: Json) =>
      (await one.refused(slug, args)).replace('The arguments are invalid: ', '').split('; ');
    assert.deepEqual(await said({}), ['status: is missing']);
    assert.deepEqual(
      await said({ status: 'open' }),
      ['status: found "open"; allowed: "active", "archived"'].join('; ').split('; '),
    );
    assert.deepEqual(await said({ status: 'active', coutn: 2 }), ['coutn: unknown argument', 'did you mean `count`?']);
    assert.deepEqual(await said({ status: 'active', zzzzzz: 2 }), [
      'zzzzzz: unknown argument',
      'allowed: status, count, day, tags, who',
    ]);
    const wrong = { status: 5, count: 0, day: 'tomorrow', tags: ['ok', 'long', null], who: {}, extra: 1 };
    assert.deepEqual((await one.refused(slug, wrong)).replace('The arguments are invalid: ', '').split('; ').sort(), [
      'allowed: "active", "archived"',
      'allowed: status, count, day, tags, who',
      'allowed: string',
      'count: found 0',
      'extra: unknown argument',
      'maxLength 3 is not met',
      'minimum 1 is not met',
      'status: found "5"',
      'tags.1: found "long"',
      'tags.2: found null',
      'who.name: is missing',
    ]);
    const fresh = await one.serve({ method: 'POST', input_schema: {} });
    assert.match(await one.refused(fresh, { a: 1 }), /a: unknown argument; the tool takes no arguments$/);
  });

  it('[sec C7] are checked behind $ref, anyOf, and closed properties', async () => {
    const input_schema = {
      type: 'object',
      properties: {
        kind: { $ref: '#/$defs/kind' },
        id: { anyOf: [{ type: 'integer' }, { type: 'string', maxLength: 2 }] },
        open: { type: 'object', additionalProperties: false, properties: { inner: {} } },
      },
      $defs: { kind: { enum: ['a', 'b'] } },
      required: ['kind'],
    };
    const slug = await one.serve({ method: 'POST', input_schema });
    const said = async (args: Json) => (await one.refused(slug, args)).replace('The arguments are invalid: ', '');
    assert.equal(await said({ kind: 'c' }), 'kind: found "c"; allowed: "a", "b"');
    assert.equal(
      await said({ kind: 'a', id: 'long' }),
      'id: found "long"; allowed: integer; id: found "long"; maxLength 2 is not met',
    );
    assert.equal(await said({ kind: 'a', open: { iner: 1 } }), 'open.iner: unknown property; did you mean `inner`?');
    assert.equal(await said({ kind: 'a', other: 1 }), 'other: unknown argument; allowed: kind, id, open');
    assert.equal(await said({ other: 1 }), 'other: unknown argument; allowed: kind, id, open; kind: is missing');
    assert.equal(
      (await one.sent(slug, { kind: 'a', id: 'ok', open: { inner: null } })).body.toString(),
      '{"kind":"a","id":"ok","open":{"inner":null}}',
    );
  });

  it('[sec C7] are rejected if no request can carry them: 1e999, lone surrogates in values and names', async () => {
    const open = {
      type: 'object',
      properties: { n: { type: 'number' }, s: { type: 'string' }, o: { type: 'object' } },
    };
    const slug = await one.serve({ method: 'POST', input_schema: open });
    one.upstream.take();
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
    for (const [args, said] of cases) assert.match(errorOf(await one.callText(slug, args)), said);
    assert.deepEqual(one.upstream.take(), []);
  });

  it('[sec C7] are rejected quickly in great number or length, and the process keeps running', async () => {
    const input_schema = {
      list: { type: 'array', items: text, optional: true },
      closed: { type: 'array', optional: true },
    };
    const closed = { type: 'object', properties: { o: { type: 'object', additionalProperties: false } } };
    const slug = await one.serve({ method: 'POST', input_schema });
    const strict = await one.serve({ method: 'POST', input_schema: closed });
    assert.equal(
      await one.refused(slug, { list: Array(50_000).fill(1) }),
      'The arguments are invalid: list.0: found 1; allowed: string',
    );
    const unknown = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`x${i}`, 1]));
    assert.match(
      await one.refused(slug, unknown),
      /^The arguments are invalid: x0: unknown argument; .*; and \d+ more$/,
    );
    assert.ok((await one.refused(strict, { o: unknown })).length < 2000);
    assert.ok((await one.refused(slug, { ['n'.repeat(500_000)]: 1 })).length < 2000);
    const tooLong = await one.toolhost.rpc(slug, callerToken, 'tools/call', {
      name: 'run',
      arguments: { list: ['x'.repeat(2_000_000)] },
    });
    assert.equal(tooLong.status, 413);
    assert.equal(textOf(await one.call(slug, { list: ['x'] })).length > 0, true);
  });
});
