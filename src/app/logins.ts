import { createHash, randomBytes } from 'node:crypto';
import { localWorkspace } from '../config.ts';
import { configSecrets } from '../domain/config/server-config.ts';
import { originsOf } from '../domain/config/server-wide.ts';
import { isReadOnly } from '../domain/config/view.ts';
import { createOwnHosts } from '../domain/http/own-hosts.ts';
import { AppError, OAuthError } from '../errors.ts';
import type { HostedServer } from '../gateway/hosted/hosted-server.ts';
import { causeOf, createIdentityProvider, type Identity, type IdentityProvider } from '../manage/identity.ts';
import { welcome } from '../manage/people.ts';
import { createClientDocuments } from '../oauth/client-documents.ts';
import { createClientTokens } from '../oauth/client-tokens.ts';
import type { LoginEvent, LoginServer, LoginView, OAuthParts, RequestParts, TokenAnswer } from '../oauth/parts.ts';
import { createHandedOutTokens } from '../oauth/passthrough.ts';
import { hostedProvider, shownCode, shownPerson, shownSentence } from '../oauth/provider.ts';
import { createGrantUse, createUnsavedTokens, type GrantUse } from '../oauth/provider-tokens.ts';
import { createRefreshRefusals } from '../oauth/refresh-refusals.ts';
import { redeem, revoke } from '../oauth/token.ts';
import type { GivenLogin, LoginAttempt } from '../operations/operation.ts';
import type { HttpClient } from '../outbound/http-client.ts';
import { apiPath, routes, urlOf } from '../routes.ts';
import type { Database } from '../store/database.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import { userAgentOf } from '../version.ts';
import type { Caches, CachesOptions } from './caches.ts';
import type { FullConfig } from './full-config.ts';
import { ownAddressOf } from './operation-parts.ts';

type LoginsOptions = Omit<CachesOptions, 'clock'> & {
  caches: Caches;
  http: HttpClient;
  /** Client for URLs that unverified callers choose. */
  documents: HttpClient;
  onLoginEvent: (event: LoginEvent) => void;
};

/** Creates the logins of agents at hosted servers, and of people at the dashboard and the management server. */
export function createLogins(options: LoginsOptions) {
  const { config, store, keyring, caches, http, documents, log, onLoginEvent } = options;
  const { changes, freshness, follow } = caches;
  const { db } = store;
  const { now } = store.time;
  const loginServerOf = createLoginServers({ baseUrl: config.baseUrl, ownAddressOf: ownAddressOf(config), http, now });
  const people = signInOf(config, db, now);
  const handedOut = createHandedOutTokens(db, freshness, { random: randomBytes, now });
  follow(handedOut, 'server', 'grant');
  const unsaved = createUnsavedTokens((message, fields) => log.warn(fields, message));
  const ownHosts = createOwnHosts(config);
  const oauthParts: OAuthParts = {
    db,
    keyring,
    http,
    takesDocuments: config.clientDocuments !== 'off',
    findDocument: createClientDocuments(documents, ownHosts, config.clientDocuments),
    handedOut,
    unsaved,
    refusals: createRefreshRefusals(now),
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
    onCommitted: changes.lookAfterCommit,
    log: (message, fields) => log.info(fields, message),
    onUse: caches.uses.loginUsed,
    onEvent: onLoginEvent,
  };
  const grants = createGrantUse(oauthParts, freshness);
  follow(grants, 'grant');
  const clientTokens = createClientTokens({ ...oauthParts, userAgent: userAgentOf(config.baseUrl) });
  return { loginServerOf, oauthParts, grants, clientTokens, stop: unsaved.close, ...people };
}

/** Creates the sign-in of people: to the dashboard, and through the OAuth proxy to the management server. */
function signInOf(config: FullConfig, db: Database['db'], now: () => number) {
  const identity = createIdentityProvider(config.identity.find, config.identity.host);
  const commonWorkspace = config.mode === 'local' ? localWorkspace.id : undefined;
  const welcomed = (person: Identity) =>
    transact(db, (transaction) => welcome(person, { db: transaction, random: randomBytes, now, commonWorkspace }));
  return { identity, welcome: welcomed, managementLogin: managementLoginOf(config, identity, welcomed) };
}

/** Creates the login of the management server. Its provider is the identity provider of the dashboard. */
function managementLoginOf(
  config: FullConfig,
  identity: IdentityProvider,
  welcomed: (person: Identity) => Promise<{ userId: string; workspaceId: string }>,
): LoginServer {
  const { baseUrl, managementSlug: slug } = config;
  const redirectUri = urlOf(baseUrl, routes.callback, slug);
  return {
    id: 'management',
    workspaceId: 'management',
    slug,
    name: 'Toolhost management',
    operator: 'this Toolhost itself',
    actsIn: 'Your own workspace, or the one that you last switched to in the dashboard',
    issuer: urlOf(baseUrl, routes.mcp, slug),
    ownAddress: ownAddressOf(config)(slug),
    apiAddress: baseUrl + apiPath,
    scopes: ['manage:read', 'manage:write'],
    mode: 'issued',
    agreement: 'management',
    views: [],
    findView: () => undefined,
    provider: {
      host: identity.host,
      audience: [],
      shownCode: (error) => shownCode(error, []),
      shownSentence: (description) => shownSentence(description, []),
      authorizationUrl: ({ state, verifier }) =>
        identity.authorizationUrl({ state, verifier, nonce: nonceOf(verifier) }, redirectUri),
      async exchange({ parameters, state, verifier }) {
        const returned = new URL(redirectUri);
        returned.search = parameters.toString();
        const person = await identity
          .identify(returned, { state, verifier, nonce: nonceOf(verifier) })
          .catch(asOAuthError);
        // No token of the identity provider is stored, because only the identity was needed.
        const tokens = { accessToken: 'none', refreshToken: undefined, expiresAt: undefined, scope: undefined };
        return { tokens, person: shownPerson([person.email, person.name], []), ...(await welcomed(person)) };
      },
      refresh: () => Promise.reject(new OAuthError('invalid_grant', 'a sign-in has no refresh token')),
    },
  };
}

