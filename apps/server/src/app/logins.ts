import { createHash, randomBytes } from 'node:crypto';
import { AppError, OAuthError } from '@toolhost/errors/errors';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import { getFieldHosts } from '@toolhost/tool-config/field-hosts';
import type { LoginRules } from '@toolhost/tool-config/login';
import { getValuesAgreement } from '@toolhost/tool-config/login-values';
import { getOAuthValues, getTokenOrigins, type OAuth } from '@toolhost/tool-config/oauth';
import { configSecrets, type ServerConfig } from '@toolhost/tool-config/server-config';
import { getHostNames, getOrigins } from '@toolhost/tool-config/server-wide';
import { isReadOnly } from '@toolhost/tool-config/view';
import { localWorkspace } from '../config.ts';
import type { HostedServer } from '../gateway/hosted/hosted-server.ts';
import { createLocalPerson } from '../local/identity.ts';
import { findSessionActor } from '../manage/actors.ts';
import { createIdentityProvider, getCauseMessage, type Identity, type IdentityProvider } from '../manage/identity.ts';
import { signInPerson } from '../manage/people.ts';
import { createClientDocuments } from '../oauth/client-documents.ts';
import { createClientTokens } from '../oauth/client-tokens.ts';
import type {
  LoginServer,
  LoginTool,
  LoginView,
  OAuthDeps,
  Provider,
  RequestDeps,
  TokenResponse,
} from '../oauth/oauth-deps.ts';
import { createPassthroughTokens } from '../oauth/passthrough.ts';
import type { ServerLogin } from '../oauth/people.ts';
import { createPersonValues } from '../oauth/person-values.ts';
import { createHostedProvider, getDisplayedCode, getDisplayedMessage, toDisplayedPerson } from '../oauth/provider.ts';
import { createGrantTokens, createUnsavedTokens, type GrantTokens } from '../oauth/provider-tokens.ts';
import { createRefreshRefusals } from '../oauth/refresh-refusals.ts';
import { handleRevocation, handleTokenRequest } from '../oauth/token.ts';
import type { LoginAttempt, TrialLoginResult } from '../operations/operation.ts';
import { createServiceHosts } from '../own-hosts.ts';
import { apiPath, buildUrl, routes } from '../routes.ts';
import type { Database } from '../store/database.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import { formatUserAgent, programName } from '../version.ts';
import type { Caches } from './caches.ts';
import type { Foundation } from './foundation.ts';
import { type FullConfig, requiresSignInLink } from './full-config.ts';
import { createServerHostUrls, createUrlRule } from './operation-deps.ts';
import { createPeople } from './people.ts';

/** Creates the logins of agents at hosted servers, and of people at the dashboard and the management server. */
export function createLogins(foundation: Foundation, caches: Caches) {
  const { config, store, keyring, http, documents, log } = foundation;
  const { changes, freshness, invalidateOn } = caches;
  const [db, now] = [store.db, store.time.now];
  const getLoginServer = createLoginServers(config, http, now);
  const signIn = createSignInDeps(config, db, now);
  const passthroughTokens = createPassthroughTokens(db, freshness, { random: randomBytes, now });
  invalidateOn(passthroughTokens, 'server', 'grant');
  const warn = (message: string, fields: { [key: string]: unknown }) => log.warn(fields, message);
  const unsavedTokens = createUnsavedTokens(warn);
  const ownHosts = createServiceHosts(config);
  const onCommitted = changes.pollAfterCommit;
  const personValues = createPersonValues({ db, keyring, random: randomBytes, now, onCommitted, log: warn }, freshness);
  invalidateOn(personValues, 'grant');
  const oauth: OAuthDeps = {
    people: signIn.people,
    requireLocalPerson: signIn.requireLocalPerson,
    personValues,
    db,
    keyring,
    http,
    acceptsDocuments: config.clientDocuments !== 'off',
    findDocument: createClientDocuments(documents, ownHosts, config.clientDocuments),
    passthroughTokens,
    unsavedTokens,
    refreshRefusals: createRefreshRefusals(now),
    refreshesInProgress: new Map(),
    random: randomBytes,
    now,
    baseUrl: config.baseUrl,
    ownHosts,
    async findServer(slug, chargeQuery) {
      if (slug === config.managementSlug) return signIn.managementLogin;
      const server = await caches.servers.find(slug, chargeQuery);
      return server && getLoginServer(server);
    },
    onCommitted,
    log: (message, fields) => log.info(fields, message),
    onTokenUse: caches.credentialUses.recordLoginUse,
    onEvent: foundation.observability.onLoginEvent,
  };
  const grants = createGrantTokens(oauth, freshness);
  invalidateOn(grants, 'grant');
  const clientTokens = createClientTokens({
    db,
    keyring,
    http,
    userAgent: formatUserAgent(config.baseUrl),
    now,
    log: oauth.log,
  });
  return {
    getLoginServer,
    oauth,
    grants,
    clientTokens,
    identity: signIn.identity,
    welcomePerson: signIn.welcomePerson,
    welcomeLocalPerson: signIn.welcomeLocalPerson,
    managementLogin: signIn.managementLogin,
    stop: unsavedTokens.close,
  };
}

