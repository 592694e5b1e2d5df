import type { Scope } from '../../domain/credentials/credential.ts';
import { widestNetwork } from '../../domain/limits.ts';
import type { Lookup, Strangers } from '../../domain/visit.ts';
import type { CallerOptions } from '../../gateway/callers/caller.ts';
import { createKnownCallers } from '../../gateway/callers/resolve-caller.ts';
import type { HostedServer } from '../../gateway/hosted/hosted-server.ts';
import type { Log } from '../../log.ts';
import type { ManagerCredentials } from '../../manage/actors.ts';
import { actorOfPerson } from '../../manage/people.ts';
import type { AgreedServer } from '../../oauth/passthrough.ts';
import type { Actor } from '../../operations/operation.ts';
import type { Caches } from '../caches.ts';
import type { Logins } from '../logins.ts';

type Addresses = { networkOf: CallerOptions['networkOf']; strangers: Strangers; clock: () => number };

export function callersOf(
  { keys, grants, loginServerOf, oauthParts }: Pick<Caches, 'keys'> & Logins,
  { networkOf, strangers, clock }: Addresses,
  log: Log,
): CallerOptions {
  return {
    verifyApiKey: keys.verify,
    known: createKnownCallers(clock),
    networkOf: (visit) => widestNetwork(networkOf(visit)),
    async findLogin(server, bearer, look) {
      const login = loginServerOf(server);
      const open = login && (await grants.open(login, bearer, look));
      if (!login || !open) return undefined;
      const { accessToken } = open.tokens;
      return {
        grantId: open.grant.id,
        token: accessToken,
        renew: (isSent) => grants.renew(login, bearer, accessToken, isSent),
        giveUp: (refused) => grants.giveUp(login, bearer, refused),
        onTaken: grants.onTaken(open),
      };
    },
    isOutdated: (server, bearer, look) =>
      oauthParts.handedOut.isOutdated(agreedServer(server, loginServerOf), bearer, look),
    onUnknown: strangers.onUnknown,
    onMisdirectedKey: ({ slug }) =>
      log.warn({ slug }, 'an API key was sent to a server that forwards bearer tokens; the request was rejected'),
  };
}

/** Returns the key of a server for agreements. A server without a login may have had one before. */
function agreedServer(server: HostedServer, loginServerOf: Logins['loginServerOf']): AgreedServer {
  const { id, workspaceId, config } = server;
  return (config.oauth && loginServerOf(server)) ?? { id, workspaceId };
}

/** Returns the credentials that the management server and the REST API accept. */
export function managerCredentials({ keys }: Pick<Caches, 'keys'>, logins: Logins): ManagerCredentials {
  return { verifyApiKey: keys.verify, findPerson: (bearer, look) => findPerson(bearer, look, logins) };
}

/** Finds the person behind a token that the management server issued at sign-in. */
async function findPerson(
  bearer: string,
  look: Lookup,
  { grants, managementLogin, oauthParts }: Logins,
): Promise<Actor | undefined> {
  const open = await grants.open(managementLogin, bearer, look);
  if (!open || open.grant.user_id === null) return undefined;
  const granted = open.grant.scope.split(' ') as Scope[];
  return actorOfPerson(oauthParts.db, {
    userId: open.grant.user_id,
    workspaceId: open.grant.workspace_id,
    grantId: open.grant.id,
    granted,
  });
}
