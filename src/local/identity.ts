import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { html } from 'hono/html';
import type { AdapterFactory, AdapterPayload, Provider } from 'oidc-provider';
import { olderCookies, uniqueCookie } from '../http/cookies.ts';
import { createServer } from '../http/node-http.ts';
import { page, pagePolicy } from '../http/page.ts';
import type { IdentityOptions } from '../manage/identity.ts';

/** Identity provider of local mode: a real OpenID Connect provider on loopback, for the person at this machine. */
export type LocalIdentity = { find(): Promise<IdentityOptions>; close(): Promise<void> };

const clientId = 'toolhost';
/** Lifetime in seconds of all tokens and sessions of the provider. */
const spanS = 3600;
const account = { sub: 'local', name: 'You, on this machine', email: 'you@localhost.example', email_verified: true };

/** Starts at the first sign-in, on the first free port from `preferredPort` upwards. */
export function createLocalIdentity(preferredPort: number, redirectUris: string[]): LocalIdentity {
  let started: Promise<{ options: IdentityOptions; server: Server }> | undefined;
  return {
    async find() {
      started ??= startProvider(preferredPort, redirectUris);
      return (await started).options;
    },
    async close() {
      const running = await started;
      running?.server.closeAllConnections();
      await new Promise<void>((resolve) => (running ? running.server.close(() => resolve()) : resolve()));
    },
  };
}

async function startProvider(
  preferredPort: number,
  redirectUris: string[],
): Promise<{ options: IdentityOptions; server: Server }> {
  const { Provider: OidcProvider } = await import('oidc-provider');
  const server = createServer();
  const port = await listen(server, preferredPort);
  const issuer = `http://127.0.0.1:${port}`;
  const clientSecret = randomBytes(32).toString('base64url');
  const provider = new OidcProvider(issuer, {
    adapter: memory(),
    ttl: {
      Interaction: spanS,
      Grant: spanS,
      Session: spanS,
      AccessToken: spanS,
      IdToken: spanS,
      AuthorizationCode: 60,
    },
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: redirectUris,
        id_token_signed_response_alg: 'ES256',
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    conformIdTokenClaims: false,
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    features: { devInteractions: { enabled: false } },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ ...account, sub: id }) }),
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    jwks: { keys: [await signingKey()] },
    renderError(context) {
      context.type = 'html';
      context.body = page(
        'Not signed in',
        html`<h1>The sign-in did not succeed</h1><p>Start again where you came from.</p>`,
      );
    },
  });
  const serve = provider.callback();
  const forms = createFormTokens(issuer, spanS);
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!isLoopbackHost(request.headers.host, port)) refuse(response, 421, 'Open this page at 127.0.0.1.');
    else if (!request.url?.startsWith('/interaction/')) serve(request, response);
    else
      interact(provider, forms, request, response).catch(() =>
        refuse(response, 400, 'This sign-in has expired; start again.'),
      );
  });
  return { options: { issuer, clientId, clientSecret }, server };
}

/** Whether the Host header is a loopback name. Another name means DNS rebinding. */
function isLoopbackHost(host: string | undefined, port: number): boolean {
  return ['127.0.0.1', 'localhost', '[::1]'].some((name) => host?.toLowerCase() === `${name}:${port}`);
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' });
  response.end(message);
}

