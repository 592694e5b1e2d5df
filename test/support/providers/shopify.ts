import assert from 'node:assert/strict';
import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29:
 * https://shopify.dev/docs/apps/build/authentication-authorization/authenticate-standalone-apps
 * https://shopify.dev/changelog/offline-access-tokens-now-support-expiry-and-refresh
 * All endpoints are on the host of the shop. Tokens expire, and have a refresh token, if the request says expiring=1.
 */
export function createShopify(): ProviderStub {
  const hostOf = (shop = '') => `${shop}.myshopify.com`;
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-shopify',
    authorization: { scope: 'read_products,read_orders' },
    callback: ({ data }) => ({ hmac: 'hmac', host: 'aG9zdA', shop: hostOf(data.shop), timestamp: '1700000000' }),
    clientAuth: 'body',
    tokenType: 'form',
    fields: () => ({ expiring: '1' }),
    ignoresRedirect: true,
    response: ({ access, refresh, scope }) => ({
      access_token: access,
      scope,
      expires_in: 3600,
      refresh_token: refresh,
      refresh_token_expires_in: 7_776_000,
    }),
    checkAccount: ({ data }, { url }) => assert.equal(url.host, hostOf(data.shop)),
  });
  const api = createApi(oauth, ({ data }, { url }) => assert.equal(url.host, hostOf(data.shop)), {
    header: 'x-shopify-access-token',
    prefix: '',
  });
  return {
    file: 'shopify',
    oauth,
    sites: {
      '*.myshopify.com': createPaths({
        'GET /admin/oauth/authorize': oauth.authorize,
        'POST /admin/oauth/access_token': oauth.issue,
        'POST /admin/api/2026-07/graphql.json': api,
      }),
    },
    accounts: createAccounts({ shop: 'acme-store' }, { shop: 'globex' }),
    call: ['query', { query: '{ shop { name } }' }],
    hasRefreshTokens: true,
    getFields: ({ data }) => ({ 'field.shop': data.shop ?? '' }),
  };
}
