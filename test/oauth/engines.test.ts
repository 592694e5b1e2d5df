import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { createBrowser, getNextUrl } from '../support/browser/browser.ts';
import { type ForgedTokenProvider, startForgedTokenProvider } from '../support/oauth/forged-token-provider.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import { expectTokens } from '../support/oauth/oauth-client.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

for (const engine of engines) {
  describe(`unusual client names and token responses on ${engine}`, () => {
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

    it("[sec D20] replaces control characters in a client's name", async () => {
      const slug = await world.createServer();
      const client = await world.registerClient(slug, { name: '\u0000Cla\u0000ude\u001b[1m\u0085 Code\u0000' });
      const { access_token } = await world.getTokens(client);
      assert.notEqual((await world.callTool(slug, access_token)).isError, true);
      const { body } = await world.toolhost.rest('GET', `/audit`);
      const logins = (body.events as { operation: string; detail: Json }[]).filter(
        (event) => event.operation === 'login',
      );
      assert.equal(logins[0]?.detail.client, '\ufffdCla\ufffdude\ufffd[1m\ufffd Code\ufffd');
    });

    for (const token_mode of ['issued', 'passthrough']) {
      it(`[spec 4.4] accepts an expires_in that is not a whole number (${token_mode})`, async (t) => {
        t.after(() => world.provider.onToken());
        const slug = await world.createServer({}, { token_mode });
        const tokens = { access_token: 'of-the-provider', token_type: 'bearer', expires_in: 1234.5678 };
        for (const more of [{}, { refresh_token: 'to-refresh' }]) {
          world.provider.onToken(() => ({ body: { ...tokens, ...more } }));
          const client = await world.registerClient(slug);
          const { code, verifier } = await world.logIn(client);
          const { access_token, expires_in, refresh_token } = expectTokens(await client.redeem(code, verifier));
          assert.ok(Number.isInteger(expires_in), String(expires_in));
          assert.notEqual((await world.callTool(slug, access_token)).isError, true);
          if (refresh_token !== undefined) expectTokens(await client.refresh(refresh_token));
        }
      });
    }
  });

  describe(`unusual claims of an identity provider on ${engine}`, () => {
    let postgres: TestPostgres | undefined;
    let provider: ForgedTokenProvider;
    let toolhost: TestToolhost;
    before(async () => {
      provider = await startForgedTokenProvider();
      postgres = engine === 'postgres' ? await startPostgres() : undefined;
      const DATABASE_URL = await postgres?.createDatabase();
      const env = { OIDC_ISSUER: provider.url, OIDC_CLIENT_ID: provider.clientId, OIDC_CLIENT_SECRET: 'of-the-client' };
      toolhost = await startToolhost({ env: { ...env, ...(DATABASE_URL !== undefined && { DATABASE_URL }) } });
    });
    after(async () => {
      await toolhost.stop();
      await Promise.all([provider.close(), postgres?.stop()]);
    });

    async function signIn(claims: Json) {
      const browser = createBrowser();
      const { searchParams: sent } = getNextUrl(await browser.get(`${toolhost.url}/login`));
      provider.setIdToken(sent.get('nonce') ?? '', { claims });
      const query = new URLSearchParams({ code: 'x', state: sent.get('state') ?? '', iss: provider.url });
      const { status } = await browser.get(`${toolhost.url}/login/callback?${query}`);
      const session = await browser.get(`${toolhost.url}/api/v1/session`);
      return { status, user: session.status === 200 ? (JSON.parse(session.html) as { user: Json }).user : undefined };
    }

    it('[sec E6] replaces control characters in a name, and ignores an email address that contains one', async () => {
      const claims = { name: 'O\u0000lga\u0007 ', email: 'olga\u0000@corp.example', email_verified: true };
      const { status, user } = await signIn({ sub: 'olga', ...claims });
      assert.equal(status, 302);
      assert.deepEqual([user?.name, user?.email ?? null], ['O\ufffdlga\ufffd', null]);
      assert.equal((await signIn({ sub: 'nobody', name: '\u0000' })).status, 302);
    });

    it('[sec E6] rejects a subject with a control character, which could pass for another subject', async () => {
      assert.equal((await signIn({ sub: 'ol\u0000ga' })).status, 401);
    });
  });
}