/** In-memory storage of the provider, as long as the process lives. */
function memory(): AdapterFactory {
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

/** A new key for each process; sign-ins do not outlast it. */
async function signingKey(): Promise<{ kty: string; alg: string; use: string }> {
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  // key_ops lists only "sign", so verifiers would refuse the public half.
  const { key_ops: _, ...key } = await crypto.subtle.exportKey('jwk', pair.privateKey);
  return { ...key, kty: 'EC', alg: 'ES256', use: 'sig' };
}

/** The sign-in page, without a password: the person at this machine is the only user. */
async function interact(
  provider: Provider,
  forms: FormTokens,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const isForm = request.method === 'POST';
  if (isForm && !(forms.isOwnAddress(request) && isFromOwnPage(request))) {
    refuse(response, 403, 'This form was not shown in this browser, or cookies are off; start the sign-in again.');
    return;
  }
  const details = await provider.interactionDetails(request, response);
  if (isForm || details.prompt.name === 'consent') {
    const { grantId } = details;
    const grant =
      (grantId && (await provider.Grant.find(grantId))) || new provider.Grant({ accountId: account.sub, clientId });
    grant.addOIDCScope('openid email profile');
    const result = { login: { accountId: account.sub }, consent: { grantId: await grant.save() } };
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
    return;
  }
  const { location, cookies } = forms.addressFor(request);
  if (!forms.isOwnAddress(request)) {
    // Without cookies a second redirect would loop forever.
    if (request.url?.includes('?form='))
      refuse(response, 403, 'Cookies are off for this page; allow them and start again.');
    else response.writeHead(303, { Location: location, 'Set-Cookie': cookies, 'Cache-Control': 'no-store' }).end();
    return;
  }
  response.writeHead(200, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': pagePolicy.replace("form-action 'self'; ", ''),
    'X-Frame-Options': 'DENY',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'same-origin',
    'Cache-Control': 'no-store',
  });
  response.end(
    page(
      'Sign in',
      html`<h1>Sign in to Toolhost on this machine</h1>
<p class="soft">Local mode has one user: whoever can reach this machine's loopback address. A real deployment asks your own identity provider here.</p>
<form method="post" action="${location}"><div class="actions"><button class="primary" type="submit">Continue</button></div></form>`,
    ),
  );
}

function listen(server: Server, preferredPort: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') reject(error);
      else server.listen(0, '127.0.0.1');
    });
    server.on('listening', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : 0);
    });
    server.listen(preferredPort, '127.0.0.1');
  });
}

const prefix = 'toolhost-identity-form-';
/** Most forms of a browser at once. */
const mostForms = 20;

/** One cookie per form, so that two tabs do not replace each other's. */
function cookieName(path: string): string {
  return prefix + createHash('sha256').update(path).digest('hex').slice(0, 16);
}

/** URL at which a form is shown and submitted, and the cookies that are set for it: its own, and the ends of the oldest. */
type FormAddress = { location: string; cookies: string[] };

/** Binds forms to the browser that was shown them: their URL holds a token that belongs to its cookie. */
type FormTokens = {
  addressFor(request: IncomingMessage): FormAddress;
  /** Whether the URL of a request is the one issued to this browser. */
  isOwnAddress(request: IncomingMessage): boolean;
};

/** `origin` is that of the pages. The key lasts as long as the process, like all state of local mode. */
function createFormTokens(origin: string, lifeS: number): FormTokens {
  const key = randomBytes(32);
  const tokenOf = (path: string, browser: string) =>
    createHmac('sha256', key).update(`${path} ${browser}`).digest('base64url');
  // Lax, because a browser that follows a link from another site must be recognised at the next step.
  const cookie = (name: string, value: string, ageS: number) =>
    `${name}=${value}; Path=/interaction; HttpOnly; SameSite=Lax; Max-Age=${ageS}`;
  return {
    addressFor(request) {
      const { pathname } = new URL(request.url ?? '', origin);
      const browser = browserOf(request, pathname) ?? randomBytes(32).toString('base64url');
      const older = olderCookies(request.headers.cookie, prefix, mostForms - 1);
      const cookies = [cookie(cookieName(pathname), browser, lifeS), ...older.map((id) => cookie(prefix + id, '', 0))];
      return { location: `${pathname}?form=${tokenOf(pathname, browser)}`, cookies };
    },
    isOwnAddress(request) {
      const { pathname, searchParams } = new URL(request.url ?? '', origin);
      const browser = browserOf(request, pathname);
      if (browser === undefined) return false;
      const given = Buffer.from(searchParams.get('form') ?? '');
      const wanted = Buffer.from(tokenOf(pathname, browser));
      return given.length === wanted.length && timingSafeEqual(given, wanted);
    },
  };
}

function browserOf({ headers }: IncomingMessage, path: string): string | undefined {
  return uniqueCookie(headers.cookie, cookieName(path));
}

/** Whether a request comes from a page of its own host, or has no header that names the origin. */
function isFromOwnPage({ headers }: IncomingMessage): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  return (site === undefined || site === 'same-origin') && (origin === undefined || origin === `http://${host}`);
}
