import type { QueryCharge } from '@toolhost/credentials/client-request';
import type { Scope } from '@toolhost/credentials/credential';
import { getWidestNetwork } from '@toolhost/limits/call-limits';
import type { CallerOptions } from '../../gateway/callers/caller.ts';
import { createVerifiedCallers } from '../../gateway/callers/resolve-caller.ts';
import type { HostedServer } from '../../gateway/hosted/hosted-server.ts';
import type { ManagerCredentials } from '../../manage/actors.ts';
import { createPersonActor } from '../../manage/people.ts';
import type { ServerAgreement } from '../../oauth/passthrough.ts';
import type { Actor } from '../../operations/operation.ts';
import type { Caches } from '../caches.ts';
import type { CallLimiters } from '../call-limiters.ts';
import type { Foundation } from '../foundation.ts';
import type { Logins } from '../logins.ts';

export function createCallerOptions(
  { keys }: Caches,
  { grants, getLoginServer, oauth }: Logins,
  { getNetwork, unverifiedCallers }: CallLimiters['addresses'],
  { runtime, log }: Foundation,
): CallerOptions {
  return {
    verifyApiKey: keys.verify,
    verifiedCallers: createVerifiedCallers(runtime.clock),
    getNetwork: (request) => getWidestNetwork(getNetwork(request)),
    async findLogin(server, bearer, chargeQuery) {
      const login = getLoginServer(server);
      const openGrant = login && (await grants.open(login, bearer, chargeQuery));
      if (!login || !openGrant) return undefined;
      const { accessToken } = openGrant.tokens;
      return {
        grantId: openGrant.grant.id,
        token: accessToken,
        scope: openGrant.grant.scope,
        providerScope: openGrant.tokens.scope,
        renew: (wasSent) => grants.renew(login, bearer, accessToken, wasSent),
        discardToken: (rejectedToken) => grants.discardToken(login, bearer, rejectedToken),
        onAccepted: grants.getOnAccepted(openGrant),
      };
    },
    isOutdated: (server, bearer, chargeQuery) =>
      oauth.passthroughTokens.isOutdated(toAgreedServer(server, getLoginServer), bearer, chargeQuery),
    chargeUnknownBearer: unverifiedCallers.chargeUnknownBearer,
    onMisdirectedKey: ({ slug }) =>
      log.warn({ slug }, 'an API key was sent to a server that forwards bearer tokens; the request was rejected'),
  };
}

/** Returns the server whose agreements are checked. A server that has no login now may have had one before. */
function toAgreedServer(server: HostedServer, getLoginServer: Logins['getLoginServer']): ServerAgreement {
  const { id, workspaceId, config } = server;
  return (config.oauth && getLoginServer(server)) ?? { id, workspaceId };
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
  { grants, managementLogin, oauth }: Logins,
): Promise<Actor | undefined> {
  const openGrant = await grants.open(managementLogin, bearer, chargeQuery);
  if (!openGrant || openGrant.grant.user_id === null) return undefined;
  const grantedScopes = openGrant.grant.scope.split(' ') as Scope[];
  return createPersonActor(oauth.db, {
    userId: openGrant.grant.user_id,
    workspaceId: openGrant.grant.workspace_id,
    grantId: openGrant.grant.id,
    grantedScopes,
  });
}
