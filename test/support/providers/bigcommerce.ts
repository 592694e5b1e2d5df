import assert from 'node:assert/strict';
import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29: https://docs.bigcommerce.com/developer/docs/integrations/apps/guide/auth
 * The callback and the token response name the store as context=stores/HASH, and the token request repeats context and
 * scope. Tokens do not expire. Unproven: that document describes no authorization request with a state, because an
 * installation begins in the control panel of the store.
 */
export function createBigcommerce(): ProviderStub {
  const contextOf = (store = '') => `stores/${store}`;
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-bigcommerce',
    callback: ({ data }) => ({
      scope: 'store_v2_products_read_only',
      context: contextOf(data.store),
      account_uuid: 'uuid',
    }),
    clientAuth: 'body',
    tokenType: 'form',
    fields: ({ data }) => ({ context: contextOf(data.store), scope: 'store_v2_products_read_only' }),
    response: ({ account, access }) => ({
      access_token: access,
      scope: 'store_v2_products_read_only',
      user: { id: 24_654, username: 'merchant@example.com', email: 'merchant@example.com' },
      context: contextOf(account.data.store),
      account_uuid: 'uuid',
    }),
  });
  return {
    file: 'bigcommerce',
    oauth,
    sites: {
      'login.bigcommerce.com': createPaths({
        'GET /oauth2/authorize': oauth.authorize,
        'POST /oauth2/token': oauth.issue,
      }),
      'api.bigcommerce.com': createPaths({
        'GET /stores/*/v3/catalog/products': createApi(
          oauth,
          ({ data }, { url }) => assert.equal(url.pathname, `/stores/${data.store}/v3/catalog/products`),
          { header: 'x-auth-token', prefix: '' },
        ),
      }),
    },
    accounts: createAccounts({ store: 'g5cd38' }, { store: 'abc123' }),
    call: ['list_products', {}],
    hasRefreshTokens: false,
  };
}