/** @throws OAuthError access_denied if a browser is not signed in to the dashboard */
async function requireSession(
  cookie: string | undefined,
  deps: { db: Database['db']; now: () => number; baseUrl: string },
): Promise<void> {
  if (await findSessionActor({ headers: { cookie }, method: 'GET' }, deps, undefined)) return;
  throw new OAuthError(
    'access_denied',
    `this browser is not signed in at this host name; open the link that the start of this service printed, or a new one from "${programName} open" in its container, then go back and allow the login again`,
  );
}

/** Creates the sign-in of people: to the dashboard, and through the OAuth proxy to the management server. */
function createSignInDeps(config: FullConfig, db: Database['db'], now: () => number) {
  const identity = createIdentityProvider(config.identity, config.groupsClaim);
  const commonWorkspace = config.mode === 'local' ? localWorkspace.id : undefined;
  const welcomePerson = (person: Identity) =>
    transact(db, (transaction) => signInPerson(person, { db: transaction, random: randomBytes, now, commonWorkspace }));
  const welcomeLocalPerson = config.identity.isBuiltIn
    ? () => welcomePerson(createLocalPerson(config.baseUrl))
    : undefined;
  return {
    identity,
    welcomePerson,
    welcomeLocalPerson,
    requireLocalPerson: requiresSignInLink(config)
      ? (cookie: string | undefined) => requireSession(cookie, { db, now, baseUrl: config.baseUrl })
      : undefined,
    people: createPeople({ config, identity, db, random: randomBytes, now, welcomeLocalPerson }),
    managementLogin: createManagementLogin(config, identity, welcomePerson),
  };
}

/** Creates the login of the management server. Its provider is the identity provider of the dashboard. */
function createManagementLogin(
  config: FullConfig,
  identity: IdentityProvider,
  welcomePerson: (person: Identity) => Promise<{ userId: string; workspaceId: string }>,
): LoginServer {
  const { baseUrl, managementSlug: slug } = config;
  const redirectUri = buildUrl(baseUrl, routes.callback, slug);
  return {
    id: 'management',
    workspaceId: 'management',
    slug,
    name: 'Toolhost management',
    operator: 'this Toolhost itself',
    actsIn: 'Your own workspace, or the one that you last switched to in the dashboard',
    issuer: buildUrl(baseUrl, routes.mcp, slug),
    serverHostUrl: createServerHostUrls(config)(slug),
    apiUrl: baseUrl + apiPath,
    scopes: ['manage:read', 'manage:write'],
    mode: 'issued',
    agreement: 'management',
    views: [],
    findView: () => undefined,
    listTools: () => [],
    audience: [],
    login: undefined,
    provider: {
      host: identity.host,
      returnsForm: false,
      codeParameter: 'code',
      getDisplayedCode: (error) => getDisplayedCode(error, []),
      getDisplayedMessage: (description) => getDisplayedMessage(description, []),
      buildAuthorizationUrl: ({ state, verifier }) =>
        identity.authorizationUrl({ state, verifier, nonce: deriveNonce(verifier) }, redirectUri, { offline: false }),
      async exchange({ parameters, state, verifier }) {
        const returned = new URL(redirectUri);
        returned.search = parameters.toString();
        const person = await identity
          .identify(returned, { state, verifier, nonce: deriveNonce(verifier) })
          .catch(throwAsOAuthError);
        // No token of the identity provider is stored, because only the identity was needed.
        const tokens = { accessToken: 'none', refreshToken: undefined, expiresAt: undefined, scope: undefined };
        return { tokens, person: toDisplayedPerson([person.email, person.name], []), ...(await welcomePerson(person)) };
      },
      refresh: () => Promise.reject(new OAuthError('invalid_grant', 'a sign-in has no refresh token')),
    },
  };
}

