import assert from 'node:assert/strict';
import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, read 2026-11-30:
 * https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow
 * All endpoints of a tenant have its id in their path. A refresh token is returned for `offline_access` and stays valid
 * after a refresh, which returns another one.
 */
export function createEntra(): ProviderStub {
  const scope = 'offline_access https://graph.microsoft.com/User.Read';
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-entra',
    authorization: { scope },
    clientAuth: 'body',
    tokenType: 'form',
    response: ({ access, refresh }) => ({
      access_token: access,
      token_type: 'Bearer',
      expires_in: 3599,
      scope: 'https://graph.microsoft.com/User.Read',
      refresh_token: refresh,
    }),
    keepsRefreshTokens: true,
    checkAccount: ({ data }, { url }) => assert.equal(url.pathname.split('/')[1], data.tenant),
  });
  return {
    file: 'entra',
    oauth,
    sites: {
      'login.microsoftonline.com': createPaths({
        'GET /*/oauth2/v2.0/authorize': oauth.authorize,
        'POST /*/oauth2/v2.0/token': oauth.issue,
      }),
      'graph.microsoft.com': createPaths({ 'GET /v1.0/me': createApi(oauth) }),
    },
    accounts: createAccounts(
      { tenant: '8eaef023-2b34-4da1-9baa-8bc8c9d6a490' },
      { tenant: '3f2504e0-4f89-41d3-9a0c-0305e82c3301' },
    ),
    call: ['get_me', {}],
    hasRefreshTokens: true,
    getFields: ({ data }) => ({ 'field.tenant': data.tenant ?? '' }),
  };
}
