import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import pg from 'pg';
import { createReportQueue } from '../../src/operations/calls/report-queue.ts';
import type { Tables } from '../../src/store/schema.ts';
import { serverAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { scrape } from '../support/toolhost/scrape.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** A queue whose reports end when the test says so, on a clock in the test's hand. */
function startQueue(atOnce: number) {
  let at = 0;
  const queue = createReportQueue({ db: {} as Kysely<Tables>, atOnce, share: 0.1, clock: () => at });
  const running: { workspace: string; end: () => void }[] = [];
  const ask = (workspace: string) =>
    queue.run(workspace, async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      running.push({ workspace, end: resolve });
      await promise;
    });
  return {
    queue,
    ask,
    wait: (ms: number) => {
      at += ms;
    },
    names: () => running.map(({ workspace }) => workspace).join(' '),
    async endFirst() {
      running.shift()?.end();
      await nextTurn();
    },
  };
}

describe('[find A4] reports', () => {
  it('of a workspace run one at a time, and workspaces take turns', async () => {
    const { ask, names, endFirst } = startQueue(2);
    const all = ['a', 'a', 'a', 'b', 'b', 'c'].map(ask);
    await nextTurn();
    assert.equal(names(), 'a b');
    await endFirst();
    assert.equal(names(), 'b c');
    await endFirst();
    assert.equal(names(), 'c a');
    for (let left = 4; left > 0; left -= 1) await endFirst();
    await Promise.all(all);
  });

  it('are refused where sixteen of their workspace wait, and of no other', async () => {
    const { ask, queue, endFirst } = startQueue(1);
    const all = Array.from({ length: 17 }, () => ask('a'));
    await assert.rejects(ask('a'), { kind: 'tooMany', retryAfterS: 1 });
    all.push(ask('b'));
    assert.deepEqual(queue.counts(), { running: 1, waiting: 17, refused: 1 });
    while (queue.counts().running > 0) await endFirst();
    await Promise.all(all);
  });

  it('are paid for with the time that they took, from what the workspace has saved up', async () => {
    const { ask, wait, names, endFirst, queue } = startQueue(1);
    const first = ask('a');
    await nextTurn();
    wait(3000);
    await endFirst();
    await first;
    // Two seconds were saved; at a tenth of the time it takes ten seconds to make up for the third one.
    const second = assert.rejects(ask('a'), { kind: 'tooMany', retryAfterS: 5 });
    const other = ask('b');
    await nextTurn();
    assert.equal(names(), 'b');
    wait(5000);
    await endFirst();
    await Promise.all([second, other]);
    wait(5000);
    const third = ask('a');
    await nextTurn();
    assert.equal(names(), 'a');
    await endFirst();
    await third;
    assert.deepEqual(queue.counts(), { running: 0, waiting: 0, refused: 1 });
  });

  it('of many workspaces are no longer remembered when they owe nothing', async () => {
    const { ask, endFirst, names } = startQueue(1);
    const all = Array.from({ length: 1500 }, (_, n) => ask(`w${n}`));
    for (let n = 0; n < 1500; n += 1) {
      await nextTurn();
      assert.equal(names(), `w${n}`);
      await endFirst();
    }
    await Promise.all(all);
  });

  it('that the database holds up delay no call, no change and no other workspace', async () => {
    const postgres = await startPostgres();
    const upstream = await startRecordingUpstream();
    const url = await postgres.createDatabase();
    const toolhost = await startToolhost({ env: { DATABASE_URL: url }, egress: [upstream.port] });
    const client = new pg.Client({ connectionString: url });
    try {
      await toolhost.createServer(serverAt('beside', upstream.url));
      const key = await toolhost.key();
      const other = await toolhost.key({ workspace: 'other' });
      await client.connect();
      await client.query('begin');
      await client.query('lock table audit_events in access exclusive mode');
      const held = Array.from({ length: 20 }, () => toolhost.rest('GET', '/audit'));
      await eventually(async () => {
        assert.ok((await scrape(toolhost.url)).value('toolhost_report_refusals_total') >= 3);
      });
      const others = await Promise.all([
        toolhost.callTool('beside', key, 'get'),
        toolhost.rest('GET', '/keys', { key: other }),
        toolhost.rest('GET', '/servers/beside'),
      ]);
      await client.query('commit');
      const [called, keys, server] = others;
      assert.deepEqual([called.isError, keys.status, server.status], [undefined, 200, 200]);
      const replies = await Promise.all(held);
      const tooMany = replies.filter(({ text }) => /16 others of this workspace wait already/.test(text));
      assert.equal(tooMany.length, 3);
      for (const { status, headers } of tooMany) assert.deepEqual([status, headers.get('retry-after')], [429, '1']);
      // The one that had begun is answered; on a busy machine the lock may be held for longer than the others may wait.
      assert.ok(replies.some(({ status }) => status === 200));
      for (const { status, text } of replies.filter((reply) => !tooMany.includes(reply)))
        assert.ok(status === 200 || (status === 429 && /was not begun within 5 s/.test(text)), text);
    } finally {
      await client.end();
      await toolhost.stop();
      await upstream.close();
      await postgres.stop();
    }
  });
});
