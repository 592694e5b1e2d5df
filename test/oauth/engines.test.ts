import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { expectTokens } from '../support/oauth/oauth-client.ts';
import { startPostgres } from '../support/store/postgres.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

for (const engine of engines) {
  describe(`unusual client names and token responses on ${engine}`, async () => {
    const postgres = engine === 'postgres' ? await startPostgres() : undefined;
    const world = await startLoginWorld(postgres && { env: { DATABASE_URL: await postgres.createDatabase() } });
    after(async () => {
      await world.stop();
      await postgres?.stop();
    });

    it("[sec D20] replaces control characters in a client's name", async () => {
      const slug = await world.createServer();
      const client = await world.registerClient(slug, { name: '\u0000Cla\u0000ude\u001b[1m\u0085 Code\u0000' });
      const { access_token } = await world.getTokens(client);
      assert.notEqual((await world.callTool(slug, access_token)).isError, true);
      const { body } = await world.toolhost.rest('GET', `/audit`);
      const login = (body.events as { operation: string; detail: Json }[]).find(
        ({ operation }) => operation === 'login',
      );
      assert.equal(login?.detail.client, '\ufffdCla\ufffdude\ufffd[1m\ufffd Code\ufffd');
    });

    for (const token_mode of ['issued', 'passthrough']) {
      it(`[spec 4.4] accepts an expires_in that is not a whole number (${token_mode})`, async (t) => {
        t.after(() => world.provider.onToken());
        const slug = await world.createServer({}, { token_mode });
        const tokens = { access_token: 'of-the-provider', token_type: 'bearer', expires_in: 1234.5678 };
        for (const more of [{}, { refresh_token: 'to-refresh' }]) {
          world.provider.onToken(() => ({ body: { ...tokens, ...more } }));
          const client = await world.registerClient(slug);
          const { access_token, expires_in, refresh_token } = await world.getTokens(client);
          assert.ok(Number.isInteger(expires_in), String(expires_in));
          assert.notEqual((await world.callTool(slug, access_token)).isError, true);
          if (refresh_token !== undefined) expectTokens(await client.refresh(refresh_token));
        }
      });
    }
  });
}
