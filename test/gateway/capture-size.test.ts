import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { openCapture } from '../../apps/server/src/store/calls/captures.ts';
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

/** Parts of a stored capture that this test makes as long as possible. */
type StoredCapture = {
  request: { headers: unknown[]; body: { fields: unknown[] } };
  response: { headers: unknown[]; body: string };
  result: { text: string };
  fields: { answer: { fields: unknown[] } };
};

describe('[find A5] the size of a capture', () => {
  const { toolhost, upstream } = useToolhostWithUpstream();
  let key: string;
  before(async () => {
    key = await toolhost.createKey();
    const texts = Object.fromEntries(repeat(fieldCount, (i) => [`f${i}`, { type: 'string' }]));
    const input_schema = { type: 'object', properties: { a: {}, ...texts } };
    const XKey = { 'X-Key': '{{KEY}}' };
    const headers = { ...XKey, ...Object.fromEntries(repeat(90, (i) => [`X-${i}`, `${i}${'"\\'.repeat(50)}`])) };
    const tools = [buildToolAt(`${upstream.url}/run`, { method: 'POST', input_schema, headers, body: 'multipart' })];
    await toolhost.createServer({ name: 'Sizes', slug: 'sizes', tools });
    await setSecret(toolhost, 'sizes', 'KEY', secret);
    await toolhost.rest('POST', '/servers/sizes/capture', { body: { hours: 1 } });
  });

  /** Calls a tool and returns the stored text of its capture and the capture that `getCall` returns. */
  const callAndReadCapture = async (args: Json) => {
    const { db, deps } = toolhost.running.app.runner;
    await db.deleteFrom('captures').execute();
    const called = await toolhost.rpc('sizes', key, 'tools/call', { name: 'get', arguments: args });
    assert.ok(called.body.result, called.text.slice(0, 500));
    await toolhost.rest('GET', '/calls?limit=1');
    const row = await db.selectFrom('captures').selectAll().executeTakeFirstOrThrow();
    const { status, body, text } = await toolhost.rest('GET', `/calls/${row.call_id}`);
    assert.equal(status, 200, text);
    const sealed = { callId: row.call_id, sealed: row.sealed_document };
    return { document: openCapture(deps.keyring, row.workspace_id, sealed), shown: body.capture as Json };
  };

  /** Responds with texts that JSON makes two or six times longer, and with the maximum number of measured fields. */
  const respondAtMaxLength = () => {
    const field = (i: number) => [`${i}${'"'.repeat(40)}`, '"\\'.repeat(14)];
    const inner = Object.fromEntries(repeat(119, field));
    const body = { said: '\u0001'.repeat(9000), ...Object.fromEntries(repeat(118, field)), inner };
    const headers = Object.fromEntries(repeat(60, (i) => [`x-${i}`, '"'.repeat(1000)]));
    upstream.on('*', () => ({ headers: { 'content-type': 'application/json', ...headers }, body }));
  };

  it('is bounded if every part has its maximum length', async () => {
    respondAtMaxLength();
    const args = Object.fromEntries(repeat(fieldCount, (i) => [`f${i}`, '\u0001'.repeat(1024)]));
    const { document, shown } = await callAndReadCapture(args);
    const bytes = Buffer.byteLength(document);
    assert.ok(bytes <= maxCaptureBytes && bytes > maxCaptureBytes / 2, `${bytes} bytes`);
    const { request, response, result, fields } = JSON.parse(document) as StoredCapture;
    const parts = [request.body.fields, request.headers, response.headers, response.body, result.text];
    for (const { length } of [...parts, fields.answer.fields]) assert.ok(length > 5);
    assert.deepEqual([shown.arguments, shown.arguments_bytes], [undefined, JSON.stringify(args).length]);
  });

  it('leaves arguments of up to 32 KiB whole and lists the other parts that were shortened', async () => {
    respondAtMaxLength();
    const args = { a: repeat(90, () => '\u0001'.repeat(60)) };
    const { shown } = await callAndReadCapture(args);
    assert.deepEqual(shown.arguments, args);
    assert.deepEqual(shown.shortened, ['result.text', 'request.headers', 'request.body', 'response.headers']);
  });
});
