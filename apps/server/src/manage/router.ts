import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import type { UnverifiedCallerLimits } from '@toolhost/credentials/client-request';
import { AppError } from '@toolhost/errors/errors';
import { allowSchemaField, createConfigJsonSchema, createFileJsonSchema } from '@toolhost/tool-config/server-file';
import { type Context, Hono } from 'hono';
import { NONCE, secureHeaders } from 'hono/secure-headers';
import { acceptsPage } from '../http/page.ts';
import { createErrorResponse } from '../http/problem.ts';
import { getBasePath } from '../own-hosts.ts';
import { apiPath, routes } from '../routes.ts';
import { createDashboard } from './dashboard.ts';
import type { SignInKind } from './local-sign-in.ts';
import { createDocumentHandler, createRestApi, type RestDeps, type RestEnv } from './rest.ts';

type Env = RestEnv;

export type WebDeps = RestDeps & {
  /** Returns the metadata of the REST API as a protected resource (RFC 9728). */
  apiMetadata: () => object;
  signInKind: SignInKind;
  /** Folder of the built dashboard. */
  dashboardFolder: string;
  /** Responds to `GET /metrics`. @throws AppError, Unauthenticated */
  metrics: (request: IncomingMessage) => Promise<Response>;
  /** Called after every response. The status is 0 if the client disconnected before it. */
  onResponse: (status: number) => void;
  /** Routes of the OAuth proxy, which set their own headers. */
  loginRouter: Hono<{ Bindings: HttpBindings }>;
  /** Server cards, the catalog, and other documents for directories. */
  publishedDocuments: Hono<{ Bindings: HttpBindings }>;
  /** Pages of the identity provider of local mode. */
  localSignIn: Hono<{ Bindings: HttpBindings }> | undefined;
  /** Sign-in to the dashboard. */
  signIn: Hono<{ Bindings: HttpBindings }>;
  /** Returns true if the sender may sign out again in this minute. Limited, because a sign-out queries the database. */
  canSignOut: (request: IncomingMessage) => boolean;
  unverifiedCallers: UnverifiedCallerLimits;
};

/** Creates the router for REST, the OAuth proxy, the sign-in, the published schemas, and the pages. */
export function createWebRouter(deps: WebDeps): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const web = new Hono<Env>();
  const basePath = getBasePath(deps.baseUrl);
  const respondWithError = (c: Context<Env>, error: unknown) => {
    const requestId = String(c.env.outgoing.getHeader('x-request-id'));
    const wantsHtml = !c.req.path.startsWith('/api/') && acceptsPage(c.req.method, c.req.header('accept'));
    return createErrorResponse(error, requestId, deps.onUnexpected, wantsHtml ? basePath + routes.home : undefined);
  };
  web.use(async (c, next) => {
    await next();
    const rateLimitError = c.get('isAdmitted')
      ? undefined
      : deps.unverifiedCallers.recordRefusal(c.env.incoming, c.res.status);
    if (!rateLimitError) return;
    // Reset first: Hono would copy the headers of the old response to the new one.
    c.res = undefined;
    c.res = respondWithError(c, rateLimitError);
  });
  web.route('/', deps.loginRouter);
  web.use(
    secureHeaders({
      // Pages rendered by the service set their own policy, which allows their style.
      overwrite: false,
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        // The components add style elements, for which the page contains this nonce.
        styleSrc: ["'self'", NONCE],
        connectSrc: ["'self'"],
        fontSrc: ["'self'"],
        imgSrc: ["'self'", 'data:'],
        baseUri: ["'none'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
      },
      referrerPolicy: 'same-origin',
      // Set elsewhere, on every response that should have it.
      strictTransportSecurity: false,
    }),
  );
  if (deps.localSignIn) web.route('/', deps.localSignIn);
  web.route('/', deps.publishedDocuments);
  web.get(routes.metrics, (c) => deps.metrics(c.env.incoming));
  const publicDocuments = {
    [routes.apiMetadata]: deps.apiMetadata,
    [routes.serverSchema]: () => allowSchemaField(createConfigJsonSchema(deps.baseUrl + routes.serverSchema)),
    [routes.serverFileSchema]: () => allowSchemaField(createFileJsonSchema(deps.baseUrl + routes.serverFileSchema)),
  };
  for (const [route, createDocument] of Object.entries(publicDocuments)) {
    const serve = createDocumentHandler(createDocument);
    web.get(route, (c) => {
      c.header('Access-Control-Allow-Origin', '*');
      return serve(c);
    });
  }
  addSignIn(web, deps);
  web.route(apiPath, createRestApi(deps));
  web.route('/', createDashboard(deps.dashboardFolder, deps.baseUrl, deps.signInKind));
  web.notFound(createNotFoundHandler(web, respondWithError));
  web.onError((error, c) => respondWithError(c, error));
  const listener = getRequestListener(web.fetch, {
    overrideGlobalObjects: false,
    // The code in `edge/` discards bodies that are not read.
    autoCleanupIncoming: false,
    hostname: new URL(deps.baseUrl).host,
  });
  return async (request, response) => {
    await listener(request, response);
    deps.onResponse(response.headersSent ? response.statusCode : 0);
  };
}

function addSignIn(web: Hono<Env>, { baseUrl, canSignOut, signIn }: WebDeps): void {
  // A sign-in ends at the base URL. If it began under another name of this machine, its cookie would be missing there.
  web.get(routes.login, (c, next) => {
    const isAtBaseUrl = c.req.header('host')?.toLowerCase() === new URL(baseUrl).host;
    return isAtBaseUrl ? next() : Promise.resolve(c.redirect(baseUrl + routes.login + new URL(c.req.url).search));
  });
  web.use(routes.logout, async (c, next) => {
    if (!canSignOut(c.env.incoming))
      throw new AppError('tooMany', 'too many sign-outs from this IP address; retry in a minute', { retryAfterS: 60 });
    await next();
  });
  web.route('/', signIn);
}

/** Responds to a request that matches no route, with the allowed methods if the path has routes for others. */
function createNotFoundHandler(web: Hono<Env>, respondWithError: (c: Context<Env>, error: AppError) => Response) {
  return (c: Context<Env>): Response => {
    const methods = getAllowedMethods(web, c.req.path);
    if (methods.length === 0 || methods.includes(c.req.method === 'HEAD' ? 'GET' : c.req.method))
      return respondWithError(c, new AppError('notFound', 'there is nothing at this URL'));
    const response = respondWithError(
      c,
      new AppError('methodNotAllowed', `this URL allows only ${methods.join(', ')}`),
    );
    response.headers.set('Allow', methods.join(', '));
    return response;
  };
}

/** Returns the methods that have a route for a path. Middleware matches all methods and is not counted. */
function getAllowedMethods({ router }: Hono<Env>, path: string): string[] {
  return ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((method) =>
    router.match(method, path)[0].some(([[, route]]) => route.method !== 'ALL'),
  );
}
