import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { maxLoginBytesPerMinute, reserveLoginBytes } from '../../apps/server/src/store/logins/grants.ts';
import { engines } from '../sets.ts';
import { getNextUrl } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { startPostgres } from '../support/store/postgres.ts';

const minuteMs = 60_000;
const maxLength = 16_384;
const createLongTokens = (expires_in: number) => ({
  // Maximum length that the test's upstream accepts.
  access_token: 'a'.repeat(8000),
  refresh_token: 'r'.repeat(maxLength),
  scope: 's'.repeat(maxLength),
  token_type: 'bearer',
  expires_in,
});

for (const engine of engines) {
  describe(`logins whose provider issues very long tokens, on ${engine}`, async () => {
    const postgres = engine === 'postgres' ? await startPostgres() : undefined;
    const world = await startLoginWorld(postgres && { env: { DATABASE_URL: await postgres.createDatabase() } });
    const { slug, client } = await world.createClient();
    beforeEach(async () => {
      world.provider.onToken();
      await releaseAllBytes();
    });
    after(async () => {
      await world.stop();
      await postgres?.stop();
    });

    const db = () => world.toolhost.running.app.runner.db;
    /** Uses up all bytes that may be stored in this minute and in the minutes that the test may take. */
    async function fillAllBytes(): Promise<void> {
      const query = db().selectFrom('servers').select('workspace_id');
      const { workspace_id: workspaceId } = await query.executeTakeFirstOrThrow();
      const bytes = maxLoginBytesPerMinute.ofServer;
      for (let n = -1; n < 10; n++)
        for (const serverId of ['another', 'a third'])
          await reserveLoginBytes(db(), { workspaceId, serverId, bytes }, Date.now() + n * minuteMs);
    }
    const releaseAllBytes = () => db().deleteFrom('call_quota_use').where('kind', '=', 'loginBytes').execute();

    it("[find A5] ends a login with an error after the workspace's logins of one minute stored 20 MB", async () => {
      await fillAllBytes();
      const { searchParams } = getNextUrl(await world.returnFromProvider(client.authorization()));
      const description = 'new logins have reached their storage limit for this minute; retry in a minute';
      assert.equal(searchParams.get('error'), 'temporarily_unavailable');
      assert.equal(searchParams.get('error_description'), description);
      const failures = db().selectFrom('audit_events').select('detail').where('operation', '=', 'loginFailed');
      assert.match((await failures.executeTakeFirstOrThrow()).detail, /temporarily_unavailable/);
      await releaseAllBytes();
      await world.getTokens(client);
    });

    it('[find A5] stores refreshed tokens, however many bytes new logins add', async () => {
      const { access_token } = await world.getTokens(client);
      await fillAllBytes();
      world.provider.onToken(() => ({ body: createLongTokens(3600) }));
      world.rejectFirstToken();
      assert.notEqual((await world.callTool(slug, access_token)).isError, true);
    });
  });
}
