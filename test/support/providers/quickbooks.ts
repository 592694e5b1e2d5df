import assert from 'node:assert/strict';
import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29:
 * https://developer.intuit.com/app/developer/qbo/docs/develop/authentication-and-authorization/oauth-2.0
 * The callback names the company (realmId). The client authenticates with Basic.
 */
export function createQuickbooks(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-quickbooks',
    authorization: { scope: 'com.intuit.quickbooks.accounting' },
    callback: ({ data }) => ({ realmId: data.realm ?? '' }),
    clientAuth: 'basic',
    tokenType: 'form',
    response: ({ access, refresh }) => ({
      token_type: 'bearer',
      expires_in: 3600,
      refresh_token: refresh,
      x_refresh_token_expires_in: 8_726_400,
      access_token: access,
    }),
  });
  const api = createApi(oauth, (account, { url }) =>
    assert.equal(url.pathname, `/v3/company/${account.data.realm}/query`),
  );
  return {
    file: 'quickbooks',
    oauth,
    sites: {
      'appcenter.intuit.com': createPaths({ 'GET /connect/oauth2': oauth.authorize }),
      'oauth.platform.intuit.com': createPaths({ 'POST /oauth2/v1/tokens/bearer': oauth.issue }),
      'quickbooks.api.intuit.com': createPaths({ 'GET /v3/company/*/query': api }),
    },
    accounts: createAccounts({ realm: '4620816365291234567' }, { realm: '123145912345678' }),
    call: ['query', { query: 'select * from Customer' }],
    hasRefreshTokens: true,
  };
}
