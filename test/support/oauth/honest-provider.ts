import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type AdapterFactory, type AdapterPayload, Provider } from 'oidc-provider';
import { listenLocally } from '../upstreams/local-server.ts';

/** The password of every person at the provider. */
export const password = 'correct horse battery staple';

/** Claims of a person; others than these are not stated. */
export type PersonClaims = {
  email?: string;
  email_verified?: boolean;
  name?: string;
  /** Groups, in the claim `groups` or in `namespacedGroupsClaim`. A test may state a claim of another shape. */
  groups?: unknown;
  [namespacedGroupsClaim]?: unknown;
};

/** A name like those that Auth0 requires. It is a plain name, not a path. */
export const namespacedGroupsClaim = 'https://example.com/groups';

/**
 * A real OpenID Connect provider: PKCE, a login form, opaque access tokens, rotating refresh tokens. Anyone may log in,
 * with any name and the one password; the name is the subject.
 */
export type HonestProvider = {
  readonly url: string;
  readonly port: number;
  /** All access tokens that it has issued, oldest first. */
  readonly issued: readonly string[];
  /** Number of submissions of its login form. */
  readonly logins: number;
  /** Creates a client with this redirect URI. Returns the `oauth` of a hosted server that logs people in here. */
  createOAuthConfig(callback: string): Promise<{ [field: string]: unknown }>;
  /** Creates the client of a service at `baseUrl`, whose people sign in here. Returns its environment variables. */
  createSignInClient(baseUrl: string): Promise<{ [variable: string]: string }>;
  /** Changes claims of a person, which ID tokens and userinfo state from now on, including those of a refresh. */
  setClaims(name: string, claims: PersonClaims): void;
  /** Removes a person: they can no longer log in, and their refresh tokens are refused. */
  removePerson(name: string): void;
  /** Returns the account that a live access token belongs to. */
  getAccount(token: string): Promise<string | undefined>;
  /** Ends every access token early; refresh tokens stay valid. */
  revokeAccessTokens(): Promise<void>;
  /** Ends every refresh token: people have to log in again. */
  revokeRefreshTokens(): Promise<void>;
  close(): Promise<void>;
};

export type HonestProviderOptions = { accessTokenSeconds?: number };

const scopes = ['openid', 'email', 'offline_access', 'items:read'];
const signInScopes = ['profile', 'groups'];

/**
 * A separate store for each provider; the package's own store is shared by the whole process, and only for development.
 */
function createAdapter(): AdapterFactory {
  const entries = new Map<string, AdapterPayload>();
  return (model) => {
    const key = (id: string) => `${model} ${id}`;
    const findBy = (matches: (payload: AdapterPayload) => boolean) =>
      [...entries].find(([name, payload]) => name.startsWith(`${model} `) && matches(payload))?.[1];
    return {
      upsert: async (id, payload) => void entries.set(key(id), payload),
      find: async (id) => entries.get(key(id)),
      findByUid: async (uid) => findBy((payload) => payload.uid === uid),
      findByUserCode: async (userCode) => findBy((payload) => payload.userCode === userCode),
      consume: async (id) => {
        const payload = entries.get(key(id));
        if (payload) payload.consumed = Math.floor(Date.now() / 1000);
      },
      destroy: async (id) => void entries.delete(key(id)),
      revokeByGrantId: async (grantId) => {
        for (const [name, payload] of entries) if (payload.grantId === grantId) entries.delete(name);
      },
    };
  };
}

/** Returns the claims of a person, or undefined for one who was removed. */
type FindClaims = (accountId: string) => PersonClaims | undefined;

function createProvider(
  issuer: string,
  adapter: AdapterFactory,
  { accessTokenSeconds = 600 }: HonestProviderOptions,
  findClaims: FindClaims,
): Provider {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return new Provider(issuer, {
    adapter,
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kty: 'EC', use: 'sig', alg: 'ES256' }] },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    scopes: [...scopes, ...signInScopes],
    pkce: { required: () => true },
    ttl: {
      ...{ AccessToken: accessTokenSeconds, AuthorizationCode: 60, IdToken: 600, Interaction: 600 },
      ...{ Grant: 86_400, RefreshToken: 86_400, Session: 86_400 },
    },
    clockTolerance: 0,
    rotateRefreshToken: true,
    features: { devInteractions: { enabled: false } },
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['name'],
      groups: ['groups', namespacedGroupsClaim],
    },
    // Puts the claims into ID tokens too, not only into the userinfo response.
    conformIdTokenClaims: false,
    findAccount: async (_ctx, accountId) =>
      findClaims(accountId) && { accountId, claims: async () => ({ sub: accountId, ...findClaims(accountId) }) },
    interactions: { url: (_ctx, { uid }) => `/login/${uid}` },
  });
}

