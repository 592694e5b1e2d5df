import assert from 'node:assert/strict';
import { before, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { z } from 'zod';
import { openCapture } from '../../apps/server/src/store/calls/captures.ts';
import { getRunCount } from '../sets.ts';
import { setSecret } from '../support/server-requests.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

/** Maximum size of the JSON of one capture, in bytes. */
const maxCaptureBytes = 64 * 1024;
const secret = 'sk-live-0123456789/abc"x';
const fieldCount = 99;

const repeat = <Item>(length: number, createItem: (i: number) => Item): Item[] =>
  Array.from({ length }, (_, i) => createItem(i));
const int = z.int();
const text = z.string();

const fileMetadata = z.strictObject({ fileName: text.optional(), mediaType: text.optional() });
const bodyField = z.union([z.tuple([text, text]), z.tuple([text, text, fileMetadata])]);
const readableBody = z.union([
  text,
  z.strictObject({ byteCount: int }),
  z.strictObject({ fields: z.array(bodyField) }),
]);
const fieldUse = z.strictObject({
  name: text,
  times: int,
  bytes: int,
  objects: int,
  around: int,
  empty: int,
  urls: int,
  always: text.optional(),
  isPartial: z.literal(true).optional(),
  get fields() {
    return z.array(fieldUse);
  },
});
const request = z.strictObject({
  ...{ method: text, origin: text, path: text, headers: z.array(text) },
  body: readableBody.optional(),
});
const responseHeaders = z.array(z.tuple([text, text]));
const response = z.strictObject({ status: int, headers: responseHeaders, body: text.optional(), bodyBytes: int });
const captureShape = z.strictObject({
  arguments: z.record(text, z.unknown()).optional(),
  argumentsBytes: int,
  request: request.optional(),
  response: response.optional(),
  result: z.strictObject({ isError: z.boolean(), text: text.optional(), bytes: int }).optional(),
  fields: z.strictObject({ transform: text, answer: fieldUse }).optional(),
  shortened: z.array(text).min(1).optional(),
});

describe('[find A5] the size of a capture', () => {
  const { toolhost, upstream } = useToolhostWithUpstream();
  let key: string;
  before(async () => {
    key = await toolhost.createKey();
    const texts = Object.fromEntries(repeat(fieldCount, (i) => [`f${i}`, { type: 'string' }]));
    const input_schema = { type: 'object', properties: { a: {}, ...texts } };
    const XKey = { 'X-Key': '{{KEY}}' };
    const tool = (name: string, more: Json = {}) =>
      buildToolAt(`${upstream.url}/run`, { name, method: 'POST', input_schema, headers: XKey, ...more });
    const buildHeaders = (length: number) => ({
      ...XKey,
      ...Object.fromEntries(repeat(90, (i) => [`X-${i}`, `${i}${'"\\'.repeat(length / 2)}`])),
    });
    const tools = [
      tool('json'),
      tool('form', { body: 'form' }),
      tool('multipart', { headers: buildHeaders(100), body: 'multipart' }),
      tool('query', { method: 'GET' }),
      // The upstream rejects this many header bytes.
      tool('headers', { headers: buildHeaders(1200), body: 'multipart' }),
    ];
    await toolhost.createServer({ name: 'Sizes', slug: 'sizes', tools });
    await setSecret(toolhost, 'sizes', 'KEY', secret);
    await toolhost.rest('POST', '/servers/sizes/capture', { body: { hours: 1 } });
  });
  beforeEach(() => upstream.on('*', () => ({ body: { ok: true } })));

  /** Calls a tool and returns the stored text of its capture and the capture that `getCall` returns. */
  const callAndReadCapture = async (name: string, args: Json) => {
    const { db, deps } = toolhost.running.app.runner;
    await db.deleteFrom('captures').execute();
    const called = await toolhost.rpc('sizes', key, 'tools/call', { name, arguments: args });
    assert.ok(called.body.result, called.text.slice(0, 500));
    await toolhost.rest('GET', '/calls?limit=1');
    const row = await db.selectFrom('captures').selectAll().executeTakeFirstOrThrow();
    const { status, body, text } = await toolhost.rest('GET', `/calls/${row.call_id}`);
    assert.equal(status, 200, text);
    const sealed = { callId: row.call_id, sealed: row.sealed_document };
    return { document: openCapture(deps.keyring, row.workspace_id, sealed), shown: body.capture as Json, text };
  };

  const respondWith = (headers: Record<string, string>, body: unknown, status = 200) =>
    upstream.on('*', () => ({ status, headers: { 'content-type': 'application/json', ...headers }, body }));

  /** Responds with texts that JSON makes two or six times longer, and with the maximum number of measured fields. */
  const respondAtMaxLength = () => {
    const field = (i: number) => [`${i}${'"'.repeat(40)}`, '"\\'.repeat(14)];
    const inner = Object.fromEntries(repeat(119, field));
    const body = { said: '\u0001'.repeat(9000), ...Object.fromEntries(repeat(118, field)), inner };
    respondWith(Object.fromEntries(repeat(60, (i) => [`x-${i}`, '"'.repeat(1000)])), body);
  };

  it('is bounded if every part has its maximum length', async () => {
    respondAtMaxLength();
    const args = Object.fromEntries(repeat(fieldCount, (i) => [`f${i}`, '\u0001'.repeat(1024)]));
    const { document, shown } = await callAndReadCapture('multipart', args);
    const bytes = Buffer.byteLength(document);
    assert.ok(bytes <= maxCaptureBytes && bytes > maxCaptureBytes / 2, `${bytes} bytes`);
    const { request, response, result, fields } = captureShape.parse(JSON.parse(document));
    const { body } = request ?? {};
    assert.ok(typeof body === 'object' && 'fields' in body && body.fields.length > 5);
    for (const each of [request?.headers, response?.headers, response?.body, result?.text, fields?.answer.fields])
      assert.ok(each !== undefined && each.length > 5);
    assert.deepEqual([shown.arguments, shown.arguments_bytes], [undefined, JSON.stringify(args).length]);
  });

  it('leaves arguments of up to 32 KiB whole and lists the other parts that were shortened', async () => {
    respondAtMaxLength();
    const args = { a: repeat(90, () => '\u0001'.repeat(60)) };
    const { shown } = await callAndReadCapture('multipart', args);
    assert.deepEqual(shown.arguments, args);
    assert.deepEqual(shown.shortened, ['result.text', 'request.headers', 'request.body', 'response.headers']);
  });

  const singleUnits = ['a', '"', '\\', '\u0001', '\n', 'é', '€', '😀', '\ud800', '\udc00', '\u2028'];
  /** Short and long texts that take more bytes as JSON than unescaped. */
  const textUnit = fc
    .tuple(
      fc.oneof(fc.constantFrom(...singleUnits, secret, `${secret} `), fc.string({ unit: 'binary', maxLength: 5 })),
      fc.oneof(fc.nat(5), fc.nat(3000)),
    )
    .map(([unit, count]) => unit.repeat(Math.min(count, Math.floor(40_000 / Math.max(1, unit.length)))));
  /** Returns the start of a text, without a partial credential at its end. */
  const truncate = (fullText: string, maxLength: number) => {
    const start = fullText.slice(0, maxLength);
    const part = repeat(secret.length, (i) => secret.slice(0, secret.length - i)).find((each) => start.endsWith(each));
    return part === undefined || part === secret ? start : start.slice(0, -part.length);
  };
  const longText = fc.array(textUnit, { maxLength: 4 }).map((pieces) => pieces.join(''));
  const argumentsArbitrary = fc
    .oneof(
      longText.map((a) => ({ a })),
      fc
        .tuple(longText, fc.integer({ min: 1, max: fieldCount }))
        .map(([each, count]) =>
          Object.fromEntries(repeat(count, (i) => [`f${i}`, truncate(each, Math.floor(200_000 / count))])),
        ),
      fc.tuple(textUnit, fc.nat(300)).map(([name, count]) => ({
        a: Object.fromEntries(repeat(count, (i) => [`${i}${truncate(name, 100)}`, i + 0.5])),
      })),
      fc.jsonValue({ maxDepth: 4 }).map((a) => ({ a })),
    )
    // A longer message is rejected.
    .filter((args) => Buffer.byteLength(JSON.stringify(args)) < 1_000_000);
  const headersArbitrary = fc
    .tuple(fc.nat(99), fc.constantFrom('"', '\\"', 'a', secret, '\u00e9'), fc.nat(1500))
    .map(([count, unit, length]) =>
      Object.fromEntries(repeat(count, (i) => [`x-${i}`, unit.repeat(Math.min(length, 50_000 / count) / unit.length)])),
    );
  const bodyArbitrary = fc.oneof(
    longText,
    longText.map((said) => ({ said })),
    fc.tuple(fc.nat(300), textUnit, textUnit).map(([count, name, value]) => {
      const of = (i: number) => [`${i}${truncate(name, 60)}`, truncate(value, 50)];
      const half = Math.floor(count / 2);
      return { ...Object.fromEntries(repeat(half, of)), more: [Object.fromEntries(repeat(count - half, of))] };
    }),
  );

  it('[sec M8] is bounded for all arguments, headers, and bodies, and no capture contains a credential', async () => {
    const tool = fc.constantFrom('json', 'form', 'multipart', 'query', 'headers');
    const statuses = fc.constantFrom(200, 200, 404);
    const call = fc.tuple(tool, argumentsArbitrary, headersArbitrary, bodyArbitrary, statuses);
    await fc.assert(
      fc.asyncProperty(call, async ([name, args, headers, body, status]) => {
        respondWith(headers, body, status);
        const { document, text: shownText, shown } = await callAndReadCapture(name, args as Json);
        assert.ok(Buffer.byteLength(document) <= maxCaptureBytes, `${Buffer.byteLength(document)} bytes`);
        captureShape.parse(JSON.parse(document));
        assert.equal(shown.arguments_bytes, Buffer.byteLength(JSON.stringify(args)));
        for (const part of [secret, secret.slice(0, 12), JSON.stringify(secret).slice(1, -1)])
          assert.ok(!document.includes(part) && !shownText.includes(part), part);
      }),
      { numRuns: getRunCount(150) },
    );
  });
});
