import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import * as oidc from 'openid-client';
import { getNextUrl } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';

const redirectUri = 'https://agent.example/callback';

/** Authentication of the library, by the method that it registers with. */
const authentications = { client_secret_basic: oidc.ClientSecretBasic, client_secret_post: oidc.ClientSecretPost };

describe('openid-client library', async () => {
  const world = await startLoginWorld();
  after(() => world.stop());

  for (const [token_endpoint_auth_method, authentication] of Object.entries(authentications))
    it(`[mcp 61] [mcp 54] registers, logs in, refreshes, and revokes with ${token_endpoint_auth_method}`, async () => {
      const slug = await world.createServer();
      const resource = world.issuer(slug);
      const metadata = { client_name: 'Test agent', redirect_uris: [redirectUri], token_endpoint_auth_method };
      const client = await oidc.dynamicClientRegistration(new URL(resource), metadata, authentication(), {
        algorithm: 'oauth2',
        execute: [oidc.allowInsecureRequests],
      });
      const [pkceCodeVerifier, expectedState] = [oidc.randomPKCECodeVerifier(), oidc.randomState()];
      const url = oidc.buildAuthorizationUrl(client, {
        redirect_uri: redirectUri,
        code_challenge: await oidc.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: 'S256',
        state: expectedState,
        resource,
      });
      const authorization = { url, verifier: pkceCodeVerifier, state: expectedState };
      const callback = getNextUrl(await world.returnFromProvider(authorization));
      const first = await oidc.authorizationCodeGrant(
        client,
        callback,
        { pkceCodeVerifier, expectedState },
        { resource },
      );
      assert.equal((await world.listTools(slug, first.access_token)).status, 200);

      const second = await oidc.refreshTokenGrant(client, first.refresh_token ?? assert.fail(), { resource });
      assert.equal((await world.listTools(slug, second.access_token)).status, 200);

      await oidc.tokenRevocation(client, second.refresh_token ?? assert.fail());
      assert.equal((await world.listTools(slug, second.access_token)).status, 401);
    });
});
