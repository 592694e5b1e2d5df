import type { QueryCharge } from '@toolhost/credentials/client-request';
import type { Scope } from '@toolhost/credentials/credential';
import { getWidestNetwork } from '@toolhost/limits/call-limits';
import type { CallerOptions, CallingPerson } from '../../gateway/callers/caller.ts';
import { createVerifiedCallers } from '../../gateway/callers/resolve-caller.ts';
import type { HostedServer } from '../../gateway/hosted/hosted-server.ts';
import type { ManagerCredentials } from '../../manage/actors.ts';
import { createPersonActor } from '../../manage/people.ts';
import type { FieldValues, OAuthDeps, PeopleLoginServer, ProviderTokens } from '../../oauth/oauth-deps.ts';
import type { ServerAgreement } from '../../oauth/passthrough.ts';
import { getPersonView, isPersonAllowed } from '../../oauth/people.ts';
import { findLoginValues, findUsableValues, type PersonLogin } from '../../oauth/person-login.ts';
import { selectRefused } from '../../oauth/person-values.ts';
import type { Actor } from '../../operations/operation.ts';
import { getAgreedView } from '../../store/logins/grants.ts';
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
  const findPerson = createFindPerson({ getLoginServer, oauth });
  return {
    verifyApiKey: keys.verify,
    verifiedCallers: createVerifiedCallers(runtime.clock),
    getNetwork: (request) => getWidestNetwork(getNetwork(request)),
    async findLogin(server, bearer, chargeQuery) {
      const login = getLoginServer(server);
      const openGrant = login && (await grants.open(login, bearer, chargeQuery));
      if (!login || !openGrant) return undefined;
      const { tokens, grant } = openGrant;
      const person = login.login
        ? await findPersonOfLogin(
            { ...login, login: login.login },
            { tokens, agreedView: getAgreedView(grant.agreement) },
            oauth,
          )
        : toPersonOfGrant(tokens);
      if (login.login && !person) return undefined;
      const { accessToken } = tokens;
      const upstreamLogin = login.provider && {
        grantId: grant.id,
        token: accessToken,
        scope: grant.scope,
        providerScope: tokens.scope,
        renew: (wasSent: boolean) => grants.renew(login, bearer, accessToken, wasSent),
        discardToken: (rejectedToken: string) => grants.discardToken(login, bearer, rejectedToken),
        onAccepted: grants.getOnAccepted(openGrant),
      };
      return { grantId: grant.id, login: upstreamLogin, person };
    },
    findKeyPerson: (server, { createdBy }, chargeQuery) => findPerson(server, createdBy, chargeQuery),
    isOutdated: (server, bearer, chargeQuery) =>
      oauth.passthroughTokens.isOutdated(toAgreedServer(server, getLoginServer), bearer, chargeQuery),
    chargeUnknownBearer: unverifiedCallers.chargeUnknownBearer,
    onMisdirectedKey: ({ slug }) =>
      log.warn({ slug }, 'an API key was sent to a server that forwards bearer tokens; the request was rejected'),
  };
}

const noValues = { view: undefined, getValue: () => undefined, markRefused: async () => {} };

/** Returns the person of a login without rules for people. Its values come from the provider (`oauth.values`). */
function toPersonOfGrant({ values }: ProviderTokens): CallingPerson | undefined {
  if (!values) return undefined;
  const getValue = (name: string) => (Object.hasOwn(values, name) ? values[name] : undefined);
  return { ...noValues, getValue, missingReason: 'log in again' };
}

/** Returns the person of a login, with their values. Undefined if they must log in again. */
async function findPersonOfLogin(
  server: PeopleLoginServer,
  { tokens, agreedView }: PersonLogin,
  { personValues }: OAuthDeps,
): Promise<CallingPerson | undefined> {
  const { login } = server;
  const { identity } = tokens;
  if (!isPersonAllowed(login, identity, agreedView)) return undefined;
  const values = await findLoginValues(server, tokens, personValues);
  if (!values) return undefined;
  const view = identity && getPersonView(login, identity);
  return toCallingPerson(server, { view, userId: identity?.userId, values }, personValues);
}

/** Creates a function that finds the values of the user behind an API key or a try-out. */
export function createFindPerson({ getLoginServer, oauth }: Pick<Logins, 'getLoginServer' | 'oauth'>) {
  const { personValues, people } = oauth;
  return async (server: HostedServer, userId?: string, chargeQuery?: QueryCharge): Promise<CallingPerson> => {
    const loginServer = getLoginServer(server);
    if (!loginServer?.login) return { ...noValues, missingReason: 'the server was changed; retry' };
    const peopleServer = { ...loginServer, login: loginServer.login };
    // In local mode, everything belongs to one person.
    const id = people.findLocalPerson ? (await people.findLocalPerson(peopleServer)).userId : userId;
    const values = id === undefined ? undefined : await findUsableValues(peopleServer, id, personValues, chargeQuery);
    if (values) return toCallingPerson(peopleServer, { view: undefined, userId: id, values }, personValues);
    // With a provider, the values belong to a login, and the dashboard has no form for them.
    const dashboardText = loginServer.provider
      ? ''
      : ', or enter it in the dashboard under Settings → Logins of the server';
    const missingReason = `log in to ${loginServer.issuer} with an MCP client and enter it there${dashboardText}, as yourself or as the member who created the API key`;
    return { ...noValues, missingReason };
  };
}

type FoundPerson = { values: FieldValues; view: string | undefined; userId: string | undefined };

function toCallingPerson(
  server: PeopleLoginServer,
  { view, userId, values }: FoundPerson,
  personValues: OAuthDeps['personValues'],
): CallingPerson {
  return {
    view,
    getValue: (name) => (Object.hasOwn(values, name) ? values[name] : undefined),
    missingReason: 'log in again',
    async markRefused(sent) {
      if (userId === undefined) return;
      const refused = selectRefused(server.login, sent).map((name) => [name, values[name] ?? '']);
      await personValues.markRefused(server, userId, Object.fromEntries(refused));
    },
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
