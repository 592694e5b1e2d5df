import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29:
 * https://developer.apple.com/documentation/signinwithapplejs/incorporating_sign_in_with_apple_into_other_platforms
 * With the scopes name and email, Apple returns with a form. Apple has no API, so the tool calls one of the example.
 */
export function createApple(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'com.example.service',
    clientSecret: 'secret-of-apple',
    authorization: { response_mode: 'form_post', scope: 'name email' },
    callback: ({ name }) => ({ user: JSON.stringify({ name: { firstName: name, lastName: 'Example' } }) }),
    returnsForm: true,
    clientAuth: 'body',
    tokenType: 'form',
    response: ({ access, refresh, isRefresh }) => ({
      access_token: access,
      token_type: 'Bearer',
      expires_in: 3600,
      id_token: 'e30.e30.',
      ...(!isRefresh && { refresh_token: refresh }),
    }),
    keepsRefreshTokens: true,
  });
  return {
    file: 'apple',
    oauth,
    sites: {
      'appleid.apple.com': createPaths({ 'GET /auth/authorize': oauth.authorize, 'POST /auth/token': oauth.issue }),
      'api.example.com': createPaths({ 'GET /me': createApi(oauth) }),
    },
    accounts: createAccounts({}, {}),
    call: ['get_me', {}],
    hasRefreshTokens: true,
  };
}
