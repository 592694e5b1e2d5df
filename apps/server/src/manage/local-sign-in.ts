import type { HttpBindings } from '@hono/node-server';
import { hashSecret, type Random } from '@toolhost/credentials/ids';
import { AppError } from '@toolhost/errors/errors';
import { type Context, Hono } from 'hono';
import { html } from 'hono/html';
import { addFont, brand, getPagePolicy, type Markup, renderPage } from '../http/page.ts';
import { getBasePath } from '../own-hosts.ts';
import { routes } from '../routes.ts';
import type { Db } from '../store/db.ts';
import { findSession } from '../store/people/sessions.ts';
import { consumeSignInLink, isSignInLinkValid } from '../store/people/sign-in-links.ts';
import { programName } from '../version.ts';
import { getSessionCookie, requireSameOrigin } from './actors.ts';
import type { IdentityOptions } from './identity.ts';
import { createSignInErrorHandler, startSession, toReturnPath } from './sign-in.ts';

type Env = { Bindings: HttpBindings };

/** How people sign in: at an identity provider or, in local mode, with one click or only with a sign-in link. */
export type SignInKind = 'provider' | 'click' | 'link';

type LocalSignInDeps = {
  db: Db;
  random: Random;
  /** Epoch milliseconds. */
  now: () => number;
  baseUrl: string;
  log: (message: string, fields: { [key: string]: unknown }) => void;
  /** Returns the only person of local mode. */
  welcomePerson: () => Promise<{ userId: string; workspaceId: string }>;
  findIdentity: () => Promise<IdentityOptions>;
  /** Returns true if the sender may make another request in this minute. */
  isWithinRateLimit: (request: HttpBindings['incoming']) => boolean;
  /** True if one click is not enough to sign in. */
  requiresLink: boolean;
};

/** Headers that the pages of the provider read. */
const forwardedHeaders = ['accept', 'cookie', 'user-agent'] as const;

/** Headers of the connection to the provider. */
const connectionHeaders = ['connection', 'keep-alive', 'transfer-encoding'];

/**
 * Creates the sign-in of local mode, which has one person. The person agrees by one click, or by opening a sign-in link,
 * which no one else can know. Agents that log in at the management server are redirected through the identity
 * provider of local mode.
 */
export function createLocalSignIn(deps: LocalSignInDeps): Hono<Env> {
  const { db, now, baseUrl, requiresLink } = deps;
  const basePath = getBasePath(baseUrl);
  const session = getSessionCookie(baseUrl);
  const router = new Hono<Env>();
  const checkRate = (c: Context<Env>) => {
    if (!deps.isWithinRateLimit(c.env.incoming))
      throw new AppError('tooMany', 'too many sign-ins from this IP address; retry in a minute', { retryAfterS: 60 });
  };
  const isSignedIn = async (c: Context<Env>) => {
    const cookie = session.get(c);
    return cookie !== undefined && (await findSession(db, hashSecret(cookie), now())) !== undefined;
  };

  /**
   * Serves a page of the identity provider on the service's own port, so that forwarding one port is enough. Its other
   * endpoints are only for this service, which calls the provider directly.
   */
  async function forward(c: Context<Env>): Promise<Response> {
    checkRate(c);
    const { issuer, internalOrigin } = await deps.findIdentity();
    const { pathname, search } = new URL(c.req.url);
    const target = `${internalOrigin}${new URL(issuer).pathname}${pathname.slice(routes.localIdentity.length)}${search}`;
    const headers = forwardedHeaders.flatMap((name): [string, string][] => {
      const value = c.req.header(name);
      return value === undefined ? [] : [[name, value]];
    });
    const response = await fetch(target, { headers, redirect: 'manual' });
    const page = new Response(response.body, { status: response.status, headers: response.headers });
    for (const name of connectionHeaders) page.headers.delete(name);
    return page;
  }

  const showPage = (c: Context<Env>, page: string, status: 200 | 410 = 200) => {
    c.header('Content-Security-Policy', getPagePolicy(basePath));
    return c.html(addFont(page, basePath), status);
  };

  router.get(routes.login, (c) =>
    showPage(c, renderSignInPage(requiresLink, basePath, toReturnPath(c.req.query('return_to'), baseUrl))),
  );

  router.post(routes.login, async (c) => {
    checkRate(c);
    if (requiresLink)
      throw new AppError('forbidden', 'only a sign-in link signs in to this service, because it runs in a container');
    requireSameOrigin(c.env.incoming.headers, baseUrl);
    await startSession(c, session, await deps.welcomePerson(), deps);
    return c.redirect(toReturnPath(c.req.query('return_to'), baseUrl), 303);
  });

  router.get(routes.signInLink, async (c) => {
    checkRate(c);
    const hash = hashSecret(c.req.param('secret'));
    const { method, headers } = c.env.incoming;
    // A program that checks the link and a browser that loads it in advance do not use it up.
    if (method === 'HEAD' || headers['sec-purpose'] !== undefined)
      return c.body(null, (await isSignInLinkValid(db, hash, now())) ? 204 : 410);
    if (await consumeSignInLink(db, hash, now())) await startSession(c, session, await deps.welcomePerson(), deps);
    else if (!(await isSignedIn(c))) return showPage(c, renderUsedLinkPage(requiresLink, basePath), 410);
    return c.redirect(basePath + routes.home);
  });

  router.get(`${routes.localIdentity}/auth/:uid?`, forward);
  router.get(`${routes.localIdentity}/interaction/:uid`, forward);
  router.onError(createSignInErrorHandler(deps));
  return router;
}

/** Renders the button that signs the person of local mode in, or how to get a sign-in link. */
export function renderLocalSignIn(requiresLink: boolean, basePath: string, returnTo: string): Markup {
  if (requiresLink)
    return html`<p class="soft">Open the link that the start of the service printed. To get a new one, run this command in its container:</p>
<pre>${programName} open</pre>`;
  const action = `${basePath}${routes.login}?return_to=${encodeURIComponent(returnTo)}`;
  return html`<div class="actions"><form method="post" action="${action}"><button class="primary" type="submit">Sign in</button></form></div>`;
}

function renderSignInPage(requiresLink: boolean, basePath: string, returnTo: string): string {
  const mode = requiresLink
    ? 'Local mode in a container: one user, who signs in with a link.'
    : 'Local mode: one user, no password.';
  return renderPage(
    'Sign in',
    html`${brand}<h1 class="sign-in">Sign in</h1>
<p class="soft">${mode}</p>
${renderLocalSignIn(requiresLink, basePath, returnTo)}`,
  );
}

function renderUsedLinkPage(requiresLink: boolean, basePath: string): string {
  const command = requiresLink ? 'in its container' : 'on the machine of Toolhost, or sign in here';
  return renderPage(
    'Sign-in link not valid',
    html`${brand}<h1>This sign-in link was used or has expired</h1>
<p class="soft">A link works once, within 15 minutes. To get a new one, run this command ${command}.</p>
<pre>${programName} open</pre>
${requiresLink ? '' : renderLocalSignIn(false, basePath, basePath + routes.home)}`,
  );
}
