import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29:
 * https://developer-docs.amazon.com/sp-api/docs/onboarding-step-6-set-up-the-authorization-workflow
 * https://developer-docs.amazon.com/sp-api/docs/authorize-public-applications
 * The authorization request has application_id, the callback spapi_oauth_code, and the API a header of its own.
 */
export function createAmazon(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-LWA-CLIENT-ID',
    clientSecret: 'secret-of-amazon-sp',
    authorization: { application_id: 'YOUR-APPLICATION-ID' },
    callback: ({ name }) => ({ selling_partner_id: name }),
    codeParameter: 'spapi_oauth_code',
    clientAuth: 'body',
    tokenType: 'form',
    response: ({ access, refresh }) => ({
      access_token: access,
      token_type: 'bearer',
      expires_in: 3600,
      refresh_token: refresh,
    }),
    keepsRefreshTokens: true,
  });
  return {
    file: 'amazon-sp',
    oauth,
    sites: {
      'sellercentral.amazon.com': createPaths({ 'GET /apps/authorize/consent': oauth.authorize }),
      'api.amazon.com': createPaths({ 'POST /auth/o2/token': oauth.issue }),
      'sellingpartnerapi-na.amazon.com': createPaths({
        'GET /sellers/v1/marketplaceParticipations': createApi(oauth, undefined, {
          header: 'x-amz-access-token',
          prefix: '',
        }),
      }),
    },
    accounts: createAccounts({}, {}),
    call: ['list_marketplaces', {}],
    hasRefreshTokens: true,
  };
}
