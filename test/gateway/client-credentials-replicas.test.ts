import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { getErrorText, getResultText } from '../support/one-tool.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { createMovableClock } from '../support/toolhost/movable-clock.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('authentication by client credentials on two replicas', () => {
  it('[conf 4] sends one token request, shares its token, and shares the pause after a rejection', async (t) => {
    const [postgres, api, issuer] = await Promise.all([
      startPostgres(),
      startRecordingUpstream(),
      startRecordingUpstream(),
    ]);
    const replicas: TestToolhost[] = [];
    t.after(async () => {
      await Promise.all(replicas.map((replica) => replica.stop()));
      await Promise.all([postgres.stop(), api.close(), issuer.close()]);
    });
    const url = await postgres.createDatabase();
    // The clock is stopped, so that the pause after a rejection lasts until both replicas have called.
    const at = Date.now();
    await (await createMovableClock(url)).stopAt(at);
    const env = { DATABASE_URL: url, MASTER_KEY: randomBytes(32).toString('base64') };
    const options = { env, egressPorts: [api.port, issuer.port], runtimeOptions: { now: () => at, clock: () => 0 } };
    const [first, second] = [await startToolhost(options), await startToolhost(options)];
    replicas.push(first, second);
    const client = { client_id: 'client', client_secret: 'a-secret-of-the-client' };
    const authentication = { type: 'ClientCredentials', token_url: `${issuer.url}/token`, ...client };
    for (const slug of ['shared', 'broken']) await first.createServer(buildServerAt(slug, api.url, { authentication }));
    const key = await first.createKey();

    issuer.on('POST /token', () => 'hold');
    const calls = [first, second, first, second].map((replica) => replica.callTool('shared', key, 'get'));
    (await issuer.waitForRequest()).release({ body: { access_token: 'shared', expires_in: 3600 } });
    for (const result of await Promise.all(calls)) assert.notEqual(result.isError, true, getResultText(result));
    const sent = api.take().map(({ headers }) => headers.authorization);
    assert.deepEqual(sent, Array(4).fill('Bearer shared'));
    assert.equal(issuer.take().length, 1);

    issuer.on('POST /token', () => ({ status: 400, body: { error: 'invalid_client' } }));
    getErrorText(await first.callTool('broken', key, 'get'));
    const message = getErrorText(await second.callTool('broken', key, 'get'));
    assert.match(message, /invalid_client.*next request is sent in 1 s/);
    assert.equal(issuer.take().length, 1);
  });
});
