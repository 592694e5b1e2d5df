import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29: https://developers.figma.com/docs/rest-api/authentication
 * Another URL refreshes tokens, and returns no refresh token. Unproven: the stored copy of that page does not show the
 * requests of the token endpoints.
 */
export function createFigma(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-figma',
    authorization: { scope: 'file_content:read current_user:read' },
    clientAuth: 'basic',
    tokenType: 'form',
    response: ({ access, refresh, isRefresh }) => ({
      user_id_string: '1234567890',
      access_token: access,
      token_type: 'bearer',
      expires_in: 7_776_000,
      ...(!isRefresh && { refresh_token: refresh }),
    }),
    keepsRefreshTokens: true,
    refreshPath: '/v1/oauth/refresh',
  });
  return {
    file: 'figma',
    oauth,
    sites: {
      'www.figma.com': createPaths({ 'GET /oauth': oauth.authorize }),
      'api.figma.com': createPaths({
        'POST /v1/oauth/token': oauth.issue,
        'POST /v1/oauth/refresh': oauth.issue,
        'GET /v1/me': createApi(oauth),
      }),
    },
    accounts: createAccounts({}, {}),
    call: ['get_me', {}],
    hasRefreshTokens: true,
  };
}
