import type { HttpBindings } from '@hono/node-server';
import { hashSecret, newSecret, type Random } from '@toolhost/credentials/ids';
import { AppError, getErrorMessage, isUnavailableError } from '@toolhost/errors/errors';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { type Context, Hono } from 'hono';
import { html } from 'hono/html';
import { createHostCookies, type HostCookie } from '../http/cookies.ts';
import { addFont, brand, getPagePolicy, renderPage } from '../http/page.ts';
import { getBasePath } from '../own-hosts.ts';
import { routes } from '../routes.ts';
import type { Db } from '../store/db.ts';
import { deleteSession, insertSession } from '../store/people/sessions.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import { getSessionCookie, requireSameOrigin } from './actors.ts';
import { getCauseMessage, type Identity, type IdentityProvider, type SignIn } from './identity.ts';

type Env = { Bindings: HttpBindings };

type SignInDeps = {
  db: Db;
  keyring: Keyring;
  identity: IdentityProvider;
  /** Returns true if the sender may start or finish another sign-in in this minute. */
  canSignIn: (request: HttpBindings['incoming']) => boolean;
  /**
   * Runs work that sends a request to the identity provider, and limits how often a sender can do so. The work calls
   * `onRefused` if the provider refused a code.
   */
  limitReturns: <Result>(
    request: HttpBindings['incoming'],
    work: (onRefused: () => void) => Promise<Result>,
  ) => Promise<Result>;
  welcomePerson: (identity: Identity) => Promise<{ userId: string; workspaceId: string }>;
  random: Random;
  /** Epoch milliseconds. */
  now: () => number;
  baseUrl: string;
  log: (message: string, fields: { [key: string]: unknown }) => void;
};

/** Sign-in in progress. The browser carries it sealed in a cookie until it returns from the identity provider. */
type PendingSignIn = SignIn & { returnTo: string; expiresAt: number };

const pendingSignInMs = 10 * 60_000;
const sessionMs = 7 * 24 * 60 * 60_000;
/** Binds the sealed cookie to its purpose. A change would end the sign-ins in progress. */
const sealContext = 'sign-in departure';
/**
 * Maximum number of concurrent sign-ins per browser, and maximum length of a return path: their cookies are sent with
 * every request.
 */
const maxPendingSignIns = 5;
const maxReturnPathLength = 500;

/** Creates `/login`, `/login/callback`, and `/logout`: OpenID Connect with state, nonce, and PKCE, then a session. */
export function createSignIn(deps: SignInDeps): Hono<Env> {
  const pendingCookies = createHostCookies('toolhost-sign-in', deps.baseUrl, maxPendingSignIns);
  const getPendingCookie = (state: string) => pendingCookies.withId(hashSecret(state).slice(0, 16));
  const session = getSessionCookie(deps.baseUrl);
  const basePath = getBasePath(deps.baseUrl);
  const redirectUri = deps.baseUrl + routes.loginCallback;
  const app = new Hono<Env>();

  const checkRate = (c: Context<Env>) => {
    if (!deps.canSignIn(c.env.incoming))
      throw new AppError('tooMany', 'too many sign-ins from this IP address; retry in a minute', { retryAfterS: 60 });
  };

  app.get(routes.login, async (c) => {
    checkRate(c);
    const createSecret = () => newSecret(deps.random);
    const signIn: PendingSignIn = {
      state: createSecret(),
      nonce: createSecret(),
      verifier: createSecret(),
      returnTo: toReturnPath(c.req.query('return_to'), deps.baseUrl),
      expiresAt: deps.now() + pendingSignInMs,
    };
    const sealed = deps.keyring.seal(JSON.stringify(signIn), sealContext);
    getPendingCookie(signIn.state).set(c, sealed, pendingSignInMs);
    pendingCookies.clearOldest(c);
    return c.redirect((await deps.identity.authorizationUrl(signIn, redirectUri, { offline: false })).href);
  });

  app.get(routes.loginCallback, async (c) => {
    checkRate(c);
    const state = c.req.query('state') ?? '';
    const pendingCookie = getPendingCookie(state);
    const signIn = openPendingSignIn(pendingCookie.get(c), deps);
    // A missing or forged cookie gets the same message as an expired one.
    if (signIn?.state !== state || signIn.expiresAt <= deps.now())
      throw new AppError('forbidden', 'this sign-in was started in another browser or has expired; start again');
    pendingCookie.clear(c);
    const returned = new URL(redirectUri);
    returned.search = new URL(c.req.url).search;
    const identity = await deps.limitReturns(c.env.incoming, (onRefused) =>
      identify({ returned, signIn, onRefused }, deps),
    );
    const signedIn = await deps.welcomePerson(identity);
    await startSession(c, session, signedIn, deps);
    return c.redirect(signIn.returnTo);
  });

  app.post(routes.logout, async (c) => {
    const cookie = session.get(c);
    requireSameOrigin(c.env.incoming.headers, deps.baseUrl);
    if (cookie !== undefined) await deleteSession(deps.db, hashSecret(cookie));
    session.clear(c);
    return c.redirect(basePath + routes.home, 303);
  });

  app.onError(createSignInErrorHandler(deps));
  return app;
}

