import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { html } from 'hono/html';
import { basePathOf } from '../domain/http/own-hosts.ts';
import { readUrl } from '../domain/http/read-url.ts';
import { hashOf, newSecret, type Random } from '../domain/ids.ts';
import { AppError, isUnavailable, messageOf } from '../errors.ts';
import { type HostCookie, hostCookies } from '../http/cookies.ts';
import { page, pagePolicy } from '../http/page.ts';
import { routes } from '../routes.ts';
import type { Db } from '../store/db.ts';
import { deleteSession, insertSession } from '../store/people/sessions.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import { checkOwnPage, sessionCookie } from './actors.ts';
import { causeOf, type Identity, type IdentityProvider, type SignIn } from './identity.ts';

type Env = { Bindings: HttpBindings };

type SignInParts = {
  db: Db;
  keyring: Keyring;
  identity: IdentityProvider;
  /** Rate limit: returns true if the sender may begin or end one more sign-in in this minute. */
  mayAsk: (request: HttpBindings['incoming']) => boolean;
  /**
   * Limits how often a sender can trigger requests to the identity provider. `failed` is called if the provider refused
   * a code.
   */
  returns: <Result>(
    request: HttpBindings['incoming'],
    work: (failed: () => void) => Promise<Result>,
  ) => Promise<Result>;
  welcome: (identity: Identity) => Promise<{ userId: string; workspaceId: string }>;
  random: Random;
  /** Epoch milliseconds. */
  now: () => number;
  baseUrl: string;
  log: (message: string, fields: { [key: string]: unknown }) => void;
};

/** State of a sign-in, which the browser carries sealed in a cookie until it returns. */
type Departure = SignIn & { returnTo: string; expiresAt: number };

const departureMs = 10 * 60_000;
const sessionMs = 7 * 24 * 60 * 60_000;
const sealContext = 'sign-in departure';
/**
 * Maximum number of concurrent sign-ins per browser, and maximum length of a return path: their cookies are sent with
 * every request.
 */
const mostDepartures = 5;
const longestPath = 500;

/**
 * Creates `/login`, `/login/callback`, and `/logout`: OpenID Connect with state, nonce, and PKCE, then a session of
 * Toolhost.
 */
export function createSignIn(parts: SignInParts): Hono<Env> {
  const departures = hostCookies('toolhost-sign-in', parts.baseUrl, mostDepartures);
  const departureOf = (state: string) => departures.named(hashOf(state).slice(0, 16));
  const session = sessionCookie(parts.baseUrl);
  const basePath = basePathOf(parts.baseUrl);
  const redirectUri = parts.baseUrl + routes.loginCallback;
  const app = new Hono<Env>();

  const checkRate = (c: Context<Env>) => {
    if (!parts.mayAsk(c.env.incoming))
      throw new AppError('tooMany', 'too many sign-ins from this IP address; retry in a minute', { retryAfterS: 60 });
  };

  app.get(routes.login, async (c) => {
    checkRate(c);
    const secret = () => newSecret(parts.random);
    const signIn: Departure = {
      state: secret(),
      nonce: secret(),
      verifier: secret(),
      returnTo: ownPath(c.req.query('return_to'), parts.baseUrl),
      expiresAt: parts.now() + departureMs,
    };
    const sealed = parts.keyring.seal(JSON.stringify(signIn), sealContext);
    departureOf(signIn.state).set(c, sealed, departureMs);
    departures.clearOlder(c);
    return c.redirect((await parts.identity.authorizationUrl(signIn, redirectUri)).href);
  });

  app.get(routes.loginCallback, async (c) => {
    checkRate(c);
    const state = c.req.query('state') ?? '';
    const own = departureOf(state);
    const signIn = openDeparture(own.get(c), parts);
    // A missing or forged cookie gets the same message as an expired one.
    if (signIn?.state !== state || signIn.expiresAt <= parts.now())
      throw new AppError('forbidden', 'this sign-in was started in another browser or has expired; start again');
    own.clear(c);
    const returned = new URL(redirectUri);
    returned.search = new URL(c.req.url).search;
    const identity = await parts.returns(c.env.incoming, (failed) => identify({ returned, signIn, failed }, parts));
    const person = await parts.welcome(identity);
    await startSession(c, session, person, parts);
    return c.redirect(signIn.returnTo);
  });

  app.post(routes.logout, async (c) => {
    const cookie = session.get(c);
    checkOwnPage(c.env.incoming.headers, parts.baseUrl);
    if (cookie !== undefined) await deleteSession(parts.db, hashOf(cookie));
    session.clear(c);
    return c.redirect(basePath + routes.home, 303);
  });

  app.onError((error, c) => {
    parts.log('a sign-in failed', { message: messageOf(error), detail: causeOf(error) });
    const status = error instanceof AppError ? error.status : 500;
    c.header('Content-Security-Policy', pagePolicy);
    for (const [name, value] of Object.entries(error instanceof AppError ? error.headers : {})) c.header(name, value);
    return c.html(
      signInFailedPage(error instanceof AppError ? error.message : 'internal error', basePath + routes.login),
      status as 400,
    );
  });
  return app;
}

type Return = { returned: URL; signIn: SignIn; failed: () => void };

/**
 * Identifies the person who returned. An error response has no code, and a provider that is down refuses none, so
 * neither counts as a failed attempt.
 */
async function identify({ returned, signIn, failed }: Return, { identity }: SignInParts): Promise<Identity> {
  try {
    return await identity.identify(returned, signIn);
  } catch (error) {
    if (!returned.searchParams.has('error') && !isUnavailable(error)) failed();
    throw error;
  }
}

/** Path whose segments browsers and proxies parse alike: no segment is empty, and nothing is percent-encoded. */
const plainPath = /^(?:\/[\w\-.~]+)*\/?$/;

/**
 * Returns the path and query of a page below the base URL, normalized as browsers do it; the home page for anything
 * else.
 */
function ownPath(path: string | undefined, baseUrl: string): string {
  const home = basePathOf(baseUrl) + routes.home;
  const url = path?.startsWith('/') ? readUrl(path, baseUrl) : undefined;
  if (url?.origin !== new URL(baseUrl).origin || !plainPath.test(url.pathname)) return home;
  const normalized = url.pathname + url.search;
  return url.pathname.startsWith(home) && normalized.length <= longestPath ? normalized : home;
}

/** Opens the sealed state; undefined if this service did not seal it. */
function openDeparture(sealed: string | undefined, { keyring }: SignInParts): Departure | undefined {
  const opened = keyring.openReturned(sealed ?? '', sealContext);
  return opened === undefined ? undefined : (JSON.parse(opened) as Departure);
}

/** Starts a new session at every sign-in, so that a session that was planted in the browser earlier is useless. */
async function startSession(
  c: Context<Env>,
  session: HostCookie,
  person: { userId: string; workspaceId: string },
  parts: SignInParts,
): Promise<void> {
  const before = session.get(c);
  if (before !== undefined) await deleteSession(parts.db, hashOf(before));
  const cookie = newSecret(parts.random);
  const at = parts.now();
  await insertSession(parts.db, { ...person, hash: hashOf(cookie), at, expiresAt: at + sessionMs });
  session.set(c, cookie, sessionMs);
}

/** Renders the page for a failed sign-in, with a link to retry. */
function signInFailedPage(message: string, again: string): string {
  return page(
    'Not signed in',
    html`<h1>Sign-in failed</h1>
<p>${message[0]?.toUpperCase()}${message.slice(1)}.</p>
<div class="actions"><a class="button primary" href="${again}">Sign in again</a></div>`,
  );
}
