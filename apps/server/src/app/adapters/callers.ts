import type { QueryCharge, UnverifiedCallerLimits } from '@toolhost/credentials/client-request';
import type { Scope } from '@toolhost/credentials/credential';
import { getWidestNetwork } from '@toolhost/limits/call-limits';
import type { CallerOptions } from '../../gateway/callers/caller.ts';
import { createVerifiedCallers } from '../../gateway/callers/resolve-caller.ts';
import type { HostedServer } from '../../gateway/hosted/hosted-server.ts';
import type { Log } from '../../log.ts';
import type { ManagerCredentials } from '../../manage/actors.ts';
import { createPersonActor } from '../../manage/people.ts';
import type { ServerAgreement } from '../../oauth/passthrough.ts';
import type { Actor } from '../../operations/operation.ts';
import type { Caches } from '../caches.ts';
import type { Logins } from '../logins.ts';

type Addresses = {
  networkOf: CallerOptions['getNetwork'];
  unverifiedCallers: UnverifiedCallerLimits;
  clock: () => number;
};

export function createCallerOptions(
  { keys, grants, loginServerOf, oauthParts }: Pick<Caches, 'keys'> & Logins,
  { networkOf: getNetwork, unverifiedCallers, clock }: Addresses,
  log: Log,
): CallerOptions {
  return {
    verifyApiKey: keys.verify,
    verifiedCallers: createVerifiedCallers(clock),
    getNetwork: (visit) => getWidestNetwork(getNetwork(visit)),
    async findLogin(server, bearer, chargeQuery) {
      const login = loginServerOf(server);
      const openGrant = login && (await grants.open(login, bearer, chargeQuery));
      if (!login || !openGrant) return undefined;
      const { accessToken } = openGrant.tokens;
      return {
        grantId: openGrant.grant.id,
        token: accessToken,
        renew: (wasSent) => grants.renew(login, bearer, accessToken, wasSent),
        discardToken: (rejectedToken) => grants.discardToken(login, bearer, rejectedToken),
        onAccepted: grants.getOnAccepted(openGrant),
      };
    },
    isOutdated: (server, bearer, chargeQuery) =>
      oauthParts.passthroughTokens.isOutdated(toAgreedServer(server, loginServerOf), bearer, chargeQuery),
    chargeUnknownBearer: unverifiedCallers.chargeUnknownBearer,
    onMisdirectedKey: ({ slug }) =>
      log.warn({ slug }, 'an API key was sent to a server that forwards bearer tokens; the request was rejected'),
  };
}

/** Returns the key of a server for agreements. A server without a login may have had one before. */
function toAgreedServer(server: HostedServer, loginServerOf: Logins['loginServerOf']): ServerAgreement {
  const { id, workspaceId, config } = server;
  return (config.oauth && loginServerOf(server)) ?? { id, workspaceId };
}

/** Returns the credentials that the management server and the REST API accept. */
export function createManagerCredentials({ keys }: Pick<Caches, 'keys'>, logins: Logins): ManagerCredentials {
  return {
    verifyApiKey: keys.verify,
    findPersonByToken: (bearer, chargeQuery) => findPerson(bearer, chargeQuery, logins),
  };
}

/** Finds the person behind a token that the management server issued at sign-in. */
async function findPerson(
  bearer: string,
  chargeQuery: QueryCharge,
  { grants, managementLogin, oauthParts }: Logins,
): Promise<Actor | undefined> {
  const openGrant = await grants.open(managementLogin, bearer, chargeQuery);
  if (!openGrant || openGrant.grant.user_id === null) return undefined;
  const grantedScopes = openGrant.grant.scope.split(' ') as Scope[];
  return createPersonActor(oauthParts.db, {
    userId: openGrant.grant.user_id,
    workspaceId: openGrant.grant.workspace_id,
    grantId: openGrant.grant.id,
    granted: grantedScopes,
  });
}
