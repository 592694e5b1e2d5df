import assert from 'node:assert/strict';
import { createApi, createOAuthSite, createPaths } from './oauth-site.ts';
import { createAccounts, type ProviderStub } from './provider-stub.ts';

/**
 * Documentation, excerpts read 2026-11-29: https://github.com/basecamp/api/blob/master/sections/authentication.md
 * The query of the token endpoint says which request it is: type=web_server or type=refresh. authorization.json lists
 * the accounts of a person, also those of other products.
 */
export function createBasecamp(): ProviderStub {
  const oauth = createOAuthSite({
    clientId: 'YOUR-CLIENT-ID',
    clientSecret: 'secret-of-basecamp',
    authorization: { type: 'web_server' },
    clientAuth: 'body',
    tokenType: 'form',
    response: ({ access, refresh, isRefresh }) => ({
      access_token: access,
      expires_in: 1_209_600,
      ...(!isRefresh && { refresh_token: refresh }),
    }),
    keepsRefreshTokens: true,
    checkRequest: ({ url }, isRefresh) =>
      assert.equal(url.searchParams.get('type'), isRefresh ? 'refresh' : 'web_server'),
  });
  return {
    file: 'basecamp',
    oauth,
    sites: {
      'launchpad.37signals.com': createPaths({
        'GET /authorization/new': oauth.authorize,
        'POST /authorization/token': oauth.issue,
        'GET /authorization.json': ({ headers }) => {
          const account = oauth.findAccount(headers.authorization?.replace('Bearer ', ''));
          if (!account) return { status: 401, body: { error: 'unauthorized' } };
          const list = (product: string, id: number, name: string, host: string) => ({
            ...{ product, id, name },
            href: `https://${host}/${id}`,
            app_href: `https://${product}.example/${id}`,
          });
          const accounts = [
            list('bc3', 88_888_888, 'Sandbox', '3.basecampapi.com'),
            list('campfire', 44_444_444, 'Chat', 'acme4444444.campfirenow.com'),
            list('bc3', Number(account.data.id), account.name, '3.basecampapi.com'),
          ];
          return { body: { expires_at: '2027-03-22T16:56:48-05:00', identity: { id: 9_999_999 }, accounts } };
        },
      }),
      '3.basecampapi.com': createPaths({
        'GET /*/projects.json': createApi(oauth, ({ data }, { url, headers }) => {
          assert.equal(url.pathname, `/${data.id}/projects.json`);
          assert.ok(headers['user-agent']);
        }),
      }),
    },
    accounts: createAccounts({ id: '99999999' }, { id: '77777777' }),
    call: ['list_projects', {}],
    hasRefreshTokens: true,
    getChoice: ({ name }) => name,
  };
}
