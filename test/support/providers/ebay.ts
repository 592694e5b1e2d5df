import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29:
 * https://developer.ebay.com/api-docs/static/oauth-auth-code-grant-request.html
 * https://developer.ebay.com/api-docs/static/oauth-redirect-uri.html
 * redirect_uri is a name (RuName) that eBay assigns. A refresh returns no refresh token.
 */
export function createEbay(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-ebay',
    authorization: { scope: 'https://api.ebay.com/oauth/api_scope/sell.fulfillment.readonly' },
    redirectName: 'YOUR-RUNAME',
    callback: () => ({ expires_in: '299' }),
    clientAuth: 'basic',
    tokenType: 'form',
    response: ({ access, refresh, isRefresh }) => ({
      access_token: access,
      expires_in: 7200,
      token_type: 'User Access Token',
      ...(!isRefresh && { refresh_token: refresh, refresh_token_expires_in: 47_304_000 }),
    }),
    keepsRefreshTokens: true,
  });
  return {
    file: 'ebay',
    oauth,
    sites: {
      'auth.ebay.com': createPaths({ 'GET /oauth2/authorize': oauth.authorize }),
      'api.ebay.com': createPaths({
        'POST /identity/v1/oauth2/token': oauth.issue,
        'GET /sell/fulfillment/v1/order': createApi(oauth),
      }),
    },
    accounts: createAccounts({}, {}),
    call: ['list_orders', {}],
    hasRefreshTokens: true,
  };
}