function loginPage(client: string, problem: string): string {
  return `<!doctype html><html lang="en"><title>Log in</title><h1>Log in for ${client}</h1><p>${problem}</p>
<form method="post"><label>Name <input name="name" autofocus></label>
<label>Password <input name="password" type="password"></label>
<button name="decision" value="log-in">Log in</button> <button name="decision" value="cancel">Cancel</button></form></html>`;
}

export async function startHonestProvider(options: HonestProviderOptions = {}): Promise<HonestProvider> {
  const server = createServer();
  const { url, port, close } = await listenLocally(server);
  const adapter = createAdapter();
  const changedClaims = new Map<string, PersonClaims>();
  const removedPeople = new Set<string>();
  const findClaims: FindClaims = (name) =>
    removedPeople.has(name)
      ? undefined
      : { email: `${name}@people.example`, email_verified: true, name, ...changedClaims.get(name) };
  const provider = createProvider(url, adapter, options, findClaims);
  const issued: string[] = [];
  const refreshTokens: string[] = [];
  let logins = 0;
  provider.on('access_token.saved', (token) => issued.push(token.jti));
  provider.on('refresh_token.saved', (token) => refreshTokens.push(token.jti));

  /** Logs in and consents with a single form. */
  async function handleInteraction(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { params } = await provider.interactionDetails(request, response);
    const clientId = String(params.client_id);
    const sendPage = (status: number, problem: string) =>
      void response.writeHead(status, { 'content-type': 'text/html' }).end(loginPage(clientId, problem));
    if (request.method !== 'POST') return sendPage(200, '');
    const form = new URLSearchParams(await text(request));
    if (form.get('decision') === 'cancel') {
      return provider.interactionFinished(request, response, { error: 'access_denied' });
    }
    const accountId = form.get('name') ?? '';
    if (accountId === '' || form.get('password') !== password || !findClaims(accountId))
      return sendPage(403, 'That is not right.');
    logins += 1;
    const grant = new provider.Grant({ accountId, clientId });
    grant.addOIDCScope(String(params.scope));
    const consent = { grantId: await grant.save() };
    await provider.interactionFinished(request, response, { login: { accountId }, consent });
  }

  async function createClient(redirectUris: string[], authentication: 'client_secret_post' | 'client_secret_basic') {
    const client_id = `toolhost-${randomBytes(4).toString('hex')}`;
    const client = { client_id, client_secret: randomBytes(32).toString('hex') };
    await adapter('Client').upsert(client_id, {
      ...client,
      redirect_uris: redirectUris,
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: authentication,
      id_token_signed_response_alg: 'ES256',
    });
    return client;
  }

  const handleRequest = provider.callback();
  server.on('request', (request, response) => {
    if (!request.url?.startsWith('/login/')) return void handleRequest(request, response);
    handleInteraction(request, response).catch((error) => response.writeHead(400).end(String(error)));
  });

  return {
    url,
    port,
    issued,
    get logins() {
      return logins;
    },
    async createOAuthConfig(callback) {
      const client = await createClient([callback], 'client_secret_post');
      // OpenID Connect Core, 11: offline access requires `prompt=consent`.
      const more = { scopes, extra_params: { prompt: 'consent' } };
      return { authorization_url: `${url}/auth`, token_url: `${url}/token`, ...client, ...more };
    },
    async createSignInClient(baseUrl) {
      const callbacks = [`${baseUrl}/login/callback`, `${baseUrl}/mcp/manage/callback`];
      const { client_id, client_secret } = await createClient(callbacks, 'client_secret_basic');
      return { OIDC_ISSUER: url, OIDC_CLIENT_ID: client_id, OIDC_CLIENT_SECRET: client_secret };
    },
    setClaims: (name, claims) => void changedClaims.set(name, { ...changedClaims.get(name), ...claims }),
    removePerson: (name) => void removedPeople.add(name),
    getAccount: async (token) => (await provider.AccessToken.find(token))?.accountId,
    async revokeAccessTokens() {
      for (const token of issued) await (await provider.AccessToken.find(token))?.destroy();
    },
    async revokeRefreshTokens() {
      for (const token of refreshTokens) await (await provider.RefreshToken.find(token))?.destroy();
    },
    close,
  };
}
