import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { z } from 'zod';
import { openCapture } from '../../apps/server/src/store/calls/captures.ts';
import { getRunCount } from '../sets.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** Maximum size of the JSON of one capture, in bytes. */
const maxCaptureBytes = 64 * 1024;
const secret = 'sk-live-0123456789/abc"x';
const fieldCount = 99;

const repeat = <Item>(count: number, createItem: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => createItem(i));

const fileMetadata = z.strictObject({ fileName: z.string().optional(), mediaType: z.string().optional() });
const readableBody = z.union([
  z.string(),
  z.strictObject({ byteCount: z.int() }),
  z.strictObject({
    fields: z.array(z.union([z.tuple([z.string(), z.string()]), z.tuple([z.string(), z.string(), fileMetadata])])),
  }),
]);
const fieldUse = z.strictObject({
  name: z.string(),
  times: z.int(),
  bytes: z.int(),
  objects: z.int(),
  around: z.int(),
  empty: z.int(),
  urls: z.int(),
  always: z.string().optional(),
  isPartial: z.literal(true).optional(),
  get fields() {
    return z.array(fieldUse);
  },
});
const captureShape = z.strictObject({
  arguments: z.record(z.string(), z.unknown()).optional(),
  argumentsBytes: z.int(),
  request: z
    .strictObject({
      method: z.string(),
      origin: z.string(),
      path: z.string(),
      headers: z.array(z.string()),
      body: readableBody.optional(),
    })
    .optional(),
  response: z
    .strictObject({
      status: z.int(),
      headers: z.array(z.tuple([z.string(), z.string()])),
      body: z.string().optional(),
      bodyBytes: z.int(),
    })
    .optional(),
  result: z.strictObject({ isError: z.boolean(), text: z.string().optional(), bytes: z.int() }).optional(),
  fields: z.strictObject({ transform: z.string(), answer: fieldUse }).optional(),
  shortened: z.array(z.string()).min(1).optional(),
});

describe('[find A5] the size of a capture', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let key: string;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egressPorts: [upstream.port] });
    key = await toolhost.createKey();
    const texts = Object.fromEntries(repeat(fieldCount, (i) => [`f${i}`, { type: 'string' }]));
    const input_schema = { type: 'object', properties: { a: {}, ...texts } };
    const tool = (name: string, overrides: Json = {}) => ({
      name,
      description: 'Takes what this test sends.',
      method: 'POST',
      url: `${upstream.url}/run`,
      input_schema,
      headers: { 'X-Key': '{{KEY}}' },
      ...overrides,
    });
    const headers = (length: number) =>
      Object.fromEntries(repeat(90, (i) => [`X-${i}`, `${i}${'"\\'.repeat(length / 2)}`]));
    await toolhost.createServer({
      name: 'Sizes',
      slug: 'sizes',
      tools: [
        tool('json'),
        tool('form', { body: 'form' }),
        tool('multipart', { headers: { 'X-Key': '{{KEY}}', ...headers(100) }, body: 'multipart' }),
        tool('query', { method: 'GET' }),
        // The upstream rejects this many header bytes.
        tool('headers', { headers: { 'X-Key': '{{KEY}}', ...headers(1200) }, body: 'multipart' }),
      ],
    });
    await toolhost.rest('PUT', '/servers/sizes/secrets/KEY', { body: { value: secret } });
    await toolhost.rest('POST', '/servers/sizes/capture', { body: { hours: 1 } });
  });
  beforeEach(() => upstream.on('*', () => ({ body: { ok: true } })));
  after(async () => {
    await Promise.all([toolhost?.stop(), upstream.close()]);
  });

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
    assert.ok(Buffer.byteLength(document) <= maxCaptureBytes, `${Buffer.byteLength(document)} bytes`);
    assert.ok(Buffer.byteLength(document) > maxCaptureBytes / 2, `${Buffer.byteLength(document)} bytes`);
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

  /** Short and long texts that take more bytes as JSON than unescaped. */
  const textUnit = fc
    .tuple(
      fc.oneof(
        fc.constantFrom(
          'a',
          '"',
          '\\',
          '\u0001',
          '\n',
          'é',
          '€',
          '😀',
          '\ud800',
          '\udc00',
          secret,
          `${secret} `,
          '\u2028',
        ),
        fc.string({ unit: 'binary', maxLength: 5 }),
      ),
      fc.oneof(fc.nat(5), fc.nat(3000)),
    )
    .map(([unit, count]) => unit.repeat(Math.min(count, Math.floor(40_000 / Math.max(1, unit.length)))));
  /** Returns the start of a text, without a partial credential at its end. */
  const truncate = (fullText: string, maxLength: number) => {
    const start = fullText.slice(0, maxLength);
    const part = repeat(secret.length, (i) => secret.slice(0, secret.length - i)).find((each) => start.endsWith(each));
    return part === undefined || part === secret ? start : start.slice(0, -part.length);
  };
  const text = fc.array(textUnit, { maxLength: 4 }).map((pieces) => pieces.join(''));
  const argumentsArbitrary = fc
    .oneof(
      text.map((a) => ({ a })),
      fc
        .tuple(text, fc.integer({ min: 1, max: fieldCount }))
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
    text,
    text.map((said) => ({ said })),
    fc.tuple(fc.nat(300), textUnit, textUnit).map(([count, name, value]) => {
      const of = (i: number) => [`${i}${truncate(name, 60)}`, truncate(value, 50)];
      const half = Math.floor(count / 2);
      return { ...Object.fromEntries(repeat(half, of)), more: [Object.fromEntries(repeat(count - half, of))] };
    }),
  );

  it('[sec M8] is bounded for all arguments, headers, and bodies, and no capture contains a credential', async () => {
    const tool = fc.constantFrom('json', 'form', 'multipart', 'query', 'headers');
    await fc.assert(
      fc.asyncProperty(
        tool,
        argumentsArbitrary,
        headersArbitrary,
        bodyArbitrary,
        fc.constantFrom(200, 200, 404),
        async (name, args, headers, body, status) => {
          respondWith(headers, body, status);
          const { document, text: shownText, shown } = await callAndReadCapture(name, args as Json);
          assert.ok(Buffer.byteLength(document) <= maxCaptureBytes, `${Buffer.byteLength(document)} bytes`);
          captureShape.parse(JSON.parse(document));
          assert.equal(shown.arguments_bytes, Buffer.byteLength(JSON.stringify(args)));
          for (const part of [secret, secret.slice(0, 12), JSON.stringify(secret).slice(1, -1)])
            assert.ok(!document.includes(part) && !shownText.includes(part), part);
        },
      ),
      { numRuns: getRunCount(150) },
    );
  });
});
