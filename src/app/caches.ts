import { randomBytes } from 'node:crypto';
import { localWorkspace } from '../config.ts';
import { newId } from '../domain/ids.ts';
import { createApiKeyCheck } from '../gateway/callers/api-key-check.ts';
import { createHostedServers } from '../gateway/hosted/hosted-servers.ts';
import type { Log } from '../log.ts';
import { createIdentityProvider, type Identity } from '../manage/identity.ts';
import { welcome } from '../manage/people.ts';
import { createClientTokens } from '../oauth/client-credentials/client-tokens.ts';
import { createClientDocuments } from '../oauth/clients/client-document.ts';
import type { LoginEvent, OAuthParts } from '../oauth/parts.ts';
import { createHandedOutTokens } from '../oauth/tokens/handed-out.ts';
import { createUnsavedTokens } from '../oauth/tokens/unsaved-tokens.ts';
import { createGrantUse } from '../oauth/tokens/use-grant.ts';
import type { HttpClient } from '../outbound/http-client.ts';
import { apiPath, routes, urlOf } from '../routes.ts';
import { insertAuditEvent } from '../store/audit-events.ts';
import { followChanges } from '../store/changes/follow-changes.ts';
import type { Database } from '../store/database.ts';
import { findWorkspace } from '../store/people/workspaces.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import { transact } from '../store/transact.ts';
import { userAgentOf } from '../version.ts';
import { createLoginServers } from './adapters/login-servers.ts';
import { createManagementLogin } from './adapters/management-login.ts';
import type { FullConfig } from './full-config.ts';
import { outageLog } from './observability/outage-log.ts';
import type { Store } from './open-store.ts';
import { defaultLimits, ownAddressOf } from './operation-parts.ts';

/** How long the caches serve while the database does not answer. */
const staleMs = 60_000;

export type CachesOptions = {
  config: FullConfig;
  store: Store;
  keyring: Keyring;
  http: HttpClient;
  /** For URLs that strangers choose. */
  documents: HttpClient;
  log: Log;
  /** Monotonic ms. */
  clock: () => number;
  onLoginEvent: (event: LoginEvent) => void;
};

/** The caches of this process, and the follower that drops entries when another process changes them. */
export function createCaches(options: CachesOptions) {
  const { config, store, keyring, http, documents, log, clock, onLoginEvent } = options;
  const { db, time } = store;
  const { now } = time;
  const changes = followChanges({
    db: store.changes,
    clock,
    time,
    staleMs,
    onChanges: (list) => {
      for (const { kind, ref } of list) invalidate[kind](ref);
    },
    onGap: () => {
      for (const { clear } of [keys, servers, grants, handedOut]) clear();
    },
    ...outageLog(log, 'could not look for changes', 'looking for changes succeeds again'),
  });
  const freshness = { clock, freshUntil: changes.freshUntil, isUp: () => changes.state().isUp };
  const keys = createApiKeyCheck(db, now, freshness);
  const userAgent = userAgentOf(config.baseUrl);
  const servers = createHostedServers({
    db,
    keyring,
    freshness,
    userAgent,
    defaultLimits: defaultLimits(config),
  });
  const loginServerOf = createLoginServers({ baseUrl: config.baseUrl, ownAddressOf: ownAddressOf(config), http, now });
  const signIn = signInOf(config, db, now);
  const handedOut = createHandedOutTokens(db, freshness);
  const unsaved = createUnsavedTokens({ log: (message, fields) => log.warn(fields, message) });
  const oauthParts: OAuthParts = {
    db,
    keyring,
    http,
    documents: createClientDocuments(documents),
    handedOut,
    unsaved,
    random: randomBytes,
    now,
    baseUrl: config.baseUrl,
    async findServer(slug) {
      if (slug === config.managementSlug) return signIn.managementLogin;
      const server = await servers.find(slug);
      const login = server && loginServerOf(server);
      const workspace = login && (await findWorkspace(db, login.workspaceId));
      return login && { ...login, operator: workspace?.name ?? login.workspaceId };
    },
    onCommitted: changes.lookAfterCommit,
    audit: (event) => insertAuditEvent(db, auditRow(event, now())),
    log: (message, fields) => log.info(fields, message),
    onEvent: onLoginEvent,
  };
  const ofCalls = { clientTokens: createClientTokens({ ...oauthParts, userAgent }) };
  const grants = createGrantUse(oauthParts, freshness);
  const invalidate = {
    server: (ref: string) => {
      servers.invalidate(ref);
      handedOut.invalidate(ref);
    },
    key: keys.invalidate,
    grant: grants.invalidate,
    workspace: servers.invalidate,
  };
  const stop = async () => {
    await unsaved.close();
    await changes.stop();
  };
  return { keys, servers, grants, ofCalls, changes, time, loginServerOf, oauthParts, stop, ...signIn };
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

function auditRow({ server, name, detail, requestId }: Parameters<OAuthParts['audit']>[0], at: number) {
  return {
    id: newId(randomBytes, 'aud'),
    workspace_id: server.workspaceId,
    at,
    actor_kind: 'client',
    actor_id: 'oauth',
    operation: name,
    target: server.slug,
    detail: JSON.stringify(detail),
    request_id: requestId,
  };
}

export type Caches = ReturnType<typeof createCaches>;
