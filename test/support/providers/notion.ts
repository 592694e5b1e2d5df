import assert from 'node:assert/strict';
import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29:
 * https://developers.notion.com/reference/create-a-token
 * https://developers.notion.com/reference/refresh-a-token
 * The token endpoint reads JSON and Basic credentials. Its response names no lifetime.
 */
export function createNotion(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-notion',
    authorization: { owner: 'user' },
    clientAuth: 'basic',
    tokenType: 'json',
    response: ({ account, access, refresh }) => ({
      access_token: access,
      token_type: 'bearer',
      refresh_token: refresh,
      bot_id: '3c90c3cc-0d44-4b50-8888-8dd25736052a',
      workspace_name: account.name,
      workspace_id: '3c90c3cc-0d44-4b50-8888-8dd25736052b',
      owner: { type: 'user', user: { object: 'user', id: 'user-1' } },
    }),
  });
  return {
    file: 'notion',
    oauth,
    sites: {
      'api.notion.com': createPaths({
        'GET /v1/oauth/authorize': oauth.authorize,
        'POST /v1/oauth/token': oauth.issue,
        'POST /v1/search': createApi(oauth, (_, { headers }) => assert.equal(headers['notion-version'], '2022-06-28')),
      }),
    },
    accounts: createAccounts({}, {}),
    call: ['search', { query: 'plan' }],
    hasRefreshTokens: true,
  };
}