/** Derives the nonce from the verifier, which never leaves this service before the nonce is checked. */
function deriveNonce(verifier: string): string {
  return createHash('sha256').update(`nonce ${verifier}`).digest('base64url');
}

function throwAsOAuthError(error: unknown): never {
  if (!(error instanceof AppError)) throw error;
  const code = error.kind === 'unavailable' ? 'temporarily_unavailable' : 'server_error';
  throw new OAuthError(code, error.message, getCauseMessage(error));
}

export type Logins = ReturnType<typeof createLogins>;

type LoginServersOptions = {
  baseUrl: string;
  getServerHostUrl: (slug: string) => string | undefined;
  http: HttpClient;
  now: () => number;
  urlProblem: (url: URL) => string | undefined;
};

/**
 * Returns a function that creates the login of a hosted server, once per compiled server; undefined for a server
 * without a login.
 */
function createLoginServers(
  config: FullConfig,
  http: HttpClient,
  now: () => number,
): (server: HostedServer) => LoginServer | undefined {
  const options: LoginServersOptions = {
    baseUrl: config.baseUrl,
    getServerHostUrl: createServerHostUrls(config),
    http,
    now,
    urlProblem: createUrlRule(config),
  };
  const loginsByServer = new WeakMap<HostedServer, LoginServer>();
  return function find(server: HostedServer): LoginServer | undefined {
    const existing = loginsByServer.get(server);
    if (existing) return existing;
    const { view } = server;
    const serverLogin = view ? find(view.server) : toLoginServer(server, options);
    // A view has the login of its server.
    const login = serverLogin && view ? { ...serverLogin, view: view.name } : serverLogin;
    if (login) loginsByServer.set(server, login);
    return login;
  };
}

function toLoginServer(server: HostedServer, options: LoginServersOptions): LoginServer | undefined {
  const { oauth, login, views } = server.config;
  if (!oauth && !login) return undefined;
  const upstreamOrigins = getOrigins(server.config);
  const mode = oauth?.token_mode ?? 'issued';
  const serverLogin = login && toServerLogin(server.config, login);
  return {
    id: server.id,
    workspaceId: server.workspaceId,
    slug: server.slug,
    name: server.config.name,
    issuer: buildUrl(options.baseUrl, routes.mcp, server.slug),
    serverHostUrl: options.getServerHostUrl(server.slug),
    scopes: oauth?.scopes ?? [],
    mode,
    // Without a provider, the person's token is of this service only, and their values have their own agreement. With
    // one, the values belong to the login.
    agreement: oauth
      ? hashAgreement([
          ...[oauth.authorization_url, oauth.token_url, oauth.client_id, mode],
          ...upstreamOrigins.toSorted(),
          ...getQuirkHosts(oauth),
          // A value may move to another host that the server calls already.
          ...(serverLogin?.fields.length ? [serverLogin.valuesAgreement] : []),
        ])
      : hashAgreement(['login']),
    views: Object.keys(views ?? {}),
    findView: (name) => toLoginView(server, name),
    listTools: () => toLoginTools(server.config),
    audience: [...new Set([...upstreamOrigins, ...toUserinfoOrigins(oauth)].map(toHost))],
    provider: oauth && toProvider(server, oauth, options),
    login: serverLogin,
  };
}

