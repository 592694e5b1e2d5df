import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29:
 * https://id.vk.com/about/business/go/docs/ru/vkid/latest/vk-id/connection/api-integration/api-description
 * A public client with PKCE. The callback names a device, which the token request and every refresh repeat, with a state.
 */
export function createVk(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-APP-ID',
    clientSecret: undefined,
    authorization: { scope: 'vkid.personal_info' },
    pkce: 'required',
    callback: ({ data }) => ({ device_id: data.device ?? '', type: 'code_v2', expires_in: '600', ext_id: 'ext' }),
    clientAuth: 'none',
    tokenType: 'form',
    fields: ({ data }) => ({ device_id: data.device ?? '' }),
    requiredFields: ['state'],
    response: ({ access, refresh, scope, fields }) => ({
      refresh_token: refresh,
      access_token: access,
      id_token: 'e30.e30.',
      token_type: 'Bearer',
      expires_in: 3600,
      user_id: 1_234_567_890,
      state: fields.state,
      scope,
    }),
  });
  return {
    file: 'vk',
    oauth,
    sites: {
      'id.vk.com': createPaths({ 'GET /authorize': oauth.authorize, 'POST /oauth2/auth': oauth.issue }),
      'api.vk.com': createPaths({ 'GET /method/users.get': createApi(oauth) }),
    },
    accounts: createAccounts({ device: 'device-of-acme' }, { device: 'device-of-globex' }),
    call: ['get_me', {}],
    hasRefreshTokens: true,
  };
}
