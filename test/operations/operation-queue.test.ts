import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import pg from 'pg';
import { createOperationQueue } from '../../src/operations/quotas/operation-queue.ts';
import { serverAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { countGivenUp } from '../support/toolhost/scrape.ts';
import { type Reply, startToolhost } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** A queue whose operations end when the test says so. */
function startQueue() {
  const queue = createOperationQueue(1000);
  const running: { name: string; end: () => void }[] = [];
  return {
    ask: (workspaceId: string, id: string, effect: 'read' | 'write' | 'call' = 'read', bytes = 1) =>
      queue.run({ actor: { workspaceId, id }, effect, bytes }, async (hasWaited) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        running.push({ name: workspaceId + id, end: resolve });
        await promise;
        return hasWaited;
      }),
    names: () => running.map(({ name }) => name).join(' '),
    async endFirst() {
      running.shift()?.end();
      await nextTurn();
    },
    async endAll() {
      for (; running.length > 0; await nextTurn()) running.shift()?.end();
    },
  };
}

describe('[find A7] operations of a workspace', () => {
  it('run a few at a time, its actors take turns, and no other workspace waits for it', async () => {
    const { ask, names, endFirst, endAll } = startQueue();
    const all = ['1', '1', '1', '1', '1', '2', '2', '2'].map((actor) => ask('a', actor));
    all.push(ask('b', '3'));
    await nextTurn();
    assert.equal(names(), 'a1 a1 a1 a2 a2 a2 b3');
    all.push(ask('a', '4'), ask('a', '4'));
    await endFirst();
    assert.equal(names(), 'a1 a1 a2 a2 a2 b3 a1');
    await endFirst();
    assert.equal(names(), 'a1 a2 a2 a2 b3 a1 a4');
    await endAll();
    const waited = await Promise.all(all);
    assert.equal(waited.filter(Boolean).length, 4);
  });

  it('wait for none with another effect', async () => {
    const { ask, names, endAll } = startQueue();
    const all = [...Array(6).keys()].map((actor) => ask('a', `${actor}`, 'write'));
    all.push(ask('a', '8', 'call'), ask('a', '9'));
    await nextTurn();
    assert.equal(names(), 'a0 a1 a2 a3 a4 a5 a8 a9');
    await endAll();
    await Promise.all(all);
  });

  it('are refused where a hundred of one actor wait, and those of other actors are not', async () => {
    const { ask, endAll } = startQueue();
    const all = Array.from({ length: 103 }, () => ask('a', '1'));
    await assert.rejects(ask('a', '1'), {
      kind: 'tooMany',
      retryAfterS: 2,
      message: /^100 others wait already; of requests that read one credential runs 3 at a time; nothing was done, try/,
    });
    all.push(ask('a', '2'));
    await endAll();
    await Promise.all(all);
  });

  it('wait with no more bytes than half of what other workspaces leave', async () => {
    const { ask, endAll } = startQueue();
    const all = ['a', 'b'].flatMap((workspace) => [1, 1, 1, 400].map((bytes) => ask(workspace, '1', 'read', bytes)));
    const refused = all.pop();
    await assert.rejects(
      async () => refused,
      /^AppError: others with large inputs wait already; of requests that read/,
    );
    await assert.rejects(ask('a', '1', 'read', 200), { kind: 'tooMany' });
    await endAll();
    await Promise.all(all);
  });

  it('that the database holds up, over REST and MCP together, leave its connections to other workspaces', async () => {
    const postgres = await startPostgres();
    const upstream = await startRecordingUpstream();
    const url = await postgres.createDatabase();
    const toolhost = await startToolhost({ env: { DATABASE_URL: url }, egress: [upstream.port] });
    const client = new pg.Client({ connectionString: url });
    try {
      await toolhost.createServer(serverAt('beside', upstream.url));
      const [greedy, modest] = [await toolhost.key(), await toolhost.key({ workspace: 'other' })];
      await client.connect();
      await client.query('begin');
      await client.query('lock table calls in access exclusive mode');
      const replies: Reply[] = [];
      const ask = { name: 'getCall', arguments: { id: 'call_1' } };
      const held = Array.from({ length: 110 }, async (_, n) => {
        const isRest = n % 2 === 0;
        const reply = isRest
          ? toolhost.rest('GET', '/calls/call_1', { key: greedy })
          : toolhost.rpc('manage', greedy, 'tools/call', ask);
        replies.push(await reply);
      });
      await eventually(() => assert.equal(replies.length, 7));
      assert.deepEqual([...new Set(replies.map(({ status }) => status))], [429]);
      assert.equal(await countGivenUp(toolhost.url, 'operation'), 7);
      for (const { headers, text } of replies) {
        assert.equal(headers.get('retry-after'), '2');
        assert.match(text, /100 others wait already; .* nothing was done, try again in 2 s/);
      }
      // The other key of this workspace and the other workspace read and change what they like meanwhile.
      assert.equal((await toolhost.rest('GET', '/servers/beside')).status, 200);
      assert.equal((await toolhost.rest('GET', '/workspace/limits', { key: modest })).status, 200);
      const changed = await toolhost.rest('PATCH', '/servers/beside', { key: greedy, body: { description: 'New.' } });
      assert.equal(changed.status, 200);
      await client.query('commit');
      await Promise.all(held);
      assert.equal(replies.filter(({ status }) => status === 429).length, 7);
    } finally {
      await client.end();
      await toolhost.stop();
      await upstream.close();
      await postgres.stop();
    }
  });
});
