import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getResultText, startOneTool } from '../support/one-tool.ts';
import { boolean, listOf, number, object, text } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

describe('argument coercion', () => {
  const oneTool = useFixture(startOneTool);

  /** Returns the body that the upstream receives for arguments given as JSON text, or the error. */
  const getUsedArguments = async (properties: Json, args: string, more: Json = {}): Promise<string> => {
    const input_schema = { type: 'object', properties, ...more };
    oneTool.upstream.take();
    const result = await oneTool.callText(await oneTool.createToolServer({ method: 'POST', input_schema }), args);
    const [request] = oneTool.upstream.take();
    return request ? request.body.toString() : getResultText(result);
  };
  const integer = { type: 'integer' };

  it('[behaviour The tool result] parses a text as JSON if the schema accepts exactly one type other than text', async () => {
    const integers = listOf(integer);
    const invalid = (problem: string) => `The arguments are invalid: ${problem}`;
    const cases: [schema: Json, sent: string, used: string][] = [
      [{ ids: integers }, '{"ids":"[1,2]"}', '{"ids":[1,2]}'],
      [{ filter: object({}) }, '{"filter":"{\\"a\\":1}"}', '{"filter":{"a":1}}'],
      [{ limit: integer }, '{"limit":"7"}', '{"limit":7}'],
      [{ dry: boolean }, '{"dry":"true"}', '{"dry":true}'],
      [{ id: text }, '{"id":"42"}', '{"id":"42"}'],
      [{ limit: integer }, '{"limit":"seven"}', invalid('limit: found "seven"; allowed: integer')],
      [{ limit: integer }, '{"limit":"7.5"}', invalid('limit: found "7.5"; allowed: integer')],
      [{ limit: integer }, '{"limit":"[7]"}', invalid('limit: found "[7]"; allowed: integer')],
      [{ dry: boolean }, '{"dry":"True"}', invalid('dry: found "True"; allowed: boolean')],
      [
        { big: integer, price: number },
        '{"big":"12345678901234567890","price":" 1.10"}',
        '{"big":12345678901234567890,"price":1.10}',
      ],
      [{ either: { type: ['string', 'integer'] }, any: {} }, '{"either":"7","any":"7"}', '{"either":"7","any":"7"}'],
      [{ word: { enum: ['1', 2] } }, '{"word":"1"}', '{"word":"1"}'],
      [{ number: { enum: [1, 2] } }, '{"number":"2"}', '{"number":2}'],
      [{ a: { anyOf: [integer, { type: 'null' }] } }, '{"a":"7"}', '{"a":7}'],
      [{ a: { anyOf: [integers, { type: 'null' }] } }, '{"a":["7"]}', '{"a":[7]}'],
      [{ a: { allOf: [number, integer] } }, '{"a":"7"}', '{"a":7}'],
      [{ a: object({ ids: integers }) }, '{"a":"{\\"ids\\":\\"[1,\\\\\\"2\\\\\\"]\\"}"}', '{"a":{"ids":[1,2]}}'],
      [{ a: listOf(object({ n: integer })) }, '{"a":[{"n":"3"},{"n":4}]}', '{"a":[{"n":3},{"n":4}]}'],
      [{ a: { type: 'object', additionalProperties: integer } }, '{"a":{"__proto__":"3"}}', '{"a":{"__proto__":3}}'],
    ];
    for (const [properties, sent, expected] of cases)
      assert.equal(await getUsedArguments(properties, sent), expected, sent);
    const $defs = { page: object({ size: integer }) };
    assert.equal(
      await getUsedArguments({ page: { $ref: '#/$defs/page' } }, '{"page":{"size":"5"}}', { $defs }),
      '{"page":{"size":5}}',
    );
  });

  it('[behaviour The tool result] omits optional properties that are null at every level, where null is not allowed', async () => {
    const text = { type: 'string' };
    const nullable = { anyOf: [text, { type: 'null' }] };
    const inner = object({ id: text, q: text, kept: nullable }, ['id']);
    const tree = { inner, list: listOf(inner) };
    const sentArguments = '{"id":"x","q":null,"kept":null}';
    const expected = '{"id":"x","kept":null}';
    assert.equal(
      await getUsedArguments(tree, `{"inner":${sentArguments},"list":[${sentArguments}]}`),
      `{"inner":${expected},"list":[${expected}]}`,
    );
    const deep = { deep: object(tree) };
    assert.equal(
      await getUsedArguments(deep, `{"deep":{"inner":null,"list":[${sentArguments}]}}`),
      `{"deep":{"list":[${expected}]}}`,
    );
    assert.match(await getUsedArguments(tree, '{"inner":{"id":null}}'), /inner\.id: found null/);
    assert.match(await getUsedArguments({ list: listOf(text) }, '{"list":[null]}'), /list\.0: found null/);
    assert.equal(await getUsedArguments({ free: { type: 'object' } }, '{"free":{"a":null}}'), '{"free":{"a":null}}');
  });

  it('[behaviour The tool result] rejects a text as text if it would take too long to parse', async () => {
    const numbers = { list: listOf({ type: 'array' }) };
    for (const text of ['['.repeat(400_000), '[[],'.repeat(100_000), `[${'[],'.repeat(200_000)}[]]`]) {
      assert.match(
        await getUsedArguments(numbers, JSON.stringify({ list: text })),
        /^The arguments are invalid: list: /,
      );
    }
  });
});
