import type { HttpBindings } from '@hono/node-server';
import { AppError } from '@toolhost/errors/errors';
import { type Context, Hono } from 'hono';
import { routes } from '../routes.ts';
import type { IdentityOptions } from './identity.ts';

type Env = { Bindings: HttpBindings };

type LocalSignInDeps = {
  findIdentity: () => Promise<IdentityOptions>;
  /** Returns true if the sender may make another request in this minute. */
  isWithinRateLimit: (request: HttpBindings['incoming']) => boolean;
};

/** Headers that the pages of the provider read. */
const forwardedHeaders = ['accept', 'cookie', 'origin', 'sec-fetch-site', 'user-agent'] as const;

/** Headers of the connection to the provider. */
const connectionHeaders = ['connection', 'keep-alive', 'transfer-encoding'];

/**
 * Serves the pages of the identity provider of local mode on the service's own port, so that forwarding one port is
 * enough. Its other endpoints are only for this service, which calls the provider directly.
 */
export function createLocalSignIn({ findIdentity, isWithinRateLimit }: LocalSignInDeps): Hono<Env> {
  const router = new Hono<Env>();
  const forward = async (c: Context<Env>) => {
    if (!isWithinRateLimit(c.env.incoming))
      throw new AppError('tooMany', 'too many sign-ins from this IP address; retry in a minute', { retryAfterS: 60 });
    const { issuer, internalOrigin } = await findIdentity();
    const { pathname, search } = new URL(c.req.url);
    const target = `${internalOrigin}${new URL(issuer).pathname}${pathname.slice(routes.localIdentity.length)}${search}`;
    const headers = forwardedHeaders.flatMap((name): [string, string][] => {
      const value = c.req.header(name);
      return value === undefined ? [] : [[name, value]];
    });
    // No page of the provider reads a body.
    const response = await fetch(target, { method: c.req.method, headers, redirect: 'manual' });
    const page = new Response(response.body, { status: response.status, headers: response.headers });
    for (const name of connectionHeaders) page.headers.delete(name);
    return page;
  };
  router.get(`${routes.localIdentity}/auth/:uid?`, forward);
  router.on(['GET', 'POST'], `${routes.localIdentity}/interaction/:uid`, forward);
  return router;
}
