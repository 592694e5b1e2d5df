import assert from 'node:assert/strict';
import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29:
 * https://www.zoho.com/accounts/protocol/oauth/multi-dc/client-authorization.html
 * https://www.zoho.com/crm/developer/docs/api/multi-dc.html
 * The callback names the accounts server of the person's region, which issues and refreshes their tokens. Errors have
 * the status 200. The API expects the scheme Zoho-oauthtoken.
 */
export function createZoho(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-zoho-crm',
    authorization: { access_type: 'offline', prompt: 'consent', scope: 'ZohoCRM.modules.leads.READ' },
    callback: ({ data }) => ({ location: data.region ?? '', 'accounts-server': data.accounts ?? '' }),
    clientAuth: 'body',
    tokenType: 'form',
    response: ({ account, access, refresh, isRefresh }) => ({
      access_token: access,
      ...(!isRefresh && { refresh_token: refresh }),
      api_domain: account.data.api,
      token_type: 'Bearer',
      expires_in: 3600,
    }),
    refusal: { body: { error: 'invalid_code' } },
    keepsRefreshTokens: true,
    checkAccount: (account, { url }) => assert.equal(url.origin, account.data.accounts),
  });
  const accounts = createPaths({ 'GET /oauth/v2/auth': oauth.authorize, 'POST /oauth/v2/token': oauth.issue });
  const api = createPaths({
    'GET /crm/v8/Leads': createApi(oauth, (account, { url }) => assert.equal(url.origin, account.data.api), {
      prefix: 'Zoho-oauthtoken ',
    }),
  });
  return {
    file: 'zoho-crm',
    oauth,
    sites: {
      'accounts.zoho.com': accounts,
      'accounts.zoho.eu': accounts,
      'www.zohoapis.com': api,
      'www.zohoapis.eu': api,
    },
    accounts: createAccounts(
      { region: 'us', accounts: 'https://accounts.zoho.com', api: 'https://www.zohoapis.com' },
      { region: 'eu', accounts: 'https://accounts.zoho.eu', api: 'https://www.zohoapis.eu' },
    ),
    call: ['list_leads', {}],
    hasRefreshTokens: true,
  };
}