/** Returns the host of an origin, which may depend on the person (`https://{{site}}.example.com`). */
function toHost(origin: string): string {
  return origin.replace(/^[a-z]+:\/\//i, '');
}

function toProvider(server: HostedServer, oauth: OAuth, options: LoginServersOptions): Provider {
  const secret = server.secrets.get(configSecrets.clientSecret);
  const canSendSecret = getTokenOrigins(oauth).every((origin) => secret?.origins.includes(origin));
  return createHostedProvider({
    oauth,
    clientSecret: canSendSecret ? (secret?.value ?? '') : '',
    workspaceId: server.workspaceId,
    redirectUri: buildUrl(options.baseUrl, routes.callback, server.slug),
    userAgent: formatUserAgent(options.baseUrl),
    http: options.http,
    now: options.now,
    urlProblem: options.urlProblem,
  });
}

/** Returns the origin that receives the token to say more about the login. */
function toUserinfoOrigins({ userinfo_url: userinfoUrl }: Partial<OAuth> = {}): string[] {
  return userinfoUrl === undefined ? [] : [new URL(userinfoUrl).origin];
}

/** Returns the further hosts that receive the token, or that the login takes from the provider. */
function getQuirkHosts(oauth: OAuth): string[] {
  const { token_url_from: tokenUrl, userinfo_url: userinfoUrl } = oauth;
  const declared = getOAuthValues(oauth).flatMap(([name, { hosts }]) => (hosts ? [[name, ...hosts].join(' ')] : []));
  return [...(tokenUrl ? [...tokenUrl.hosts, tokenUrl.path] : []), ...(userinfoUrl ? [userinfoUrl] : []), ...declared];
}

function toServerLogin(config: ServerConfig, rules: LoginRules): ServerLogin {
  const hosts = getFieldHosts(config);
  const hostNames = getHostNames(config);
  const fields = (rules.fields ?? []).map((field) => ({
    ...field,
    hosts: hosts.get(field.name) ?? [],
    isInHost: hostNames.has(field.name),
  }));
  return {
    rules,
    hasOauth: config.oauth !== undefined,
    identifiesPeople: config.oauth === undefined || rules.allow !== undefined || rules.views !== undefined,
    fields,
    valuesAgreement: getValuesAgreement(fields, hosts),
  };
}

function toLoginTools({ tools }: Pick<ServerConfig, 'tools'>): LoginTool[] {
  return tools
    .filter(({ disabled }) => !disabled)
    .map((tool) => ({ name: tool.title ?? tool.name, isReadOnly: isReadOnly(tool) }));
}

function toLoginView(server: HostedServer, name: string): LoginView | undefined {
  const view = server.findView(name);
  if (!view) return undefined;
  return { name, title: view.config.name, tools: toLoginTools(view.config) };
}

/**
 * Returns the hash of what a person agrees to: where they log in, for which client id and token mode, and where
 * tokens are sent.
 */
function hashAgreement(values: readonly string[]): string {
  // JSON, so that no client id can imitate a list of hosts.
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url');
}

/**
 * Finishes a trial login as its client would, and ends it. The provider's response is described and discarded here,
 * so that people who try out a login never hold a token.
 */
export function createLoginCheck(deps: OAuthDeps, grants: GrantTokens) {
  const oauth: RequestDeps = { ...deps, network: 'login check' };
  /** @throws AppError notFound without a login, invalid for a code that is not valid here */
  return async ({
    slug,
    clientId,
    code,
    verifier,
    redirectUri,
    requestId,
  }: LoginAttempt): Promise<TrialLoginResult> => {
    const server = await oauth.findServer(slug);
    if (!server) throw new AppError('notFound', 'this server has no login');
    const attempt = { client_id: clientId, code, code_verifier: verifier, redirect_uri: redirectUri };
    const form = new URLSearchParams({ grant_type: 'authorization_code', ...attempt });
    const tokenResponse = await handleTokenRequest(server, { form }, oauth).catch(throwAsAppError);
    if (server.mode === 'passthrough') return describePassthrough(tokenResponse);
    try {
      const openGrant = await grants.open(server, tokenResponse.access_token);
      if (!openGrant) throw new AppError('conflict', 'the server was changed during the login; start again');
      const { grant, tokens } = openGrant;
      // Without a provider, the login lasts as long as the identity of the person is valid or can be checked.
      const { expiresAt, refreshToken } = server.provider ? tokens : (tokens.identity ?? tokens);
      const expiresInS =
        expiresAt === undefined ? undefined : Math.max(0, Math.round((expiresAt - oauth.now()) / 1000));
      const isRenewable = refreshToken !== undefined;
      return { scope: tokens.scope, expiresInS, isRenewable, person: grant.person ?? undefined };
    } finally {
      const form = new URLSearchParams({ client_id: clientId, token: tokenResponse.access_token });
      await handleRevocation(server, { form }, { requestId, isTrial: true }, oauth);
    }
  };
}

/**
 * Describes the response of a passthrough login, whose grant has already ended. Only the response contains the
 * provider's tokens.
 */
function describePassthrough({
  scope,
  expires_in: expiresInS,
  refresh_token: refreshToken,
}: TokenResponse): TrialLoginResult {
  return { scope, expiresInS, isRenewable: refreshToken !== undefined, person: undefined };
}

function throwAsAppError(error: unknown): never {
  if (!(error instanceof OAuthError)) throw error;
  throw new AppError('invalid', `the login could not be finished: ${error.message}`, { cause: error });
}
