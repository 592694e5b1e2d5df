import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29:
 * https://open.feishu.cn/document/uAjLw4CM/ukTMukTMukTM/authentication-management/access-token/get-user-access-token.md
 * The token endpoint reads JSON, and answers with code 0.
 */
export function createFeishu(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-APP-ID',
    clientSecret: 'secret-of-feishu',
    authorization: { scope: 'contact:contact.base:readonly offline_access' },
    clientAuth: 'body',
    tokenType: 'json',
    response: ({ access, refresh, scope }) => ({
      code: 0,
      access_token: access,
      expires_in: 7200,
      refresh_token: refresh,
      refresh_token_expires_in: 604_800,
      token_type: 'Bearer',
      scope,
    }),
    refusal: { status: 400, body: { code: 20_003, error: 'invalid_grant', error_description: 'The code is invalid.' } },
  });
  return {
    file: 'feishu',
    oauth,
    sites: {
      'accounts.feishu.cn': createPaths({ 'GET /open-apis/authen/v1/authorize': oauth.authorize }),
      'open.feishu.cn': createPaths({
        'POST /open-apis/authen/v2/oauth/token': oauth.issue,
        'GET /open-apis/authen/v1/user_info': createApi(oauth),
      }),
    },
    accounts: createAccounts({}, {}),
    call: ['get_me', {}],
    hasRefreshTokens: true,
  };
}
