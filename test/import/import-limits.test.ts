import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openApi } from '../support/import/import-plans.ts';
import { startImports } from '../support/import/import-service.ts';
import { pluck } from '../support/pluck.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

type Plan = Json & { report: { operation: string }[]; created?: { server: { slug: string; tool_count: number } } };

const document = openApi({
  '/things': { get: { operationId: 'listThings', summary: 'List all the things there are' } },
});

describe('import limits', () => {
  const imports = useFixture(startImports);
  const importDocument = (body: unknown, key?: string) =>
    imports.toolhost.rest('POST', '/import', { ...(key && { key }), body });

  it('[imp 4] accepts a document text of up to 16 MB from credentials that may write', async () => {
    const description = 'x'.repeat(12 * 1024 * 1024);
    const text = JSON.stringify({ ...document, info: { title: 'Large', version: '1', description } });
    const reply = await importDocument({ mode: 'create', document: text, include: ['*'], report: 'chosen' });
    assert.equal(reply.status, 200, reply.text);
    const { created, report } = reply.body as Plan;
    assert.deepEqual([created?.server.slug, created?.server.tool_count, report.length], ['large', 1, 1]);
    const reimport = { mode: 'apply', document: text, offered: 'new' };
    const reimported = await imports.toolhost.rest('POST', '/servers/large/import', { body: reimport });
    assert.deepEqual([reimported.status, reimported.body.same_document], [200, true], reimported.text.slice(0, 300));
    const reader = await imports.toolhost.createKey({ scopes: ['manage:read'] });
    assert.equal((await importDocument({ document: 'x'.repeat(2_000_000) }, reader)).status, 403);
  });

  it('[imp 4] rejects an unusable long text with its field name, and limits the rest of the body to 1 MiB', async () => {
    const maxCharacters = 16 * 1024 * 1024;
    const longText = 'x'.repeat(2_000_000);
    const tooLong = new RegExp(`document: found ${maxCharacters + 1} characters; .* at most ${maxCharacters} `);
    const cases: [unknown, number, RegExp][] = [
      [{ document: 'x'.repeat(maxCharacters + 1) }, 400, tooLong],
      [{ document: `${longText}\0` }, 400, /contains the character U\+0000/],
      [{ document: 'openapi: 3', slug: longText }, 413, /the body without document is larger than 1048576 bytes/],
      [{ document: longText, slug: {} }, 400, /slug: found an object; allowed: a string/],
      [[longText], 400, /the body must be a JSON object/],
      [{ document: [longText] }, 400, /document: found an object; allowed: a string/],
      [{ document: { openapi: '3.0.0', 'x-long': longText } }, 400, /document: found an object; allowed: a string/],
      [{ document: longText, include: Array(70_000).fill('a') }, 413, /more than 60000 elements/],
    ];
    for (const [body, status, problem] of cases) {
      const refused = await importDocument(body);
      assert.equal(refused.status, status, refused.text.slice(0, 300));
      assert.match(refused.text, problem);
    }
  });

  it('[imp 4] reads only a few long texts per workspace concurrently, and queues or rejects the others', async () => {
    const body = { document: `openapi: 3\n${'x'.repeat(3_500_000)}` };
    const replies = await Promise.all(Array.from({ length: 20 }, () => importDocument(body)));
    assert.ok(replies.some(({ status, headers }) => status === 429 && headers.has('retry-after')));
    assert.ok(replies.every(({ status }) => status === 400 || status === 429));
    assert.ok(replies.some(({ status }) => status === 400));
  });

  it('[imp 4] limits all requests for a document to twenty seconds in total', async (t) => {
    const { upstream } = imports;
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
    const { upstream } = imports;
    let nowMs = 0;
    const runtimeOptions = { runningClock: () => nowMs };
    const isolated = await startToolhost({ egressPorts: [upstream.port], runtimeOptions });
    t.after(() => isolated.stop());
    upstream.on('GET /slow.json', () => 'hold');
    upstream.on('GET /quick.json', () => ({ body: document }));
    upstream.take();
    const workspaces = [1, 2, 3, 4, 5, 6].map((count) => ({ workspace: `slow-${count}` }));
    const keys = await Promise.all(workspaces.map((options) => isolated.createKey(options)));
    const startImport = (index: number, url: string) =>
      isolated.rest('POST', '/import', { key: keys[index] as string, body: { url } });
    const slow = `${upstream.url}/slow.json`;
    const quick = `${upstream.url}/quick.json`;
    // There are 8 slots, of which a workspace may take 2 (maxConcurrentImports).
    const pending = [0, 1, 2].flatMap((index) => [startImport(index, slow), startImport(index, slow)]);
    await upstream.waitForRequest(6);
    assert.equal((await startImport(3, quick)).status, 200, 'three workspaces leave two slots');
    pending.push(startImport(3, slow), startImport(4, slow));
    await upstream.waitForRequest(8);
    assert.equal((await startImport(5, quick)).status, 429, 'an import that has just started is not evicted');
    nowMs += 3000;
    assert.equal((await startImport(5, quick)).status, 200, 'a slow import is evicted');
    const reply = await pending[0];
    assert.equal(reply?.status, 429);
    assert.match(reply?.text ?? '', /host was slow while other imports were waiting/);
    for (const request of upstream.requests) request.release({ body: document });
    const statuses = new Set(pluck(await Promise.all(pending.slice(1)), 'status'));
    assert.deepEqual(statuses, new Set([200]));
  });
});
