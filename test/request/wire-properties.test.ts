import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import qs from 'qs';
import { getRunCount } from '../sets.ts';
import { getResultText, startOneTool } from '../support/one-tool.ts';
import { assertAlways } from '../support/properties.ts';
import { text } from '../support/schemas.ts';
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

  const anyList = fc.array(anyText, { minLength: 1, maxLength: 4 });
  const decodeText = (text: string) => decodeURIComponent(text);
  /** Functions that read the list `a` from a query or form, as each style defines it. */
  const lists: [style: string, read: (text: string) => unknown, separator?: string][] = [
    ['repeat', (text) => new URLSearchParams(text).getAll('a')],
    ['brackets', (text) => qs.parse(text, parseOptions).a],
    ['indices', (text) => qs.parse(text, parseOptions).a],
    ['comma', (text) => text.replace(/^a=/, '').split(',').map(decodeText)],
    ['pipe', (text) => decodeText(text.replace(/^a=/, '')).split('|'), '|'],
    ['space', (text) => decodeText(text.replace(/^a=/, '')).split(' '), ' '],
    ['json', (text) => JSON.parse(new URLSearchParams(text).get('a') ?? '')],
  ];
  for (const [style, read, separator = '\0'] of lists) {
    it(`[conf 1] encodes a list of texts in the style ${style} so that an independent parser restores it`, async () => {
      const sent = await serveBoth({ a: { type: 'array', style } });
      await assertAlways(40, [anyList], async (entries) => {
        const a = entries.map((text) => text.replaceAll(separator, '_'));
        for (const text of await sent({ a })) assert.deepEqual(read(text), a, text);
      });
    });
  }

  it('[conf 1] sends any value under any name, or rejects the name with the configuration', async () => {
    await assertAlways(40, [anyText, anyText], async (wire_name, value) => {
      const tool = { url: '/q', input_schema: { a: { type: 'string', wire_name } } };
      const isName = wire_name !== '' && wire_name === wire_name.trim() && !/\p{Cc}/u.test(wire_name);
      const slug = await oneTool.createToolServer(tool).catch((error: unknown) => {
        assert.equal(isName, false, String(error));
      });
      if (slug === undefined) return;
      assert.equal(isName, true);
      const { url } = await oneTool.captureRequest(slug, { a: value });
      assert.deepEqual([...new URLSearchParams(url.slice(3))], [[wire_name, value]]);
    });
  });

  it('[conf 1] encodes JSON in a header as ASCII that restores the value', async () => {
    const slug = await oneTool.createToolServer({
      input_schema: { arg: { type: 'object', in: 'header', wire_name: 'Dropbox-API-Arg', style: 'json' } },
    });
    await assertAlways(60, [anyObject], async (arg) => {
      const { headers } = await oneTool.captureRequest(slug, { arg });
      const text = String(headers['dropbox-api-arg']);
      assert.match(text, /^[\x20-\x7e]*$/);
      assert.deepEqual(JSON.parse(text), arg);
    });
  });

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

  it('[conf 2] encodes files, texts, and JSON of any content in multipart so that a parser restores them', async () => {
    const input_schema = {
      file: { type: 'string', content: 'base64', wire_name: 'the "file"', file_name: { argument: 'name' } },
      name: text,
      meta: { type: 'object', media_type: 'application/json' },
      note: text,
    };
    const slug = await oneTool.createToolServer({ method: 'POST', body: 'multipart', input_schema });
    const anyName = anyText.filter((name) => name !== '' && !/\p{Cc}/u.test(name));
    const anyBytes = fc.uint8Array({ maxLength: 40 });
    await assertAlways(60, [anyBytes, anyName, anyObject, anyText], async (bytes, name, meta, note) => {
      const file = Buffer.from(bytes).toString('base64url');
      const { headers, body } = await oneTool.captureRequest(slug, { file, name, meta, note });
      const type = String(headers['content-type']);
      const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
      const part = form.get('the "file"') as File;
      assert.equal(Buffer.from(await part.arrayBuffer()).toString('base64url'), file);
      assert.equal(part.name, name);
      assert.deepEqual(JSON.parse(String(form.get('meta'))), meta);
      assert.deepEqual([form.get('note'), [...form].length], [note, 3]);
    });
  });

  it('[conf 1] [sec C1] keeps the segments of a path argument that may contain slashes, or rejects it', async () => {
    const slug = await oneTool.createToolServer({
      url: '/v1/:path/end',
      input_schema: { path: { type: 'string', allow_slashes: true } },
    });
    const anyPath = fc
      .array(fc.oneof(anyText, fc.constantFrom('/', '..', '.', '%2e', '%2F', '\\', 'a', '/a')), { maxLength: 6 })
      .map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(anyPath, async (path) => {
        oneTool.upstream.take();
        const result = await oneTool.call(slug, { path });
        const [request] = oneTool.upstream.take();
        if (!request) {
          assert.match(getResultText(result), /^path: must not/);
          return;
        }
        const segments = request.url.split('/');
        assert.deepEqual([segments.at(1), segments.at(-1)], ['v1', 'end']);
        const inner = segments.slice(2, -1).map(decodeText);
        assert.deepEqual(inner, path.split('/'));
        assert.ok(inner.every((segment) => segment !== '' && segment !== '.' && segment !== '..'));
        assert.equal(new URL(request.url, 'http://x').pathname.split('/').length, segments.length);
      }),
      { numRuns: getRunCount(150) },
    );
  });

  it("[conf 1] [find B5] never adds a parameter from a caller's object that is read as the credential", async () => {
    const authentication = { type: 'QueryParam', query_key: 'api_key' };
    const spellings = ['api_key', 'API_KEY', 'api.key', 'api key', 'api%5Fkey', 'key', '_key', '.key', 'api', 'x'];
    const anyOddKey = fc.oneof(
      fc.constantFrom(...spellings),
      fc.tuple(fc.constantFrom(...spellings), anyText).map(([name, text]) => name + text),
    );
    const anyOdd = fc.dictionary(anyOddKey, fc.oneof(anyText, fc.array(anyText, { maxLength: 2 })), {
      maxKeys: 3,
      noNullPrototype: true,
    });
    const slugs = await Promise.all(
      ['repeat', 'brackets', 'indices', 'deep', 'json', 'comma'].map((style) =>
        oneTool.createToolServer({ url: '/q', input_schema: { api: { type: 'object', style } } }, { authentication }),
      ),
    );
    await assertAlways(150, [fc.constantFrom(...slugs), anyOdd], async (slug, api) => {
      oneTool.upstream.take();
      const result = await oneTool.call(slug, { api });
      const [request] = oneTool.upstream.take();
      if (!request) {
        assert.match(getResultText(result), /^api: (a property|an entry)/);
        return;
      }
      const query = request.url.slice(3);
      const names = [...new URLSearchParams(query)].map(([name]) => name.replace(/\[.*$/s, ''));
      const folded = names.map((name) => name.trim().toLowerCase().replaceAll(/[ .]/g, '_'));
      assert.equal(folded.filter((name) => name === 'api_key').length, 1, query);
      assert.equal(typeof qs.parse(query, parseOptions).api_key, 'string', query);
    });
  });
});
