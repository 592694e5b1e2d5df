import assert from 'node:assert/strict';
import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29:
 * https://help.salesforce.com/s/articleView?id=xcloud.remoteaccess_oauth_web_server_flow.htm (web server flow)
 * https://developer.salesforce.com/docs/atlas.en-us.chatterapi.meta/chatterapi/intro_oauth_tokens.htm (refresh)
 * A token response names the host of the organization, and no lifetime.
 */
export function createSalesforce(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-salesforce',
    authorization: { scope: 'api refresh_token' },
    clientAuth: 'body',
    tokenType: 'form',
    response: ({ account, access, refresh, scope, isRefresh }) => ({
      access_token: access,
      instance_url: account.data.instance,
      id: 'https://login.salesforce.com/id/00Dx0000000BV7z/005x00000012Q9P',
      token_type: 'Bearer',
      issued_at: '1278448101416',
      signature: 'signature',
      scope,
      // A refresh token does not rotate, so a refresh returns none.
      ...(!isRefresh && { refresh_token: refresh }),
    }),
    keepsRefreshTokens: true,
  });
  const api = createApi(oauth, (account, { url }) => assert.equal(url.origin, account.data.instance));
  return {
    file: 'salesforce',
    oauth,
    sites: {
      'login.salesforce.com': createPaths({
        'GET /services/oauth2/authorize': oauth.authorize,
        'POST /services/oauth2/token': oauth.issue,
      }),
      '*.my.salesforce.com': createPaths({ 'GET /services/data/v64.0/query': api }),
    },
    accounts: createAccounts(
      { instance: 'https://acme.my.salesforce.com' },
      { instance: 'https://globex.my.salesforce.com' },
    ),
    call: ['query', { q: 'SELECT Id FROM Account' }],
    hasRefreshTokens: true,
  };
}
