import assert from 'node:assert/strict';
import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29:
 * https://developer.zendesk.com/api-reference/ticketing/oauth/grant_type_tokens/
 * https://developer.zendesk.com/documentation/api-basics/authentication/refresh-token
 * All endpoints are on the host of the account. The token endpoint reads JSON, with the scope.
 */
export function createZendesk(): ProviderStub {
  const originOf = (subdomain = '') => `https://${subdomain}.zendesk.com`;
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-zendesk',
    authorization: { scope: 'read' },
    clientAuth: 'body',
    tokenType: 'json',
    fields: () => ({ scope: 'read' }),
    response: ({ access, refresh, scope }) => ({
      access_token: access,
      refresh_token: refresh,
      token_type: 'bearer',
      scope,
      expires_in: 1800,
      refresh_token_expires_in: 7_776_000,
    }),
    checkAccount: ({ data }, { url }) => assert.equal(url.origin, originOf(data.subdomain)),
  });
  return {
    file: 'zendesk',
    oauth,
    sites: {
      '*.zendesk.com': createPaths({
        'GET /oauth/authorizations/new': oauth.authorize,
        'POST /oauth/tokens': oauth.issue,
        'GET /api/v2/tickets.json': createApi(oauth, ({ data }, { url }) =>
          assert.equal(url.origin, originOf(data.subdomain)),
        ),
      }),
    },
    accounts: createAccounts({ subdomain: 'acme' }, { subdomain: 'globex-support' }),
    call: ['list_tickets', {}],
    hasRefreshTokens: true,
    getFields: ({ data }) => ({ 'field.subdomain': data.subdomain ?? '' }),
  };
}
