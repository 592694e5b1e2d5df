import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29: https://yandex.ru/dev/id/doc/en/tokens/refresh-client
 * The API expects the scheme OAuth.
 */
export function createYandex(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-yandex-disk',
    authorization: { scope: 'cloud_api:disk.read' },
    clientAuth: 'body',
    tokenType: 'form',
    response: ({ access, refresh }) => ({
      token_type: 'bearer',
      access_token: access,
      expires_in: 31_536_000,
      refresh_token: refresh,
    }),
  });
  return {
    file: 'yandex-disk',
    oauth,
    sites: {
      'oauth.yandex.ru': createPaths({ 'GET /authorize': oauth.authorize, 'POST /token': oauth.issue }),
      'cloud-api.yandex.net': createPaths({
        'GET /v1/disk/resources': createApi(oauth, undefined, { prefix: 'OAuth ' }),
      }),
    },
    accounts: createAccounts({}, {}),
    call: ['list_files', {}],
    hasRefreshTokens: true,
  };
}
