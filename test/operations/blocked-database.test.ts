import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import pg from 'pg';
import { eventually } from '../support/eventually.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { countShedWork, scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { type Reply, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('many requests of one workspace that wait for the database', async () => {
  const [postgres, upstream] = await Promise.all([startPostgres(), startRecordingUpstream()]);
  const url = await postgres.createDatabase();
  const toolhost = await startToolhost({ env: { DATABASE_URL: url }, egressPorts: [upstream.port] });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await toolhost.createServer(buildServerAt('nearby', upstream.url));
  after(async () => {
    await client.end();
    await toolhost.stop();
    await Promise.all([upstream.close(), postgres.stop()]);
  });

  const lockTable = (table: string) => client.query(`begin; lock table ${table} in access exclusive mode`);

  it('[find A7] leave connections to others, with REST and MCP counted together', async () => {
    const [busyKey, otherKey] = [await toolhost.createKey(), await toolhost.createKey({ workspace: 'other' })];
    await lockTable('calls');
    const replies: Reply[] = [];
    const getCall = { name: 'getCall', arguments: { id: 'call_1' } };
    const pending = Array.from({ length: 110 }, async (_, n) => {
      const isRest = n % 2 === 0;
      const reply = isRest
        ? toolhost.rest('GET', '/calls/call_1', { key: busyKey })
        : toolhost.rpc('manage', busyKey, 'tools/call', getCall);
      replies.push(await reply);
    });
    // This key may run 6 of 24 requests and queue 50 of 200, so 54 of 110 are refused.
    await eventually(() => assert.equal(replies.length, 54));
    assert.deepEqual([...new Set(replies.map(({ status }) => status))], [429]);
    assert.equal(await countShedWork(toolhost.url, 'operation'), 54);
    for (const { headers, text } of replies) {
      assert.equal(headers.get('retry-after'), '2');
      assert.match(text, /Too many requests are queued .* Nothing was changed; retry in 2 s/);
    }
    // The other key of this workspace and the other workspace can still read and change data.
    assert.equal((await toolhost.rest('GET', '/servers/nearby')).status, 200);
    assert.equal((await toolhost.rest('GET', '/workspace/limits', { key: otherKey })).status, 200);
    const changed = await toolhost.rest('PATCH', '/servers/nearby', { key: busyKey, body: { description: 'New.' } });
    assert.equal(changed.status, 200);
    await client.query('commit');
    await Promise.all(pending);
    assert.equal(replies.filter(({ status }) => status === 429).length, 54);
  });

  it('[find A4] delay no calls, no changes, and no other workspace if they are reports', async () => {
    const key = await toolhost.createKey();
    const other = await toolhost.createKey({ workspace: 'other' });
    await lockTable('audit_events');
    const pending = Array.from({ length: 20 }, () => toolhost.rest('GET', '/audit'));
    await eventually(async () => {
      assert.ok((await scrapeMetrics(toolhost.url)).value('toolhost_report_refusals_total') >= 11);
    });
    const others = await Promise.all([
      toolhost.callTool('nearby', key, 'get'),
      toolhost.rest('GET', '/keys', { key: other }),
      toolhost.rest('GET', '/servers/nearby'),
    ]);
    await client.query('commit');
    const [called, keys, server] = others;
    assert.deepEqual([called.isError, keys.status, server.status], [undefined, 200, 200]);
    const replies = await Promise.all(pending);
    const refused = replies.filter(({ text }) => /Too many requests are queued/.test(text));
    assert.equal(refused.length, 11);
    for (const { status, headers } of refused) assert.deepEqual([status, headers.get('retry-after')], [429, '2']);
    // The report that had started succeeds. On a busy machine the lock may outlast the queue timeout of the others.
    assert.ok(replies.some(({ status }) => status === 200));
    for (const { status, text } of replies.filter((reply) => !refused.includes(reply)))
      assert.ok(status === 200 || (status === 429 && /did not start within 5 s/.test(text)), text);
  });
});
