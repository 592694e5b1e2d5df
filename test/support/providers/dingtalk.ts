import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29: https://help.dingtalk.io/open/development/obtain-user-token
 * The callback has authCode. The token endpoint reads JSON, and all names are in camel case. The document lists no
 * redirect_uri for the token request.
 */
export function createDingtalk(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-APP-KEY',
    clientSecret: 'secret-of-dingtalk',
    authorization: { scope: 'openid', prompt: 'consent' },
    codeParameter: 'authCode',
    clientAuth: 'body',
    tokenType: 'json',
    names: {
      client_id: 'clientId',
      client_secret: 'clientSecret',
      grant_type: 'grantType',
      refresh_token: 'refreshToken',
    },
    ignoresRedirect: true,
    response: ({ access, refresh }) => ({ accessToken: access, refreshToken: refresh, expireIn: 7200, corpId: 'corp' }),
    refusal: { status: 400, body: { code: 'invalidParameter.authCode.notFound', message: 'the code does not exist' } },
  });
  return {
    file: 'dingtalk',
    oauth,
    sites: {
      'login.dingtalk.com': createPaths({ 'GET /oauth2/auth': oauth.authorize }),
      'api.dingtalk.com': createPaths({
        'POST /v1.0/oauth2/userAccessToken': oauth.issue,
        'GET /v1.0/contact/users/me': createApi(oauth, undefined, {
          header: 'x-acs-dingtalk-access-token',
          prefix: '',
        }),
      }),
    },
    accounts: createAccounts({}, {}),
    call: ['get_me', {}],
    hasRefreshTokens: true,
  };
}
