import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { usePostgres, useSilentProxy } from '../support/store/use-postgres.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';
import { assertWithinDeadline } from '../support/within-deadline.ts';

/** Maximum time that a request waits for a database that does not respond, in ms. */
const maxWaitMs = 7500;

describe('a PostgreSQL server that does not respond', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const { proxy, proxied } = useSilentProxy(fixtures, database);
  const upstream = fixtures.start(startRecordingUpstream);
  const toolhost = fixtures.start(() => {
    const url = new URL(proxied.url);
    // The default connection timeout, because this test is about the limits.
    url.searchParams.set('connect_timeout', '2');
    const env = { ...proxied.env, DATABASE_URL: url.href };
    return startToolhost({ egressPorts: [upstream.port], env, runtimeOptions: { postgresLimits: undefined } });
  });

  it('[sec G5] delays a request by seconds at most while cached values are still served, and recovers although the old connections stay open', async () => {
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
    proxy.heal();
    const patchServer = async () =>
      assert.equal((await toolhost.rest('PATCH', '/servers/remembered', { body: { name: 'Healed' } })).status, 200);
    await eventually(patchServer, 10_000);
  });
});
