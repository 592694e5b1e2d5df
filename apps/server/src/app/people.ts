import type { Random } from '@toolhost/credentials/ids';
import { localAccount } from '../local/identity.ts';
import type { Identity, IdentityProvider } from '../manage/identity.ts';
import { applyGroupRoles, savePerson } from '../manage/people.ts';
import { durations } from '../oauth/oauth-deps.ts';
import { type People, type PeopleServer, type StoredIdentity, selectGroups } from '../oauth/people.ts';
import { routes } from '../routes.ts';
import type { Db } from '../store/db.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import { findRole } from '../store/people/users.ts';
import type { FullConfig } from './full-config.ts';

type PeopleDeps = {
  config: FullConfig;
  identity: IdentityProvider;
  db: Db;
  random: Random;
  now: () => number;
  welcomePerson: (person: Identity) => Promise<{ userId: string }>;
};

/** Creates the identification of people at hosted servers, with the identity provider of the dashboard. */
export function createPeople({ config, identity, db, random, now, welcomePerson }: PeopleDeps): People {
  const redirectUri = config.baseUrl + routes.loginCallback;

  async function toStoredIdentity(userId: string, person: Identity, server: PeopleServer): Promise<StoredIdentity> {
    const { issuer, subject, email, name, groups, refreshToken } = person;
    return {
      userId,
      issuer,
      subject,
      email,
      name,
      groups: selectGroups(server.login.rules, groups),
      isMember: (await findRole(db, userId, server.workspaceId)) !== undefined,
      refreshToken,
      expiresAt: now() + (refreshToken === undefined ? durations.uncheckedLogin : config.identityCheckMs),
    };
  }

  let localUserId: Promise<string> | undefined;

  async function findLocalPerson(server: PeopleServer): Promise<StoredIdentity> {
    const { issuer } = await config.identity.find();
    const { sub: subject, email, name } = localAccount;
    const person: Identity = { issuer, subject, email, name, groups: [], refreshToken: undefined };
    localUserId ??= welcomePerson(person)
      .then(({ userId }) => userId)
      .catch((error: unknown) => {
        localUserId = undefined;
        throw error;
      });
    return { ...(await toStoredIdentity(await localUserId, person, server)), isMember: true };
  }

  return {
    host: identity.host,
    findLocalPerson: config.identity.isBuiltIn ? findLocalPerson : undefined,
    buildSignInUrl: (secrets) => identity.authorizationUrl(secrets, redirectUri, { offline: true }),
    async identify(parameters, secrets, server) {
      const returned = new URL(redirectUri);
      returned.search = parameters.toString();
      const person = await identity.identify(returned, secrets);
      const userId = await transact(db, (transaction) => savePerson(person, { db: transaction, random, now }));
      return toStoredIdentity(userId, person, server);
    },
    isCheckDue: ({ expiresAt, refreshToken }) =>
      refreshToken !== undefined && expiresAt - now() < config.identityCheckMs / 2,
    async check(previous, server) {
      const person = await identity.check(previous.refreshToken ?? '', previous);
      const { userId } = previous;
      await transact(db, (transaction) =>
        applyGroupRoles({ userId, groups: person.groups }, { db: transaction, random, now }),
      );
      return toStoredIdentity(userId, person, server);
    },
  };
}
