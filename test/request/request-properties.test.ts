import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { getErrorText, getResultText, startOneTool } from '../support/one-tool.ts';
import { assertAlways } from '../support/properties.ts';
import { object } from '../support/schemas.ts';
import { useFixture } from '../support/use-fixtures.ts';

/** Text that attackers and accidents produce: any UTF-16, including lone surrogates, and classic injections. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.array(fc.nat({ max: 0xffff }), { maxLength: 8 }).map((units) => String.fromCharCode(...units)),
  fc
    .array(
      fc.constantFrom(
        ...['..', '.', '/', '\\', '%2e', '%2f', '?', '#', '&', '=', ':', ';', '@', '\r\n', '\0', ' ', 'a', ':b'],
        ...['{{X}}'],
      ),
      { maxLength: 6 },
    )
    .map((parts) => parts.join('')),
);

/** Ordinary names, and names that a careless traversal would confuse with built-in properties. */
const anyKey = fc.oneof(
  fc.constantFrom(
    ...['__proto__', 'constructor', 'prototype', 'toString', 'length', 'rawJSON', 'toJSON', 'items', 'a', 'b'],
  ),
  fc.string({ maxLength: 5 }).filter((key) => !/^\d/.test(key)),
);

/** The text of a JSON number, with many digits and in any form that JSON allows. */
const anyNumber = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9][0-9]{0,24}$/)),
    fc.oneof(fc.constant(''), fc.stringMatching(/^\.[0-9]{1,20}$/)),
    fc.oneof(
      { weight: 3, arbitrary: fc.constant('') },
      { weight: 1, arbitrary: fc.stringMatching(/^[eE][+-]?[0-9]{1,3}$/) },
    ),
  )
  .map((parts) => parts.join(''));

/** JSON as a tree of texts: a scalar as written, an array, or an object as its entries in order. */
type Tree = { scalar: string } | { items: Tree[] } | { entries: [key: string, value: Tree][] };

const { tree: anyTree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc
      .oneof(
        anyNumber,
        anyText.map((text) => JSON.stringify(text)),
        fc.constantFrom('null', 'true', 'false', '{}'),
      )
      .map((scalar): Tree => ({ scalar })),
    fc.array(tie('tree'), { maxLength: 3 }).map((items): Tree => ({ items })),
    fc
      .uniqueArray(fc.tuple(anyKey, tie('tree')), { maxLength: 4, selector: ([key]) => key })
      .map((entries): Tree => ({ entries })),
  ),
}));

function formatTree(tree: Tree, space: string): string {
  if ('scalar' in tree) return tree.scalar;
  if ('items' in tree)
    return `[${space}${tree.items.map((item) => formatTree(item, space)).join(`${space},${space}`)}${space}]`;
  const entries = tree.entries.map(
    ([key, value]) => `${JSON.stringify(key)}${space}:${space}${formatTree(value, space)}`,
  );
  return `{${space}${entries.join(`,${space}`)}${space}}`;
}

/**
 * Returns JSON text as it is passed on. JSON.stringify escapes only lone surrogates, which JSON must not contain (RFC
 * 8259, 8.2).
 */
function toPassedOnText(json: string): string {
  return json.replace(/\\(?:u[0-9a-f]{4}|.)/g, (part) => (/^\\ud[89a-f]/.test(part) ? '\\ufffd' : part));
}

function getOwn(tree: Tree, key: string): Tree | undefined {
  if ('items' in tree) return /^(0|[1-9]\d*)$/.test(key) ? tree.items[Number(key)] : undefined;
  return 'entries' in tree ? tree.entries.find(([name]) => name === key)?.[1] : undefined;
}

