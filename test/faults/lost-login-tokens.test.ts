import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { freshCall } from '../support/fresh-request.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { clientWithId } from '../support/oauth/oauth-client.ts';
import { usePostgres, useSilentProxy } from '../support/store/use-postgres.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('a service that stops while its database is down, after a provider has rotated tokens', () => {
  const fixtures = useFixtures();
  const DATA_DIR = fixtures.folder();
  const { database } = usePostgres(fixtures);
  const { proxy, proxied } = useSilentProxy(fixtures, database);
  const world = fixtures.start(() => startLoginWorld({ env: { ...database.env, TRUSTED_PROXIES: '1' } }));

  /** Returns the tokens of a new login whose provider token expires immediately. */
  const logIn = async (token_mode: string) => {
    const slug = await world.createServer({}, { token_mode });
    const client = await world.registerClient(slug);
    return { slug, client, ...(await world.getTokens(client)) };
  };

  for (const mode of ['issued', 'passthrough'])
    it(`[find C5] reports how many logins are lost and exits with 1 (${mode})`, async (t) => {
      world.provider.onToken((form) => {
        const { body } = world.provider.createTokenResponse(form);
        return { body: { ...(body as object), expires_in: 1 } };
      });
      const { slug, client, access_token, refresh_token } = await logIn(mode);
      const EGRESS_ALLOW = [...world.provider.ports, world.upstream.port].map((port) => `127.0.0.1:${port}`).join();
      const child = await startChildToolhost({ ...proxied.env, TRUSTED_PROXIES: '1', EGRESS_ALLOW, DATA_DIR });
      t.after(() => child.end('SIGKILL'));
      const clientOfSecondProcess = clientWithId(client.id, { issuer: `${child.url}/mcp/${slug}` });
      world.provider.takeTokenRequests();
      const heldRequest = world.provider.waitForTokenRequest();
      world.provider.onToken(() => 'hold');
      const refreshed =
        mode === 'issued'
          ? freshCall(child.url, slug, { key: access_token, tool: 'run' })
          : clientOfSecondProcess.refresh(refresh_token, { resource: undefined });
      const request = await heldRequest;
      proxy.cut();
      request.release(world.provider.createTokenResponse(new URLSearchParams(request.body.toString())));
      assert.equal((await refreshed).status, mode === 'issued' ? 200 : 503);
      assert.equal(await child.end('SIGTERM'), 1, child.output());
      assert.match(child.output(), /"logins":1,.*refreshed tokens of logins were lost; their users must log in again/);
      proxy.heal();
    });
});
