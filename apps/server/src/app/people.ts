import type { Random } from '@toolhost/credentials/ids';
import { isUnavailableError } from '@toolhost/errors/errors';
import { createLocalPerson } from '../local/identity.ts';
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
  /** Returns the only person of local mode; undefined if an identity provider identifies people. */
  welcomeLocalPerson: (() => Promise<{ userId: string }>) | undefined;
};

/** Creates the identification of people at hosted servers, with the identity provider of the dashboard. */
export function createPeople({ config, identity, db, random, now, welcomeLocalPerson }: PeopleDeps): People {
  const redirectUri = config.baseUrl + routes.loginCallback;

  const toIdentity = (userId: string, person: Identity, { login }: PeopleServer, hasMembership: boolean) => {
    const ttlMs = person.refreshToken === undefined ? durations.uncheckedLogin : config.identityCheckMs;
    return toStoredIdentity(userId, person, { ...login, isMember: hasMembership, expiresAt: now() + ttlMs });
  };

  /** Returns true if a person is a member of the server's workspace. In local mode, the only person is. */
  async function isMember(userId: string, { workspaceId }: PeopleServer): Promise<boolean> {
    return config.identity.isBuiltIn || (await findRole(db, userId, workspaceId)) !== undefined;
  }

  let localUserId: Promise<string> | undefined;

  async function findLocalPerson(
    welcome: NonNullable<typeof welcomeLocalPerson>,
    server: PeopleServer,
  ): Promise<StoredIdentity> {
    localUserId ??= welcome()
      .then(({ userId }) => userId)
      .catch((error: unknown) => {
        localUserId = undefined;
        throw error;
      });
    return toIdentity(await localUserId, createLocalPerson(config.baseUrl), server, true);
  }

  return {
    host: identity.host,
    findLocalPerson: welcomeLocalPerson && ((server) => findLocalPerson(welcomeLocalPerson, server)),
    buildSignInUrl: (secrets) => identity.authorizationUrl(secrets, redirectUri, { offline: true }),
    async identify(parameters, secrets, server) {
      const returned = new URL(redirectUri);
      returned.search = parameters.toString();
      const person = await identity.identify(returned, secrets);
      const userId = await transact(db, async (transaction) => {
        const id = await savePerson(person, { db: transaction, random, now });
        await applyGroupRoles({ userId: id, groups: person.groups }, { db: transaction, random, now });
        return id;
      });
      return toIdentity(userId, person, server, await isMember(userId, server));
    },
    isCheckDue: ({ expiresAt, refreshToken }) =>
      refreshToken !== undefined && expiresAt - now() < config.identityCheckMs / 2,
    async check(previous, server) {
      const { person, refreshToken } = await identity.check(previous.refreshToken ?? '', previous);
      if (!person) return { ...previous, refreshToken };
      const { userId } = previous;
      try {
        await transact(db, (transaction) =>
          applyGroupRoles({ userId, groups: person.groups }, { db: transaction, random, now }),
        );
        return toIdentity(userId, person, server, await isMember(userId, server));
      } catch (error) {
        if (!isUnavailableError(error)) throw error;
        // The identity provider has replaced its refresh token, and this is the only copy. The next check repeats the
        // rest.
        return toIdentity(userId, person, server, previous.isMember);
      }
    },
    updateMembership: async (identity, server) => ({
      ...identity,
      isMember: await isMember(identity.userId, server),
    }),
  };
}

type IdentityOfServer = Pick<StoredIdentity, 'isMember' | 'expiresAt'> & Pick<PeopleServer['login'], 'rules'>;

function toStoredIdentity(
  userId: string,
  { issuer, subject, email, name, groups, refreshToken }: Identity,
  { rules, isMember, expiresAt }: IdentityOfServer,
): StoredIdentity {
  return { userId, issuer, subject, email, name, ...selectGroups(rules, groups), isMember, refreshToken, expiresAt };
}
