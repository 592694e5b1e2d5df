import assert from 'node:assert/strict';
import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29:
 * https://developer.atlassian.com/cloud/jira/platform/oauth-2-3lo-apps/
 * https://developer.atlassian.com/cloud/oauth/getting-started/making-calls-to-api/
 * A token is for all sites of the person, which accessible-resources lists. The token endpoint reads JSON.
 */
export function createAtlassian(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-jira',
    authorization: { audience: 'api.atlassian.com', prompt: 'consent', scope: 'read:jira-work offline_access' },
    clientAuth: 'body',
    tokenType: 'json',
    response: ({ access, refresh, scope }) => ({
      access_token: access,
      refresh_token: refresh,
      expires_in: 3600,
      scope,
      token_type: 'Bearer',
    }),
  });
  return {
    file: 'jira',
    oauth,
    sites: {
      'auth.atlassian.com': createPaths({ 'GET /authorize': oauth.authorize, 'POST /oauth/token': oauth.issue }),
      'api.atlassian.com': createPaths({
        'GET /oauth/token/accessible-resources': ({ headers }) => {
          const account = oauth.findAccount(headers.authorization?.replace('Bearer ', ''));
          if (!account) return { status: 401, body: { message: 'Unauthorized' } };
          const site = (id: string, name: string) => ({
            id,
            name,
            url: `https://${name}.atlassian.net`,
            scopes: [],
            avatarUrl: '',
          });
          return { body: [site('00000000-aaaa', 'sandbox'), site(account.data.cloud ?? '', account.name)] };
        },
        'GET /ex/jira/*/rest/api/3/search/jql': createApi(oauth, ({ data }, { url }) =>
          assert.equal(url.pathname, `/ex/jira/${data.cloud}/rest/api/3/search/jql`),
        ),
      }),
    },
    accounts: createAccounts(
      { cloud: '1324a887-45db-1bf4-1e99-ef0ff456d421' },
      { cloud: '1324a887-0000-1bf4-1e99-000000000002' },
    ),
    call: ['search_issues', { jql: 'project = DEMO' }],
    hasRefreshTokens: true,
    getChoice: ({ name }) => name,
  };
}