/** Derives the nonce from the verifier, which never leaves this service before the nonce is checked. */
function nonceOf(verifier: string): string {
  return createHash('sha256').update(`nonce ${verifier}`).digest('base64url');
}

function asOAuthError(error: unknown): never {
  if (!(error instanceof AppError)) throw error;
  const code = error.kind === 'unavailable' ? 'temporarily_unavailable' : 'server_error';
  throw new OAuthError(code, error.message, causeOf(error));
}

export type Logins = ReturnType<typeof createLogins>;

type LoginServersOptions = {
  baseUrl: string;
  ownAddressOf: (slug: string) => string | undefined;
  http: HttpClient;
  now: () => number;
};

/**
 * Returns a function that creates the login of a hosted server, once per compiled server; undefined for a server
 * without a login.
 */
function createLoginServers(options: LoginServersOptions): (server: HostedServer) => LoginServer | undefined {
  const made = new WeakMap<HostedServer, LoginServer>();
  return function find(server: HostedServer): LoginServer | undefined {
    const known = made.get(server);
    if (known) return known;
    const { view } = server;
    const whole = view ? find(view.server) : toLoginServer(server, options);
    // A view has the login of its server.
    const login = whole && view ? { ...whole, view: view.name } : whole;
    if (login) made.set(server, login);
    return login;
  };
}

function toLoginServer(server: HostedServer, options: LoginServersOptions): LoginServer | undefined {
  const { oauth } = server.config;
  if (!oauth) return undefined;
  const upstreams = originsOf(server.config);
  const mode = oauth.token_mode ?? 'issued';
  const secret = server.secrets.get(configSecrets.clientSecret);
  const mayGo = secret?.origins.includes(new URL(oauth.token_url).origin) ?? false;
  return {
    id: server.id,
    workspaceId: server.workspaceId,
    slug: server.slug,
    name: server.config.name,
    issuer: urlOf(options.baseUrl, routes.mcp, server.slug),
    ownAddress: options.ownAddressOf(server.slug),
    scopes: oauth.scopes,
    mode,
    agreement: agreementOf([oauth.authorization_url, oauth.token_url, oauth.client_id, mode, ...upstreams.sort()]),
    views: Object.keys(server.config.views ?? {}),
    findView: (name) => loginView(server, name),
    provider: hostedProvider({
      oauth,
      clientSecret: mayGo ? (secret?.value ?? '') : '',
      workspaceId: server.workspaceId,
      redirectUri: urlOf(options.baseUrl, routes.callback, server.slug),
      audience: upstreams.map((origin) => new URL(origin).host),
      userAgent: userAgentOf(options.baseUrl),
      http: options.http,
      now: options.now,
    }),
  };
}

function loginView(server: HostedServer, name: string): LoginView | undefined {
  const view = server.findView(name);
  if (!view) return undefined;
  const tools = view.config.tools.map((tool) => ({ name: tool.title ?? tool.name, reads: isReadOnly(tool) }));
  return { name, title: view.config.name, tools };
}

/**
 * Returns the hash of what a person agrees to: where they log in, for which client id and token mode, and where
 * tokens are sent.
 */
function agreementOf(parts: readonly string[]): string {
  // JSON, so that no client id can imitate a list of hosts.
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}

type LoginCheckParts = { oauth: OAuthParts; grants: GrantUse };

/**
 * Finishes a trial login as its client would, and ends it. The provider's response is described and discarded here,
 * so that people who try out a login never hold a token.
 */
export function createLoginCheck({ oauth: parts, grants }: LoginCheckParts) {
  const oauth: RequestParts = { ...parts, network: 'login check' };
  /** @throws AppError notFound without a login, invalid for a code that is not valid here */
  return async ({ slug, clientId, code, verifier, redirectUri, requestId }: LoginAttempt): Promise<GivenLogin> => {
    const server = await oauth.findServer(slug);
    if (!server) throw new AppError('notFound', 'this server has no login');
    const attempt = { client_id: clientId, code, code_verifier: verifier, redirect_uri: redirectUri };
    const form = new URLSearchParams({ grant_type: 'authorization_code', ...attempt });
    const answer = await redeem(server, { form }, oauth).catch(toAppError);
    if (server.mode === 'passthrough') return ofPassthrough(answer);
    try {
      const open = await grants.open(server, answer.access_token);
      if (!open) throw new AppError('conflict', 'the server was changed during the login; start again');
      const { scope, expiresAt, refreshToken } = open.tokens;
      const expiresInS =
        expiresAt === undefined ? undefined : Math.max(0, Math.round((expiresAt - oauth.now()) / 1000));
      return { scope, expiresInS, isRenewable: refreshToken !== undefined };
    } finally {
      const form = new URLSearchParams({ client_id: clientId, token: answer.access_token });
      await revoke(server, { form }, requestId, oauth);
    }
  };
}

/**
 * Describes the response of a passthrough login, whose grant has already ended. Only the response contains the
 * provider's tokens.
 */
function ofPassthrough({ scope, expires_in: expiresInS, refresh_token: refreshToken }: TokenAnswer): GivenLogin {
  return { scope, expiresInS, isRenewable: refreshToken !== undefined };
}

function toAppError(error: unknown): never {
  if (!(error instanceof OAuthError)) throw error;
  throw new AppError('invalid', `the login could not be finished: ${error.message}`, { cause: error });
}