describe('requests and results (properties)', () => {
  const oneTool = useFixture(startOneTool);

  it('[spec 4.3.2] [sec C1] never lets an argument change the structure of a URL', async () => {
    const text = { type: 'string' };
    const optional = { type: 'string', optional: true };
    const input_schema = { a: text, b: text, q: optional, p: optional, auto: optional };
    const slug = await oneTool.createToolServer({
      url: '/v1/:a/x:go/.:b.json/end?q=eq.:q&fixed=a%2Bb&:&p=:p-:q',
      input_schema,
    });
    const args = fc.record(
      { a: anyText, b: anyText, q: anyText, p: anyText, auto: anyText },
      { requiredKeys: ['a', 'b'] },
    );
    await assertAlways(300, [args], async (arguments_) => {
      oneTool.upstream.take();
      const result = await oneTool.call(slug, arguments_);
      const [request, ...more] = oneTool.upstream.take();
      assert.deepEqual(more, []);
      if (result.isError) {
        assert.equal(request, undefined);
        assert.match(getResultText(result), /\b(a|b|q|p|auto): (must not|is missing|is not well-formed|produces a)/);
        return;
      }
      const [path = '', query = '', ...rest] = (request?.url ?? '').split('?');
      assert.deepEqual(rest, []);
      const [, v1, a, go, b, end, ...deeper] = path.split('/');
      assert.deepEqual([v1, go, end, deeper.length], ['v1', 'x:go', 'end', 0]);
      assert.equal(decodeURIComponent(a ?? ''), arguments_.a);
      assert.equal(decodeURIComponent(b ?? ''), `.${arguments_.b}.json`);
      const expected = [
        ...(arguments_.q === undefined ? [] : [['q', `eq.${arguments_.q}`]]),
        ['fixed', 'a+b'],
        [':'],
        ...(arguments_.p === undefined && arguments_.q === undefined ? [] : [['p', `${arguments_.p}-${arguments_.q}`]]),
        ...(arguments_.auto === undefined ? [] : [['auto', arguments_.auto]]),
      ];
      assert.deepEqual(
        query.split('&').map((pair) => pair.split('=').map(decodeURIComponent)),
        expected,
      );
    });
  });

  it('[sec C1] sends any header text unchanged, or rejects it and sends nothing', async () => {
    const slug = await oneTool.createToolServer({ input_schema: { 'X-Value': { type: 'string', in: 'header' } } });
    await assertAlways(100, [anyText], async (value) => {
      oneTool.upstream.take();
      const result = await oneTool.call(slug, { 'X-Value': value });
      const requests = oneTool.upstream.take();
      assert.equal(requests.length, result.isError ? 0 : 1);
      for (const { rawHeaders, headers } of requests) {
        assert.equal(headers['x-value'], value);
        assert.equal(rawHeaders.filter((name) => name.toLowerCase() === 'x-value').length, 1);
      }
    });
  });

  it('[spec 4.3.5] sends any JSON argument in the body with every digit', async () => {
    const slug = await oneTool.createToolServer({
      method: 'POST',
      input_schema: object({ payload: {} }),
      body: 'payload',
    });
    await assertAlways(200, [anyTree], async (tree) => {
      oneTool.upstream.take();
      const result = await oneTool.callText(slug, `{"payload":${formatTree(tree, ' ')}}`);
      const [request] = oneTool.upstream.take();
      if (result.isError) {
        assert.equal(request, undefined);
        assert.match(getResultText(result), /not well-formed Unicode|number is too large/);
      } else {
        const text = formatTree(tree, '');
        const isText = text.startsWith('"');
        assert.equal(request?.body.toString(), isText ? JSON.parse(text) : text);
      }
    });
  });

  it('[behaviour The tool result] returns any JSON response completely, compact, and with every digit', async () => {
    const slug = await oneTool.createToolServer({ url: '/whole' });
    const space = fc.constantFrom('', ' ', '  ', '\n\t', '\r\n ');
    let responseBody = '';
    oneTool.upstream.on('GET /whole', () => ({ headers: { 'content-type': 'application/json' }, body: responseBody }));
    await assertAlways(200, [anyTree, space, space], async (tree, inner, outer) => {
      responseBody = `${outer}${formatTree(tree, inner)}${outer}`;
      const { text } = await oneTool.toolhost.statelessRpc(slug, 'caller-token', 'tools/call', {
        name: 'run',
        arguments: {},
      });
      const expected = toPassedOnText(formatTree(tree, ''));
      assert.equal(getResultText(JSON.parse(text).result), expected);
    });
  });

  it('[sec C9] extracts the data at any path of any JSON response with every digit, or returns an error with the path', async () => {
    const paths = [
      ...['__proto__', 'constructor.prototype', 'a.length', 'items.0.a', 'a.b', 'toString', '0', 'rawJSON'],
      ...['a.__proto__.b'],
    ];
    const slugs = await Promise.all(
      paths.map((path) => oneTool.createToolServer({ url: '/part', response_transform: path })),
    );
    let responseBody = '';
    oneTool.upstream.on('GET /part', () => ({ headers: { 'content-type': 'application/json' }, body: responseBody }));
    const plantedTree = fc
      .tuple(fc.nat({ max: paths.length - 1 }), anyTree, fc.boolean())
      .map(([index, tree, plant]): [number, Tree] => {
        const keys = paths[index]?.split('.') ?? [];
        return [index, plant ? keys.reduceRight<Tree>((inner, key) => ({ entries: [[key, inner]] }), tree) : tree];
      });
    await assertAlways(400, [plantedTree], async ([index, tree]) => {
      responseBody = formatTree(tree, '');
      const path = paths[index] ?? '';
      const expected = path.split('.').reduce<Tree | undefined>((inner, key) => inner && getOwn(inner, key), tree);
      const result = await oneTool.call(slugs[index] ?? '');
      if (expected) {
        assert.notEqual(result.isError, true, getResultText(result));
        assert.equal(getResultText(result), toPassedOnText(formatTree(expected, '')));
      } else
        assert.ok(getErrorText(result).startsWith(`response_transform "${path}" does not exist in the response: `));
    });
  });

  it('[sec C9] keeps only own properties of any JSON response with response_fields', async () => {
    const fields = ['__proto__', 'a.b', 'constructor.prototype', 'items.length', 'b.toString'];
    const slug = await oneTool.createToolServer({ url: '/fields', response_fields: fields });
    let responseBody = '';
    oneTool.upstream.on('GET /fields', () => ({ headers: { 'content-type': 'application/json' }, body: responseBody }));
    await assertAlways(150, [anyTree], async (tree) => {
      responseBody = formatTree(tree, '');
      const result = await oneTool.call(slug);
      const text = getResultText(result);
      if (result.isError)
        return assert.match(
          text,
          /^response_fields (?:selects fields of an object .* is a single value|".+" does not exist)/,
        );
      // Every remaining scalar was in the response, character by character.
      for (const [scalar] of text.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g))
        assert.ok(toPassedOnText(responseBody).includes(scalar), scalar);
      if ('entries' in tree) {
        const names = Object.keys(JSON.parse(text));
        assert.deepEqual(
          names.filter((name) => !['__proto__', 'a', 'constructor', 'items', 'b'].includes(name)),
          [],
        );
      }
    });
  });
});
