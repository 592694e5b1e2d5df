import { randomBytes } from 'node:crypto';
import { localWorkspace } from '../config.ts';
import { createOwnHosts } from '../domain/http/own-hosts.ts';
import { newId } from '../domain/ids.ts';
import { createIdentityProvider, type Identity } from '../manage/identity.ts';
import { welcome } from '../manage/people.ts';
import { createClientTokens } from '../oauth/client-credentials/client-tokens.ts';
import { createClientDocuments } from '../oauth/clients/client-document.ts';
import type { LoginEvent, LoginRecord, OAuthParts } from '../oauth/parts.ts';
import { createHandedOutTokens } from '../oauth/tokens/handed-out.ts';
import { createUnsavedTokens } from '../oauth/tokens/unsaved-tokens.ts';
import { createGrantUse } from '../oauth/tokens/use-grant.ts';
import type { HttpClient } from '../outbound/http-client.ts';
import { apiPath, routes, urlOf } from '../routes.ts';
import type { Database } from '../store/database.ts';
import { insertLoginEvent, type LoginEventRow } from '../store/logins/login-events.ts';
import { findWorkspace } from '../store/people/workspaces.ts';
import { transact } from '../store/transact.ts';
import { userAgentOf } from '../version.ts';
import { createLoginServers } from './adapters/login-servers.ts';
import { createManagementLogin } from './adapters/management-login.ts';
import type { Caches, CachesOptions } from './caches.ts';
import type { FullConfig } from './full-config.ts';
import { ownAddressOf } from './operation-parts.ts';

type LoginsOptions = Omit<CachesOptions, 'clock'> & {
  caches: Caches;
  http: HttpClient;
  /** For URLs that strangers choose. */
  documents: HttpClient;
  onLoginEvent: (event: LoginEvent) => void;
};

/** Logins of agents at hosted servers, and of people at the dashboard and the management server. */
export function createLogins(options: LoginsOptions) {
  const { config, store, keyring, caches, http, documents, log, onLoginEvent } = options;
  const { changes, freshness, follow } = caches;
  const { db } = store;
  const { now } = store.time;
  const loginServerOf = createLoginServers({ baseUrl: config.baseUrl, ownAddressOf: ownAddressOf(config), http, now });
  const people = signInOf(config, db, now);
  const handedOut = createHandedOutTokens(db, freshness, { random: randomBytes, now });
  follow(handedOut, 'server', 'grant');
  const unsaved = createUnsavedTokens({ log: (message, fields) => log.warn(fields, message) });
  const ownHosts = createOwnHosts(config);
  const oauthParts: OAuthParts = {
    db,
    keyring,
    http,
    takesDocuments: config.clientDocuments !== 'off',
    documentsOf: createClientDocuments(documents, ownHosts, config.clientDocuments),
    handedOut,
    unsaved,
    refreshing: new Map(),
    random: randomBytes,
    now,
    baseUrl: config.baseUrl,
    ownHosts,
    async findServer(slug, look) {
      if (slug === config.managementSlug) return people.managementLogin;
      const server = await caches.servers.find(slug, look);
      return server && loginServerOf(server);
    },
    async withOperator(server) {
      if (server.operator !== '') return server;
      return { ...server, operator: (await findWorkspace(db, server.workspaceId))?.name ?? server.workspaceId };
    },
    onCommitted: changes.lookAfterCommit,
    audit: (transaction, event) => insertLoginEvent(transaction, event.server.id, eventRow(event, now())),
    log: (message, fields) => log.info(fields, message),
    onUse: caches.uses.loginUsed,
    onEvent: onLoginEvent,
  };
  const grants = createGrantUse(oauthParts, freshness);
  follow(grants, 'grant');
  const clientTokens = createClientTokens({ ...oauthParts, userAgent: userAgentOf(config.baseUrl) });
  return { loginServerOf, oauthParts, grants, clientTokens, stop: unsaved.close, ...people };
}

/** Sign-in of people: to the dashboard, and through the OAuth proxy to the management server. */
function signInOf(config: FullConfig, db: Database['db'], now: () => number) {
  const identity = createIdentityProvider(config.identity.find, config.identity.host);
  const commonWorkspace = config.mode === 'local' ? localWorkspace.id : undefined;
  const welcomed = (person: Identity) =>
    transact(db, (transaction) => welcome(person, { db: transaction, random: randomBytes, now, commonWorkspace }));
  const managementLogin = createManagementLogin({
    slug: config.managementSlug,
    issuer: urlOf(config.baseUrl, routes.mcp, config.managementSlug),
    ownAddress: ownAddressOf(config)(config.managementSlug),
    apiAddress: config.baseUrl + apiPath,
    redirectUri: urlOf(config.baseUrl, routes.callback, config.managementSlug),
    identity,
    welcome: welcomed,
  });
  return { identity, welcome: welcomed, managementLogin };
}

function eventRow({ server, workspaceId, name, detail, requestId }: LoginRecord, at: number): LoginEventRow {
  return {
    id: newId(randomBytes, 'aud'),
    workspace_id: workspaceId,
    at,
    actor_kind: 'client',
    actor_id: 'oauth',
    operation: name,
    target: server.slug,
    detail: JSON.stringify(detail),
    request_id: requestId,
  };
}

export type Logins = ReturnType<typeof createLogins>;
