import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Growth, mostGrowthInMinute, takeGrowth } from '../../src/store/logins/login-bytes.ts';
import { next } from '../support/browser/browser.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import type { OAuthClient } from '../support/oauth/oauth-client.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { engines } from '../support/store/stores.ts';

const minuteMs = 60_000;
const kinds: Growth[] = ['loginBytes', 'refreshBytes'];
const longest = 16_384;
const long = (expires_in: number) => ({
  // As long as the upstream of the test takes.
  access_token: 'a'.repeat(8000),
  refresh_token: 'r'.repeat(longest),
  scope: 's'.repeat(longest),
  token_type: 'bearer',
  expires_in,
});

for (const engine of engines) {
  describe(`logins whose provider gives very long tokens, on ${engine}`, () => {
    let postgres: TestPostgres | undefined;
    let world: LoginWorld;
    let slug: string;
    let client: OAuthClient;
    before(async () => {
      postgres = engine === 'postgres' ? await startPostgres() : undefined;
      world = await startLoginWorld(postgres && { env: { DATABASE_URL: await postgres.createDatabase() } });
      slug = await world.serve();
      client = await world.client(slug);
    });
    beforeEach(async () => {
      world.provider.onToken();
      await giveAllBack();
    });
    after(async () => {
      await world.stop();
      await postgres?.stop();
    });

    const db = () => world.toolhost.running.app.runner.db;
    const workspaceId = async () =>
      (await db().selectFrom('servers').select('workspace_id').executeTakeFirstOrThrow()).workspace_id;
    /** Whatever may be added in this minute and those that the test can take was taken. */
    async function takeAll(kind: Growth): Promise<void> {
      const growth = { kind, workspaceId: await workspaceId(), bytes: mostGrowthInMinute };
      for (let n = -1; n < 10; n++) await takeGrowth(db(), growth, Date.now() + n * minuteMs);
    }
    const giveAllBack = () => db().deleteFrom('call_quota_use').where('kind', 'in', kinds).execute();
    const counted = async () => {
      const rows = await db().selectFrom('call_quota_use').select('calls').where('kind', 'in', kinds).execute();
      return rows.reduce((sum, { calls }) => sum + Number(calls), 0);
    };

    it('[find A5] count what they store, also when they are refreshed with longer tokens', async () => {
      const { access_token } = await world.tokens(client);
      const short = await counted();
      assert.ok(short > 1000 && short < 5000, `${short} bytes of a short login`);
      world.provider.onToken(() => ({ body: long(3600) }));
      world.refuseFirstToken();
      assert.notEqual((await world.call(slug, access_token)).isError, true);
      const refreshed = await counted();
      assert.ok(refreshed > 70_000 && refreshed < 80_000, `${refreshed} bytes after the refresh`);
      await world.tokens(client);
      const both = await counted();
      assert.ok(both - refreshed > 70_000 && both - refreshed < 80_000, `${both} bytes of both`);
    });

    it('[find A5] end with an error once those of a workspace have grown by 20 MB in a minute', async () => {
      await takeAll('loginBytes');
      const { searchParams } = next(await world.returned(client.authorization()));
      assert.deepEqual(
        [searchParams.get('error'), searchParams.get('error_description')],
        [
          'temporarily_unavailable',
          'the logins at the servers of this workspace have grown by 20 MB in this minute, which is the most; try again in a minute',
        ],
      );
      const failures = db().selectFrom('audit_events').select('detail').where('operation', '=', 'loginFailed');
      assert.match((await failures.executeTakeFirstOrThrow()).detail, /temporarily_unavailable/);
      await giveAllBack();
      await world.tokens(client);
    });

    it('[find A5] get their refreshed tokens, however much new logins add', async () => {
      const { access_token } = await world.tokens(client);
      await takeAll('loginBytes');
      world.provider.onToken(() => ({ body: long(3600) }));
      world.refuseFirstToken();
      assert.notEqual((await world.call(slug, access_token)).isError, true);
    });

    it('[find A5] keep the tokens that they have when longer ones are too much for this minute', async () => {
      const { access_token } = await world.tokens(client);
      const stored = async () =>
        (await db().selectFrom('grants').select(['id', 'tokens_version', 'refreshing_until']).execute()).toSorted(
          (a, b) => (a.id < b.id ? -1 : 1),
        );
      const before = await stored();
      await takeAll('refreshBytes');
      world.refuseFirstToken();
      world.provider.onToken(() => ({ body: long(3600) }));
      assert.equal((await world.call(slug, access_token)).isError, true);
      assert.deepEqual(await stored(), before);
      await giveAllBack();
      assert.notEqual((await world.call(slug, access_token)).isError, true);
    });
  });
}
