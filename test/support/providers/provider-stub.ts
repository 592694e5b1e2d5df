import type { Site } from './internet.ts';
import type { Account, OAuthSite } from './oauth-site.ts';

/** A provider and its API, built from public documentation. */
export type ProviderStub = {
  /** Server file in examples/logins, without extension. */
  file: string;
  sites: Record<string, Site>;
  oauth: OAuthSite;
  /** Two people of different organizations. */
  accounts: readonly [Account, Account];
  /** Tool of the file, and arguments for it. */
  call: [tool: string, args: object];
  hasRefreshTokens: boolean;
  /** Values that the person enters before the login. */
  getFields?: (account: Account) => Record<string, string>;
  /** Name of the account that the person chooses after the login. */
  getChoice?: (account: Account) => string;
};

export function createAccounts(
  first: Record<string, string>,
  second: Record<string, string>,
): readonly [Account, Account] {
  return [
    { name: 'acme', data: first },
    { name: 'globex', data: second },
  ];
}
