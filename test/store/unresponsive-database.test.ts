import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { type SilentProxy, startSilentProxy } from '../support/upstreams/silent-proxy.ts';
import { assertWithinDeadline } from '../support/within-deadline.ts';

/** Maximum time that a request waits for a database that does not respond, in ms. */
const maxWaitMs = 7500;

describe('a PostgreSQL server that does not respond', () => {
  let postgres: TestPostgres;
  let upstream: RecordingUpstream;
  let proxy: SilentProxy;
  let toolhost: TestToolhost;
  before(async () => {
    [postgres, upstream] = await Promise.all([startPostgres(), startRecordingUpstream()]);
    const url = new URL(await postgres.createDatabase());
    proxy = await startSilentProxy({ host: url.hostname, port: Number(url.port) });
    url.port = String(proxy.port);
    // The default connection timeout, because this test is about the limits.
    url.searchParams.set('connect_timeout', '2');
    toolhost = await startToolhost({
      egressPorts: [upstream.port],
      env: { DATABASE_URL: url.href },
      runtimeOptions: { postgresLimits: undefined },
    });
  });
  after(async () => {
    await toolhost.stop();
    await proxy.close();
    await Promise.all([postgres.stop(), upstream.close()]);
  });

  it('[sec G5] delays a request by seconds at most, while cached values are still served', async () => {
    await toolhost.createServer(buildServerAt('remembered', upstream.url));
    await toolhost.callTool('remembered', 'some-token', 'get');
    proxy.silence();
    let isWaiting = true;
    const pendingWrite = assertWithinDeadline(maxWaitMs, () =>
      toolhost.rest('POST', '/servers', { body: buildServerAt('lost', upstream.url) }).finally(() => {
        isWaiting = false;
      }),
    );
    const call = await toolhost.callTool('remembered', 'some-token', 'get');
    assert.notEqual(call.isError, true);
    assert.equal(isWaiting, true);
    assert.equal((await pendingWrite).status, 503);
  });

  it('[sec G5] recovers although the old connections stay open', async () => {
    proxy.heal();
    const patchServer = async () =>
      assert.equal((await toolhost.rest('PATCH', '/servers/remembered', { body: { name: 'Healed' } })).status, 200);
    await eventually(patchServer, 10_000);
  });
});
