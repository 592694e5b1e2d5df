import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openApi } from '../support/import/plan-of.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

type Plan = Json & {
  report: { operation: string }[];
  created?: { server: { slug: string; tool_count: number } };
};

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

  const things = () =>
    openApi({ '/things': { get: { operationId: 'listThings', summary: 'List all the things there are' } } });
  const imported = async (body: Json): Promise<Plan> => {
    const reply = await toolhost.rest('POST', '/import', { body });
    assert.equal(reply.status, 200, reply.text);
    return reply.body as Plan;
  };

  it('[imp 4] accepts a document text of up to 16 MB from credentials that may write', async () => {
    const description = 'x'.repeat(12 * 1024 * 1024);
    const document = JSON.stringify({ ...things(), info: { title: 'Large', version: '1', description } });
    const made = await imported({ mode: 'create', document, include: ['*'], report: 'chosen' });
    assert.deepEqual([made.created?.server.slug, made.created?.server.tool_count, made.report.length], ['large', 1, 1]);
    const again = { mode: 'apply', document, offered: 'new' };
    const same = await toolhost.rest('POST', '/servers/large/import', { body: again });
    assert.deepEqual([same.status, same.body.same_document], [200, true], same.text.slice(0, 300));
    const reader = await toolhost.key({ scopes: ['manage:read'] });
    const refused = await toolhost.rest('POST', '/import', { key: reader, body: { document: 'x'.repeat(2_000_000) } });
    assert.equal(refused.status, 403);
  });

  it('[imp 4] rejects an unusable long text with its field name, and limits the rest of the body to 1 MiB', async () => {
    const most = 16 * 1024 * 1024;
    const long = 'x'.repeat(2_000_000);
    const cases: [Json, number, RegExp][] = [
      [
        { document: 'x'.repeat(most + 1) },
        400,
        new RegExp(`document: found ${most + 1} characters; .* at most ${most} `),
      ],
      [{ document: `${long}\0` }, 400, /contains the character U\+0000/],
      [{ document: 'openapi: 3', slug: long }, 413, /the body without document is larger than 1048576 bytes/],
      [{ document: long, slug: {} }, 400, /slug: found an object; allowed: a string/],
      [[long] as unknown as Json, 400, /the body must be a JSON object/],
      [{ document: [long] }, 400, /document: found an object; allowed: a string/],
      [{ document: { openapi: '3.0.0', 'x-long': long } }, 400, /document: found an object; allowed: a string/],
      [{ document: long, include: Array(70_000).fill('a') }, 413, /more than 60000 elements/],
    ];
    for (const [body, status, problem] of cases) {
      const refused = await toolhost.rest('POST', '/import', { body });
      assert.equal(refused.status, status, refused.text.slice(0, 300));
      assert.match(refused.text, problem);
    }
  });

  it('[imp 4] reads only a few long texts per workspace concurrently, and queues or rejects the others', async () => {
    const body = { document: `openapi: 3\n${'x'.repeat(3_500_000)}` };
    const answers = await Promise.all(Array.from({ length: 20 }, () => toolhost.rest('POST', '/import', { body })));
    assert.ok(answers.some(({ status, headers }) => status === 429 && headers.has('retry-after')));
    assert.ok(answers.every(({ status }) => status === 400 || status === 429));
    assert.ok(answers.some(({ status }) => status === 400));
  });

  it('[imp 4] limits all requests for a document to twenty seconds in total', async (t) => {
    let aheadMs = 0;
    const runningClock = () => performance.now() + aheadMs;
    const own = await startToolhost({ egress: [upstream.port], surroundings: { runningClock } });
    t.after(() => own.stop());
    upstream.on('GET /moved.json', () => {
      aheadMs += 19_900;
      return { status: 302, headers: { location: '/held.json' } };
    });
    upstream.on('GET /held.json', () => 'hold');
    const { status, text } = await own.rest('POST', '/import', { body: { url: `${upstream.url}/moved.json` } });
    assert.equal(status, 400, text);
    assert.match(text, /could not be fetched: it did not arrive within 20 seconds, with redirects/);
  });

  it('[imp 4] evicts imports from slow hosts when another workspace needs the slot', async (t) => {
    let at = 0;
    const own = await startToolhost({
      egress: [upstream.port],
      surroundings: { runningClock: () => at },
    });
    t.after(() => own.stop());
    upstream.on('GET /slow.json', () => 'hold');
    upstream.on('GET /quick.json', () => ({ body: things() }));
    upstream.take();
    const keys = await Promise.all([1, 2, 3, 4, 5, 6].map((count) => own.key({ workspace: `slow-${count}` })));
    const importing = (index: number, url: string) =>
      own.rest('POST', '/import', { key: keys[index] as string, body: { url } });
    const slow = `${upstream.url}/slow.json`;
    const quick = `${upstream.url}/quick.json`;
    const held = [0, 1, 2].flatMap((index) => [importing(index, slow), importing(index, slow)]);
    await upstream.waitForRequest(6);
    assert.equal((await importing(3, quick)).status, 200, 'three workspaces leave a slot for the fourth');
    held.push(importing(3, slow), importing(4, slow));
    await upstream.waitForRequest(8);
    assert.equal((await importing(5, quick)).status, 429, 'an import that has just started is not evicted');
    at += 3000;
    assert.equal((await importing(5, quick)).status, 200, 'a slow import is evicted');
    const [first] = held;
    const reply = await first;
    assert.equal(reply?.status, 429);
    assert.match(reply?.text ?? '', /host was slow while other imports were waiting/);
    for (const request of upstream.requests) request.release({ body: things() });
    const statuses = (await Promise.all(held.slice(1))).map(({ status }) => status);
    assert.deepEqual(
      statuses,
      statuses.map(() => 200),
    );
  });
});
