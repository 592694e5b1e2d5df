import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import qs from 'qs';
import { getResultText, startOneTool } from '../support/one-tool.ts';
import { assertAlways } from '../support/properties.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

/** Texts with everything that separates, joins, or escapes in some request encoding. */
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc
    .array(
      fc.constantFrom(',', '|', ' ', '&', '=', ';', '%2C', '%5B', '+', '[', ']', '"', '\\', '\r\n', 'é', '🎉', 'x'),
      { maxLength: 5 },
    )
    .map((parts) => parts.join('')),
);
const anyScalar = fc.oneof(anyText, fc.integer(), fc.boolean());
/** Property names that a form can express: without brackets and control characters. Numbers would read as indices. */
const anyKey = fc
  .oneof(anyText, fc.constantFrom('a', 'order id', 'x.y', 'ü', 'toJSON', 'length'))
  .filter((key) => key !== '' && !/[[\]\p{Cc}]/u.test(key) && !/^\d+$/.test(key) && !(key in {}));

const oneToThree = { minKeys: 1, maxKeys: 3, noNullPrototype: true };

type Tree = string | number | boolean | Tree[] | { [key: string]: Tree };
const { tree: anyTree } = fc.letrec<{ tree: Tree; list: Tree; object: Tree }>((tie) => ({
  list: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }),
  object: fc.dictionary(anyKey, tie('tree'), oneToThree),
  tree: fc.oneof({ maxDepth: 4 }, anyScalar, tie('list'), tie('object')),
}));
const anyObject = fc.dictionary(anyKey, anyTree, oneToThree);

/** Returns the value as a form parser returns it: all scalars are texts. */
function toTexts(tree: Tree): unknown {
  if (Array.isArray(tree)) return tree.map(toTexts);
  if (typeof tree !== 'object') return String(tree);
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, toTexts(value)]));
}

/** Returns the value without lists of one entry, which a repeated name cannot distinguish from the entry itself. */
function withoutSingleLists(tree: unknown): unknown {
  if (Array.isArray(tree)) {
    const inner = tree.map(withoutSingleLists);
    return inner.length === 1 && typeof inner[0] !== 'object' ? inner[0] : inner;
  }
  if (typeof tree !== 'object' || tree === null) return tree;
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, withoutSingleLists(value)]));
}

const parseOptions = { depth: 30, arrayLimit: 1000, parameterLimit: 100_000, allowPrototypes: true, strictDepth: true };

describe('upstream requests (properties)', () => {
  const oneTool = useFixture(startOneTool);

  /** Returns the query of a GET and the form of a POST for the same arguments. */
  const serveBoth = async (input_schema: Json) => {
    const get = await oneTool.createToolServer({ url: '/q', input_schema });
    const post = await oneTool.createToolServer({ method: 'POST', body: 'form', input_schema });
    return async (args: Json) => {
      const [query, form] = [await oneTool.captureRequest(get, args), await oneTool.captureRequest(post, args)];
      return [query.url.replace(/^\/q\??/, ''), form.body.toString()];
    };
  };

  const styles: [style: string, anyValue: fc.Arbitrary<unknown>, expected: (value: unknown) => unknown][] = [
    ['indices', anyObject, (value) => toTexts(value as Tree)],
    ['deep', anyObject, (value) => withoutSingleLists(toTexts(value as Tree))],
    [
      'brackets',
      fc.dictionary(anyKey, fc.oneof(anyScalar, fc.array(anyScalar, { minLength: 1, maxLength: 3 })), oneToThree),
      (value) => toTexts(value as Tree),
    ],
  ];
  for (const [style, anyValue, expected] of styles) {
    it(`[conf 1] encodes nested arguments in the style ${style} so that qs restores them`, async () => {
      const sent = await serveBoth({ o: { type: 'object', style, wire_name: 'data' } });
      await assertAlways(60, [anyValue], async (o) => {
        for (const text of await sent({ o })) {
          const { data } = qs.parse(text, parseOptions) as { data: unknown };
          assert.deepEqual(style === 'deep' ? withoutSingleLists(data) : data, expected(o), text);
        }
      });
    });
  }

  /** Names as written in JSON, and their values. */
  const escapedNames = [
    ['\\n', '\n'],
    ['\\"', '"'],
    ['\\/', '/'],
    ['\\u00e9', 'é'],
    ['\\u0061', 'a'],
    ['\\u005f_proto__', '__proto__'],
    ['x\\n', 'x\n'],
  ] as const;
  it('[conf 1] decodes escapes in a name, whatever another caller has sent', async () => {
    const tool = { method: 'POST', input_schema: { arg: { type: 'object' } } };
    const [otherSlug, ownSlug] = [await oneTool.createToolServer(tool), await oneTool.createToolServer(tool)];
    for (const [index, [written, name]] of escapedNames.entries()) {
      const first = `first_${index}`;
      await oneTool.captureRequest(otherSlug, { arg: { [first]: [], [name.startsWith('x') ? 'x\\' : '\\']: 0 } });
      const result = await oneTool.callText(ownSlug, `{"arg":{"${first}":"\\n","${written}" :1.25}}`);
      assert.notEqual(result.isError, true, getResultText(result));
      const [request] = oneTool.upstream.take();
      const { arg } = JSON.parse(String(request?.body)) as { arg: object };
      assert.deepEqual(Object.entries(arg).flat(), [first, '\n', name, 1.25], written);
    }
  });

  it('[conf 1] sends long arguments as written: numbers with their digits, names decoded', async () => {
    const slug = await oneTool.createToolServer({ method: 'POST', input_schema: { arg: { type: 'object' } } });
    const members = Array.from({ length: 8000 }, (_, n) => `"n${n}":[1.10,{"é${n % 3}":1E-400}]`).join(',');
    for (const escaped of [0, 1, 2]) {
      const written = members.replaceAll(`é${escaped}`, '\\u00e9').replace('"n7"', '"\\u006e7"');
      const result = await oneTool.callText(slug, `{"arg":{${written}}}`);
      assert.notEqual(result.isError, true, getResultText(result));
      const [request] = oneTool.upstream.take();
      const sent = members.replaceAll(`é${escaped}`, 'é');
      assert.ok(String(request?.body) === `{"arg":{${sent}}}`, 'the body is the same text');
    }
  });
});