/** Creates the handler that logs a failed sign-in and shows it as a page. */
export function createSignInErrorHandler({ baseUrl, log }: Pick<SignInDeps, 'baseUrl' | 'log'>) {
  const basePath = getBasePath(baseUrl);
  return (error: Error, c: Context<Env>): Response => {
    log('a sign-in failed', { message: getErrorMessage(error), detail: getCauseMessage(error) });
    const isExpected = error instanceof AppError;
    c.header('Content-Security-Policy', getPagePolicy(basePath));
    for (const [name, value] of Object.entries(isExpected ? error.headers : {})) c.header(name, value);
    const page = renderSignInFailedPage(isExpected ? error.message : 'internal error', basePath + routes.login);
    return c.html(addFont(page, basePath), (isExpected ? error.status : 500) as 400);
  };
}

type SignInReturn = { returned: URL; signIn: SignIn; onRefused: () => void };

/**
 * Identifies the person who returned. Only a refused code counts as a failed attempt, not an error response, which has
 * no code, or a provider that is down.
 */
async function identify({ returned, signIn, onRefused }: SignInReturn, { identity }: SignInDeps): Promise<Identity> {
  try {
    return await identity.identify(returned, signIn);
  } catch (error) {
    if (!returned.searchParams.has('error') && !isUnavailableError(error)) onRefused();
    throw error;
  }
}

/** Path whose segments browsers and proxies parse alike: no segment is empty, and nothing is percent-encoded. */
const plainPathPattern = /^(?:\/[\w\-.~]+)*\/?$/;

/** Returns the normalized path and query of a page below the base URL; the home page for anything else. */
export function toReturnPath(returnTo: string | undefined, baseUrl: string): string {
  const homePath = getBasePath(baseUrl) + routes.home;
  const url = returnTo?.startsWith('/') ? parseUrl(returnTo, baseUrl) : undefined;
  if (url?.origin !== new URL(baseUrl).origin || !plainPathPattern.test(url.pathname)) return homePath;
  const normalized = url.pathname + url.search;
  return url.pathname.startsWith(homePath) && normalized.length <= maxReturnPathLength ? normalized : homePath;
}

/** Opens the sealed state; undefined if this service did not seal it. */
function openPendingSignIn(sealed: string | undefined, { keyring }: SignInDeps): PendingSignIn | undefined {
  const opened = keyring.openFromClient(sealed ?? '', sealContext);
  return opened === undefined ? undefined : (JSON.parse(opened) as PendingSignIn);
}

/** Starts a new session at every sign-in, so that a session that was planted in the browser earlier is useless. */
export async function startSession(
  c: Context<Env>,
  session: HostCookie,
  person: { userId: string; workspaceId: string },
  deps: Pick<SignInDeps, 'db' | 'random' | 'now'>,
): Promise<void> {
  const previousCookie = session.get(c);
  if (previousCookie !== undefined) await deleteSession(deps.db, hashSecret(previousCookie));
  const cookie = newSecret(deps.random);
  const at = deps.now();
  await insertSession(deps.db, { ...person, hash: hashSecret(cookie), at, expiresAt: at + sessionMs });
  session.set(c, cookie, sessionMs);
}

/** Renders the page for a failed sign-in, with a link to retry. */
function renderSignInFailedPage(message: string, signInUrl: string): string {
  return renderPage(
    'Not signed in',
    html`${brand}<h1>Sign-in failed</h1>
<p>${message[0]?.toUpperCase()}${message.slice(1)}.</p>
<div class="actions"><a class="button primary" href="${signInUrl}">Sign in again</a></div>`,
  );
}
