import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openApi } from '../support/import/import-plans.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

type Plan = Json & { report: { operation: string }[]; created?: { server: { slug: string; tool_count: number } } };

describe('import limits', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost();
  });
  after(async () => {
    await toolhost.stop();
    await upstream.close();
  });

  const createDocument = () =>
    openApi({ '/things': { get: { operationId: 'listThings', summary: 'List all the things there are' } } });
  const importDocument = async (body: Json): Promise<Plan> => {
    const reply = await toolhost.rest('POST', '/import', { body });
    assert.equal(reply.status, 200, reply.text);
    return reply.body as Plan;
  };

  it('[imp 4] accepts a document text of up to 16 MB from credentials that may write', async () => {
    const description = 'x'.repeat(12 * 1024 * 1024);
    const document = JSON.stringify({ ...createDocument(), info: { title: 'Large', version: '1', description } });
    const created = await importDocument({ mode: 'create', document, include: ['*'], report: 'chosen' });
    assert.deepEqual(
      [created.created?.server.slug, created.created?.server.tool_count, created.report.length],
      ['large', 1, 1],
    );
    const reimport = { mode: 'apply', document, offered: 'new' };
    const reimported = await toolhost.rest('POST', '/servers/large/import', { body: reimport });
    assert.deepEqual([reimported.status, reimported.body.same_document], [200, true], reimported.text.slice(0, 300));
    const reader = await toolhost.createKey({ scopes: ['manage:read'] });
    const refused = await toolhost.rest('POST', '/import', { key: reader, body: { document: 'x'.repeat(2_000_000) } });
    assert.equal(refused.status, 403);
  });

  it('[imp 4] rejects an unusable long text with its field name, and limits the rest of the body to 1 MiB', async () => {
    const maxCharacters = 16 * 1024 * 1024;
    const longText = 'x'.repeat(2_000_000);
    const cases: [Json, number, RegExp][] = [
      [
        { document: 'x'.repeat(maxCharacters + 1) },
        400,
        new RegExp(`document: found ${maxCharacters + 1} characters; .* at most ${maxCharacters} `),
      ],
      [{ document: `${longText}\0` }, 400, /contains the character U\+0000/],
      [{ document: 'openapi: 3', slug: longText }, 413, /the body without document is larger than 1048576 bytes/],
      [{ document: longText, slug: {} }, 400, /slug: found an object; allowed: a string/],
      [[longText] as unknown as Json, 400, /the body must be a JSON object/],
      [{ document: [longText] }, 400, /document: found an object; allowed: a string/],
      [{ document: { openapi: '3.0.0', 'x-long': longText } }, 400, /document: found an object; allowed: a string/],
      [{ document: longText, include: Array(70_000).fill('a') }, 413, /more than 60000 elements/],
    ];
    for (const [body, status, problem] of cases) {
      const refused = await toolhost.rest('POST', '/import', { body });
      assert.equal(refused.status, status, refused.text.slice(0, 300));
      assert.match(refused.text, problem);
    }
  });

  it('[imp 4] reads only a few long texts per workspace concurrently, and queues or rejects the others', async () => {
    const body = { document: `openapi: 3\n${'x'.repeat(3_500_000)}` };
    const replies = await Promise.all(Array.from({ length: 20 }, () => toolhost.rest('POST', '/import', { body })));
    assert.ok(replies.some(({ status, headers }) => status === 429 && headers.has('retry-after')));
    assert.ok(replies.every(({ status }) => status === 400 || status === 429));
    assert.ok(replies.some(({ status }) => status === 400));
  });

  it('[imp 4] limits all requests for a document to twenty seconds in total', async (t) => {
    let aheadMs = 0;
    const runningClock = () => performance.now() + aheadMs;
    const isolated = await startToolhost({ egressPorts: [upstream.port], runtimeOptions: { runningClock } });
    t.after(() => isolated.stop());
    upstream.on('GET /moved.json', () => {
      aheadMs += 19_900;
      return { status: 302, headers: { location: '/held.json' } };
    });
    upstream.on('GET /held.json', () => 'hold');
    const { status, text } = await isolated.rest('POST', '/import', { body: { url: `${upstream.url}/moved.json` } });
    assert.equal(status, 400, text);
    assert.match(text, /could not be fetched: it did not arrive within 20 seconds, with redirects/);
  });

  it('[imp 4] evicts imports from slow hosts when another workspace needs the slot', async (t) => {
    let nowMs = 0;
    const isolated = await startToolhost({
      egressPorts: [upstream.port],
      runtimeOptions: { runningClock: () => nowMs },
    });
    t.after(() => isolated.stop());
    upstream.on('GET /slow.json', () => 'hold');
    upstream.on('GET /quick.json', () => ({ body: createDocument() }));
    upstream.take();
    const keys = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((count) => isolated.createKey({ workspace: `slow-${count}` })),
    );
    const startImport = (index: number, url: string) =>
      isolated.rest('POST', '/import', { key: keys[index] as string, body: { url } });
    const slow = `${upstream.url}/slow.json`;
    const quick = `${upstream.url}/quick.json`;
    const pending = [0, 1, 2].flatMap((index) => [startImport(index, slow), startImport(index, slow)]);
    await upstream.waitForRequest(6);
    assert.equal((await startImport(3, quick)).status, 200, 'three workspaces leave a slot for the fourth');
    pending.push(startImport(3, slow), startImport(4, slow));
    await upstream.waitForRequest(8);
    assert.equal((await startImport(5, quick)).status, 429, 'an import that has just started is not evicted');
    nowMs += 3000;
    assert.equal((await startImport(5, quick)).status, 200, 'a slow import is evicted');
    const [evicted] = pending;
    const reply = await evicted;
    assert.equal(reply?.status, 429);
    assert.match(reply?.text ?? '', /host was slow while other imports were waiting/);
    for (const request of upstream.requests) request.release({ body: createDocument() });
    const statuses = (await Promise.all(pending.slice(1))).map(({ status }) => status);
    assert.deepEqual(
      statuses,
      statuses.map(() => 200),
    );
  });
});
