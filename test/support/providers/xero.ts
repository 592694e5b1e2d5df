import assert from 'node:assert/strict';
import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29: https://developer.xero.com/documentation/oauth2/auth-flow
 * A token may be for several organizations, which /connections lists; each call names one in Xero-Tenant-Id.
 */
export function createXero(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-xero',
    authorization: { scope: 'openid profile email accounting.transactions offline_access' },
    clientAuth: 'basic',
    tokenType: 'form',
    response: ({ access, refresh, scope }) => ({
      access_token: access,
      expires_in: 1800,
      token_type: 'Bearer',
      refresh_token: refresh,
      scope,
    }),
  });
  const connections = createPaths({
    'GET /connections': ({ headers }) => {
      const account = oauth.findAccount(headers.authorization?.replace('Bearer ', ''));
      if (!account) return { status: 401, body: { title: 'Unauthorized' } };
      const connect = (tenantId: string, tenantName: string) => ({
        id: tenantId,
        tenantId,
        tenantType: 'ORGANISATION',
        tenantName,
      });
      return { body: [connect('other-tenant', 'Demo Company'), connect(account.data.tenant ?? '', account.name)] };
    },
    'GET /api.xro/2.0/Invoices': createApi(oauth, (account, { headers }) =>
      assert.equal(headers['xero-tenant-id'], account.data.tenant),
    ),
  });
  return {
    file: 'xero',
    oauth,
    sites: {
      'login.xero.com': createPaths({ 'GET /identity/connect/authorize': oauth.authorize }),
      'identity.xero.com': createPaths({ 'POST /connect/token': oauth.issue }),
      'api.xero.com': connections,
    },
    accounts: createAccounts(
      { tenant: '45e4708e-d862-4111-ab3a-dd8cd03913e1' },
      { tenant: '9a8b7c6d-0000-4111-ab3a-000000000002' },
    ),
    call: ['list_invoices', {}],
    hasRefreshTokens: true,
    getChoice: ({ name }) => name,
  };
}
