import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import { tokensOf } from '../support/oauth/oauth-client.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { engines } from '../support/store/stores.ts';

for (const engine of engines) {
  describe(`what strangers and providers say at a login, on ${engine}`, () => {
    let postgres: TestPostgres | undefined;
    let world: LoginWorld;
    before(async () => {
      postgres = engine === 'postgres' ? await startPostgres() : undefined;
      world = await startLoginWorld(postgres && { env: { DATABASE_URL: await postgres.createDatabase() } });
    });
    after(async () => {
      await world.stop();
      await postgres?.stop();
    });

    for (const token_mode of ['issued', 'passthrough']) {
      it(`[spec 4.4] expires_in may be no whole number (${token_mode})`, async (t) => {
        t.after(() => world.provider.onToken());
        const slug = await world.serve({}, { token_mode });
        const tokens = { access_token: 'of-the-provider', token_type: 'bearer', expires_in: 1234.5678 };
        for (const more of [{}, { refresh_token: 'to-refresh' }]) {
          world.provider.onToken(() => ({ body: { ...tokens, ...more } }));
          const client = await world.client(slug);
          const { code, verifier } = await world.logIn(client);
          const { access_token, expires_in, refresh_token } = tokensOf(await client.redeem(code, verifier));
          assert.ok(Number.isInteger(expires_in), String(expires_in));
          assert.notEqual((await world.call(slug, access_token)).isError, true);
          if (refresh_token !== undefined) tokensOf(await client.refresh(refresh_token));
        }
      });
    }
  });
}
