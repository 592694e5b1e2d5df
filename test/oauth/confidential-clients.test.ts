import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, clientWithId, expectTokens, formatBasicAuth, post } from '../support/oauth/oauth-client.ts';
import type { Reply } from '../support/toolhost/toolhost.ts';

const methods = ['client_secret_basic', 'client_secret_post'] as const;

describe('confidential clients', async () => {
  const world = await startLoginWorld();
  const slug = await world.createServer();
  after(() => world.stop());

  const register = (more: object) =>
    post(`${world.issuer(slug)}/register`, { redirect_uris: ['https://callback.chat.example/oauth'], ...more });

  it('[mcp 61] [mcp 54] issues a secret to a client that registers for one, and to no other', async () => {
    for (const token_endpoint_auth_method of methods) {
      const { status, body } = await register({ token_endpoint_auth_method });
      assert.equal(status, 201);
      assert.match(String(body.client_secret), /^[\w-]{43}$/);
      assert.partialDeepStrictEqual(body, { token_endpoint_auth_method, client_secret_expires_at: 0 });
    }
    for (const token_endpoint_auth_method of ['none', 'private_key_jwt', 'CLIENT_SECRET_BASIC', null, undefined]) {
      const { status, body } = await register({ token_endpoint_auth_method });
      assert.deepEqual([status, body.token_endpoint_auth_method], [201, 'none']);
      assert.ok(!('client_secret' in body) && !('client_secret_expires_at' in body));
    }
  });

  for (const [index, authMethod] of methods.entries()) {
    const other = methods[index === 0 ? 1 : 0];
    it(`[mcp 61] logs in, refreshes, and revokes with ${authMethod}, and accepts ${other} from the same client`, async () => {
      const client = await world.registerClient(slug, { authMethod });
      const { access_token, refresh_token } = await world.getTokens(client);
      assert.equal((await world.listTools(slug, access_token)).status, 200);
      const next = expectTokens(await client.refresh(refresh_token));
      const sameClient = clientWithId(client.id, { issuer: world.issuer(slug), authMethod: other }, client.secret);
      const last = expectTokens(await sameClient.refresh(next.refresh_token));
      assert.equal((await client.revoke(last.access_token)).status, 200);
      assert.equal((await world.listTools(slug, last.access_token)).status, 401);
    });
  }

  it('[mcp 61] rejects codes and tokens of a confidential client without its secret, and the secret at another server', async () => {
    const client = await world.registerClient(slug, { authMethod: 'client_secret_post' });
    const another = await world.registerClient(slug, { authMethod: 'client_secret_post' });
    const { code, verifier } = await world.logIn(client);
    const { access_token, refresh_token } = await world.getTokens(client);
    for (const client_secret of [undefined, '', 'x', another.secret, client.id, `${client.secret}x`]) {
      assertOAuthError(await client.redeem(code, verifier, { client_secret }), 401, 'invalid_client');
      assertOAuthError(await client.refresh(refresh_token, { client_secret }), 401, 'invalid_client');
      assertOAuthError(await client.revoke(access_token, { client_secret }), 401, 'invalid_client');
    }
    const issuer = world.issuer(await world.createServer());
    const elsewhere = clientWithId(client.id, { issuer, authMethod: 'client_secret_basic' }, client.secret);
    assertOAuthError(await elsewhere.refresh('thr_x'), 401, 'invalid_client');
    assert.equal((await world.listTools(slug, access_token)).status, 200);
    expectTokens(await client.redeem(code, verifier));
  });

  it('[mcp 61] names Basic in the challenge after Basic, and Bearer otherwise, when it rejects a client (RFC 6749, 5.2)', async () => {
    const client = await world.registerClient(slug, { authMethod: 'client_secret_basic' });
    const redeem = (authorization: string | undefined, form: Record<string, string>): Promise<Reply> =>
      post(
        `${world.issuer(slug)}/token`,
        new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'thr_x', ...form }),
        authorization === undefined ? {} : { authorization },
      );
    const wrongSecrets = ['wrong', ''].map((secret) => formatBasicAuth(client.id, secret));
    for (const authorization of [...wrongSecrets, 'Basic', 'basic !', 'Basic YWJj']) {
      const refused = await redeem(authorization, {});
      assertOAuthError(refused, 401, 'invalid_client');
      assert.equal(refused.headers.get('www-authenticate'), 'Basic realm="Toolhost"', authorization);
    }
    const posted = await redeem(undefined, { client_id: client.id, client_secret: 'wrong' });
    assertOAuthError(posted, 401, 'invalid_client');
    assert.equal(posted.headers.get('www-authenticate'), 'Bearer');
  });

  it('[mcp 61] rejects credentials in two places, and accepts a client_id in the form that names the same client', async () => {
    const client = await world.registerClient(slug, { authMethod: 'client_secret_basic' });
    const { refresh_token } = await world.getTokens(client);
    for (const twice of [{ client_secret: client.secret }, { client_id: 'another' }])
      assertOAuthError(await client.refresh(refresh_token, twice), 400, 'invalid_request');
    expectTokens(await client.refresh(refresh_token, { client_id: client.id }));
  });

  it('[mcp 61] requires no secret from a public client, with or without Basic', async () => {
    const client = await world.registerClient(slug, { authMethod: 'none' });
    assert.equal(client.secret, undefined);
    const { refresh_token } = await world.getTokens(client);
    const basic = clientWithId(client.id, { issuer: world.issuer(slug), authMethod: 'client_secret_basic' }, '');
    const next = expectTokens(await basic.refresh(refresh_token));
    expectTokens(await client.refresh(next.refresh_token, { client_secret: '' }));
  });
});
