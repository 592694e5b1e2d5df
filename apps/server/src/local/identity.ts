import { randomBytes } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { html } from 'hono/html';
import type { AdapterFactory, AdapterPayload, Provider } from 'oidc-provider';
import { createServer } from '../http/node-http.ts';
import { addFont, getPagePolicy, renderPage } from '../http/page.ts';
import type { Identity, IdentityOptions } from '../manage/identity.ts';
import { routes } from '../routes.ts';

/**
 * Identity provider of local mode: a real OpenID Connect provider on loopback, for agents that the user of this machine
 * logs in at the management server.
 */
export type LocalIdentity = { getOptions(): Promise<IdentityOptions>; close(): Promise<void> };

const clientId = 'toolhost';
/** Lifetime of all tokens and sessions of the provider, in seconds. */
const lifetimeS = 3600;
/** The only person of local mode. */
export const localAccount = {
  sub: 'local',
  name: 'You',
  email: 'you@localhost.example',
  email_verified: true,
};

/** Returns the only person of local mode, as this provider states them. */
export function createLocalPerson(baseUrl: string): Identity {
  const { sub: subject, name, email } = localAccount;
  return { issuer: baseUrl + routes.localIdentity, subject, name, email, groups: [], refreshToken: undefined };
}

/**
 * Creates the provider, which starts at the first login. It listens on a free loopback port for this service, which
 * serves it below its own URL to browsers.
 */
export function createLocalIdentity(baseUrl: string, redirectUri: string): LocalIdentity {
  let startPromise: Promise<{ options: IdentityOptions; server: Server }> | undefined;
  return {
    async getOptions() {
      startPromise ??= startProvider(baseUrl + routes.localIdentity, redirectUri);
      return (await startPromise).options;
    },
    async close() {
      const running = await startPromise;
      running?.server.closeAllConnections();
      await new Promise<void>((resolve) => (running ? running.server.close(() => resolve()) : resolve()));
    },
  };
}

async function startProvider(
  issuer: string,
  redirectUri: string,
): Promise<{ options: IdentityOptions; server: Server }> {
  const { Provider: OidcProvider } = await import('oidc-provider');
  const server = createServer();
  const port = await listen(server);
  const { host, pathname: mountPath } = new URL(issuer);
  const clientSecret = randomBytes(32).toString('base64url');
  const provider = new OidcProvider(issuer, {
    adapter: createMemoryAdapter(),
    ttl: {
      Interaction: lifetimeS,
      Grant: lifetimeS,
      Session: lifetimeS,
      AccessToken: lifetimeS,
      IdToken: lifetimeS,
      AuthorizationCode: 60,
    },
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    conformIdTokenClaims: false,
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    features: { devInteractions: { enabled: false } },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ ...localAccount, sub: id }) }),
    interactions: { url: (_context, interaction) => `${mountPath}/interaction/${interaction.uid}` },
    jwks: { keys: [await generateSigningKey()] },
    renderError(context) {
      const basePath = mountPath.slice(0, -routes.localIdentity.length);
      const page = renderPage(
        'Not signed in',
        html`<h1>Sign-in failed</h1><p>Return to where you came from and start again.</p>`,
      );
      context.type = 'html';
      context.set('Content-Security-Policy', getPagePolicy(basePath));
      context.body = addFont(page, basePath);
    },
  });
  const handleRequest = provider.callback();
  server.on('request', (request: IncomingMessage & { originalUrl?: string }, response: ServerResponse) => {
    if (!isLoopbackHost(request.headers.host, port)) {
      refuse(response, 421, 'This port is only for Toolhost itself.');
      return;
    }
    // The provider builds its URLs from both.
    request.headers.host = host;
    request.originalUrl = request.url ?? '/';
    request.url = request.originalUrl.slice(mountPath.length);
    if (!request.url.startsWith('/interaction/')) handleRequest(request, response);
    else
      finishInteraction(provider, request, response).catch(() =>
        refuse(
          response,
          400,
          'This sign-in has expired or was started in another browser, or cookies are disabled. Start again.',
        ),
      );
  });
  return { options: { issuer, clientId, clientSecret, internalOrigin: `http://127.0.0.1:${port}` }, server };
}

/** Returns true if the Host header is a loopback name. Any other name indicates an attack by DNS rebinding. */
function isLoopbackHost(host: string | undefined, port: number): boolean {
  return ['127.0.0.1', 'localhost', '[::1]'].some((name) => host?.toLowerCase() === `${name}:${port}`);
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' });
  response.end(message);
}

/** Creates the provider's in-memory storage, which lasts as long as the process. */
function createMemoryAdapter(): AdapterFactory {
  const records = new Map<string, AdapterPayload>();
  return (kind) => {
    const find = async (id: string) => records.get(`${kind} ${id}`);
    const findBy = async (field: 'uid' | 'userCode', value: string) =>
      [...records].find(([key, record]) => key.startsWith(`${kind} `) && record[field] === value)?.[1];
    return {
      find,
      findByUid: (uid) => findBy('uid', uid),
      findByUserCode: (userCode) => findBy('userCode', userCode),
      upsert: async (id, payload) => void records.set(`${kind} ${id}`, payload),
      consume: async (id) => void Object.assign((await find(id)) ?? {}, { consumed: Math.floor(Date.now() / 1000) }),
      destroy: async (id) => void records.delete(`${kind} ${id}`),
      revokeByGrantId: async (grantId) => {
        for (const [key, record] of records) if (record.grantId === grantId) records.delete(key);
      },
    };
  };
}

/** Generates the signing key. Each process has its own, so sign-ins do not survive a restart. */
async function generateSigningKey(): Promise<{ kty: string; alg: string; use: string }> {
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  // Removed, because key_ops only lists "sign", so verifiers would reject the public key.
  const { key_ops: _, ...key } = await crypto.subtle.exportKey('jwk', pair.privateKey);
  return { ...key, kty: 'EC', alg: 'ES256', use: 'sig' };
}

/**
 * Signs the only person in without a page of its own, because they have agreed to the login on the consent page of the
 * service. The provider's cookie ensures that a sign-in only continues in the browser that started it.
 */
async function finishInteraction(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { uid, grantId } = await provider.interactionDetails(request, response);
  if (request.url !== `/interaction/${uid}`)
    return refuse(response, 403, 'This browser has started another sign-in. Start again.');
  const grant =
    (grantId && (await provider.Grant.find(grantId))) || new provider.Grant({ accountId: localAccount.sub, clientId });
  grant.addOIDCScope('openid email profile');
  const result = { login: { accountId: localAccount.sub }, consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

/** Listens on a free loopback port. Returns the port. */
function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.on('listening', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : 0);
    });
    server.listen(0, '127.0.0.1');
  });
}
