import type { HttpBindings } from '@hono/node-server';
import type { QueryCharge } from '@toolhost/credentials/client-request';
import { AppError, errorDescription, OAuthError, oauthErrorStatus, toOAuthErrorCode } from '@toolhost/errors/errors';
import type { MemoryBudget } from '@toolhost/limits/memory-budget';
import { parseMediaType } from '@toolhost/tool-config/http/headers';
import { parseFormFields } from '@toolhost/tool-config/http/values';
import { type Context, Hono } from 'hono';
import { addFont, getPagePolicy } from '../http/page.ts';
import { checkBodyHeaders, readBody } from '../http/read-body.ts';
import { getBasePath } from '../own-hosts.ts';
import { buildUrl, routes } from '../routes.ts';
import { authorize } from './authorize.ts';
import { handleAccountChoice, handleCallback } from './callback.ts';
import { clientAuthMethods, registerClient, type TokenEndpointRequest, usesBasic } from './clients.ts';
import { getStateHost, handleDecision } from './consent.ts';
import { finishIdentification, parseIdentityState } from './identification.ts';
import { renderOAuthErrorPage } from './login-pages.ts';
import {
  type BrowserResponse,
  type ErrorReporter,
  type LoginServer,
  type OAuthDeps,
  offlineScope,
  type RequestDeps,
} from './oauth-deps.ts';
import { handleRevocation, handleTokenRequest } from './token.ts';

type Env = { Bindings: HttpBindings };

export type OAuthRouterDeps = ErrorReporter & {
  oauth: OAuthDeps;
  /** Returns true if the sender may make another request in this minute. Rate limit of the public endpoints. */
  isWithinRateLimit: (request: HttpBindings['incoming']) => boolean;
  /** Returns the charge for a query about a slug, which the sender may have made up. */
  getQueryCharge: (request: HttpBindings['incoming']) => QueryCharge;
  /**
   * Limits how often a sender can cause requests to a server's provider. Call `onCodeRefused` if the provider refused a
   * code.
   */
  limitReturns: <Result>(
    request: HttpBindings['incoming'],
    serverId: string,
    work: (onCodeRefused: () => void) => Promise<Result>,
  ) => Promise<Result>;
  memory: MemoryBudget;
  /** Returns the network of a request, as used by limits. */
  getNetwork: (request: HttpBindings['incoming']) => string;
};

export const maxLoginBodyBytes = 64 * 1024;

/** Creates the routes of the authorization server. Errors become pages for people and JSON for clients. */
export function createOAuthRouter(deps: OAuthRouterDeps): Hono<Env> {
  const router = new Hono<Env>();
  addDiscovery(router, deps);
  addPages(router, deps);
  addIdentityReturn(router, deps);
  addClientEndpoints(router, deps);
  return router;
}

function getRequestId(c: Context<Env>): string {
  return String(c.env.outgoing.getHeader('x-request-id'));
}

/**
 * Finds a server with a login. @throws AppError notFound; tooMany for an address that has requested many unknown
 * servers
 */
async function findServer(c: Context<Env>, deps: OAuthRouterDeps): Promise<LoginServer> {
  // Internal checks of this service have no sender.
  const sender = (c.env as HttpBindings | undefined)?.incoming;
  const chargeQuery = sender && deps.getQueryCharge(sender);
  const server = await deps.oauth.findServer(c.req.param('slug') ?? '', chargeQuery);
  if (!server) throw createNotFoundError();
  return withRequestHost(server, c.req.header('host'), deps.oauth);
}

/** Returns a server as seen under the requested host. In local mode, all names of this machine lead to it. */
function withRequestHost(server: LoginServer, host: string | undefined, { ownHosts, baseUrl }: OAuthDeps): LoginServer {
  if (ownHosts.names.size === 1) return server;
  const path = server.issuer.slice(baseUrl.length);
  const aliases = [...ownHosts.names].map((name) => ownHosts.getBaseUrl(name) + path);
  return { ...server, issuer: ownHosts.getBaseUrl(host) + path, aliases };
}

/**
 * Returns the URL of a callback at the host where its login started, which the state names. The provider redirects to
 * the host of BASE_URL. Returns undefined if the login started there, or if the host is not a name of this machine.
 */
function getStartUrl(c: Context<Env>, host: string | undefined, { ownHosts }: OAuthDeps): string | undefined {
  if (host === undefined || !ownHosts.names.has(host) || host === c.req.header('host')?.toLowerCase()) return undefined;
  const { pathname, search } = new URL(c.req.url);
  return ownHosts.getBaseUrl(host) + pathname + search;
}

const createNotFoundError = () => new AppError('notFound', 'there is no login at this URL');

function addDiscovery(router: Hono<Env>, deps: OAuthRouterDeps): void {
  const respondWithDocument =
    (describeServer: (server: LoginServer, c: Context<Env>) => object) => async (c: Context<Env>) => {
      c.header('Access-Control-Allow-Origin', '*');
      return c.json(describeServer(await findServer(c, deps), c));
    };
  const serverDocument = respondWithDocument((server, c) =>
    toServerMetadata(server, { ...deps.oauth, baseUrl: deps.oauth.ownHosts.getBaseUrl(c.req.header('host')) }),
  );
  router.get(
    routes.resourceMetadata,
    respondWithDocument((server, c) => toResourceMetadata(server, getUrlAtHost(server, c))),
  );
  router.get(
    routes.viewMetadata,
    respondWithDocument((server, c) => {
      const view = server.findView(c.req.param('view') ?? '');
      if (!view) throw createNotFoundError();
      return toResourceMetadata(server, `${getUrlAtHost(server, c)}/${view.name}`, view.title);
    }),
  );
  for (const route of [routes.serverMetadata, routes.serverMetadataFallback]) router.get(route, serverDocument);
}

/** Returns the URL of a server on the requested host. */
function getUrlAtHost({ issuer, serverHostUrl }: LoginServer, c: Context<Env>): string {
  const host = c.req.header('host')?.toLowerCase();
  return serverHostUrl !== undefined && new URL(serverHostUrl).host === host ? serverHostUrl : issuer;
}

/** Adds the pages for people. No page redirects before the target is verified. */
function addPages(router: Hono<Env>, deps: OAuthRouterDeps): void {
  const respondWithPage =
    (handle: (c: Context<Env>, server: LoginServer) => Promise<BrowserResponse>) => async (c: Context<Env>) => {
      setPageHeaders(c, deps);
      try {
        checkRate(c, deps);
        return send(c, await handle(c, await findServer(c, deps)), deps);
      } catch (caught) {
        return sendErrorPage(c, caught, deps);
      }
    };
  const getQuery = (c: Context<Env>) => new URL(c.req.url).searchParams;
  router.get(
    routes.authorize,
    respondWithPage((c, server) => authorize(server, getQuery(c), c.req.header('cookie'), withNetwork(c, deps))),
  );
  const returnFromProvider = (c: Context<Env>, server: LoginServer, query: URLSearchParams) => {
    const callbackRequest = { query, cookieHeader: c.req.header('cookie'), requestId: getRequestId(c) };
    return deps.limitReturns(c.env.incoming, server.id, (onCodeRefused) =>
      handleCallback(server, callbackRequest, { ...deps.oauth, onUnexpected: deps.onUnexpected, onCodeRefused }),
    );
  };
  router.get(
    routes.callback,
    respondWithPage(async (c, server) => {
      if (server.provider?.returnsForm)
        throw new OAuthError('invalid_request', 'the provider must return with a form (response_mode form_post)');
      const location = getStartUrl(c, getStateHost(c.req.query('state')), deps.oauth);
      if (location !== undefined) return { status: 302, html: '', location };
      return returnFromProvider(c, server, getQuery(c));
    }),
  );
  router.post(
    routes.callback,
    respondWithPage(async (c, server) => {
      if (!server.provider?.returnsForm) {
        c.header('Allow', 'GET');
        throw new AppError('methodNotAllowed', 'this URL allows only GET');
      }
      return returnFromProvider(c, server, await readForm(c, deps));
    }),
  );
  router.post(
    routes.accountChoice,
    respondWithPage(async (c, server) => {
      const [cookie, fetchSite] = [c.req.header('cookie'), c.req.header('sec-fetch-site')];
      const headers = { cookie, fetchSite, requestId: getRequestId(c) };
      return handleAccountChoice(server, await readForm(c, deps), headers, {
        ...deps.oauth,
        onUnexpected: deps.onUnexpected,
      });
    }),
  );
  router.post(
    routes.consent,
    respondWithPage(async (c, server) =>
      handleDecision(
        server,
        {
          form: await readForm(c, deps),
          headers: { cookie: c.req.header('cookie'), fetchSite: c.req.header('sec-fetch-site') },
          requestId: getRequestId(c),
        },
        deps.oauth,
      ),
    ),
  );
}

/**
 * Adds the return from the identity provider of this service to a login at a server. All servers share this URL with
 * the sign-in to the dashboard, because it is the only one that is registered there. The state names the server.
 */
function addIdentityReturn(router: Hono<Env>, deps: OAuthRouterDeps): void {
  router.get(routes.loginCallback, async (c, next) => {
    const state = parseIdentityState(c.req.query('state'));
    if (state === undefined) return next();
    setPageHeaders(c, deps);
    try {
      checkRate(c, deps);
      const location = getStartUrl(c, state.host, deps.oauth);
      if (location !== undefined) return send(c, { status: 302, html: '', location }, deps);
      const found = await deps.oauth.findServer(state.slug, deps.getQueryCharge(c.env.incoming));
      if (!found) throw createNotFoundError();
      const server = withRequestHost(found, c.req.header('host'), deps.oauth);
      const request = {
        query: new URL(c.req.url).searchParams,
        cookieHeader: c.req.header('cookie'),
        requestId: getRequestId(c),
      };
      const response = await deps.limitReturns(c.env.incoming, server.id, (onCodeRefused) =>
        finishIdentification(server, request, { ...withNetwork(c, deps), onCodeRefused }),
      );
      return send(c, response, deps);
    } catch (caught) {
      return sendErrorPage(c, caught, deps);
    }
  });
}

/** Adds the endpoints for client software. */
function addClientEndpoints(router: Hono<Env>, deps: OAuthRouterDeps): void {
  const respondWithJson =
    (handle: (c: Context<Env>, server: LoginServer) => Promise<Response>) => async (c: Context<Env>) => {
      c.header('Access-Control-Allow-Origin', '*');
      c.header('Cache-Control', 'no-store');
      try {
        checkRate(c, deps);
        return await handle(c, await findServer(c, deps));
      } catch (caught) {
        return sendErrorJson(c, caught, deps);
      }
    };
  router.post(
    routes.register,
    respondWithJson(async (c, server) => c.json(registerClient(server.id, await readJson(c, deps), deps.oauth), 201)),
  );
  router.post(
    routes.token,
    respondWithJson(async (c, server) =>
      c.json(await handleTokenRequest(server, await readClientRequest(c, deps), withNetwork(c, deps))),
    ),
  );
  router.post(
    routes.revoke,
    respondWithJson(async (c, server) => {
      const revocation = { requestId: getRequestId(c), isTrial: false };
      await handleRevocation(server, await readClientRequest(c, deps), revocation, withNetwork(c, deps));
      return c.body(null, 200);
    }),
  );
}

function withNetwork(c: Context<Env>, deps: OAuthRouterDeps): RequestDeps {
  return { ...deps.oauth, network: deps.getNetwork(c.env.incoming) };
}

function checkRate(c: Context<Env>, deps: OAuthRouterDeps): void {
  if (!deps.isWithinRateLimit(c.env.incoming))
    throw new OAuthError('slow_down', 'too many requests from this address; wait a minute');
}

async function readForm(c: Context<Env>, deps: OAuthRouterDeps): Promise<URLSearchParams> {
  if (parseMediaType(c.req.header('content-type')) !== 'application/x-www-form-urlencoded') {
    throw new OAuthError('invalid_request', 'Content-Type must be application/x-www-form-urlencoded');
  }
  const form = parseFormFields(await readBodyText(c, deps));
  if (!form) throw new OAuthError('invalid_request', 'the form has more than 500 fields');
  return form;
}

async function readClientRequest(c: Context<Env>, deps: OAuthRouterDeps): Promise<TokenEndpointRequest> {
  return { form: await readForm(c, deps), authorization: c.req.header('authorization') };
}

async function readJson(c: Context<Env>, deps: OAuthRouterDeps): Promise<unknown> {
  const text = await readBodyText(c, deps);
  try {
    return JSON.parse(text);
  } catch {
    throw new OAuthError('invalid_client_metadata', 'the body is not JSON');
  }
}

async function readBodyText(c: Context<Env>, { memory, getNetwork }: OAuthRouterDeps): Promise<string> {
  const { incoming } = c.env;
  checkBodyHeaders(incoming, maxLoginBodyBytes);
  const reservation = memory.reserve('', getNetwork(incoming));
  return readBody(incoming, maxLoginBodyBytes, { reservation })
    .then((body) => body.toString('utf8'))
    .finally(() => reservation.release());
}

function setPageHeaders(c: Context<Env>, { oauth }: OAuthRouterDeps): void {
  c.header('Content-Security-Policy', getPagePolicy(getBasePath(oauth.baseUrl)));
  c.header('X-Frame-Options', 'DENY');
  // With no-referrer the browser would send our own form with the origin "null".
  c.header('Referrer-Policy', 'same-origin');
  c.header('Cache-Control', 'no-store');
}

function send(
  c: Context<Env>,
  { status, html, location, cookies = [] }: BrowserResponse,
  { oauth }: OAuthRouterDeps,
): Response {
  for (const cookie of cookies) c.header('Set-Cookie', cookie, { append: true });
  if (location !== undefined) c.header('Location', location);
  return c.html(addFont(html, getBasePath(oauth.baseUrl)), status as 200);
}

/** Converts a caught error to the error of the response. Logs its details, and sets the headers of an AppError. */
function toErrorResponse(c: Context<Env>, caught: unknown, logMessage: string, deps: OAuthRouterDeps) {
  if (caught instanceof AppError) {
    for (const [name, value] of Object.entries(caught.headers)) c.header(name, value);
    return { error: new OAuthError(toOAuthErrorCode(caught), caught.message), status: caught.status };
  }
  if (!(caught instanceof OAuthError)) deps.onUnexpected(caught, getRequestId(c));
  const error = caught instanceof OAuthError ? caught : new OAuthError('server_error', 'an internal error occurred');
  const { code, message, detail } = error;
  if (detail !== undefined) deps.oauth.log(logMessage, { error: code, message, detail });
  return { error, status: oauthErrorStatus[code] };
}

function sendErrorPage(c: Context<Env>, caught: unknown, deps: OAuthRouterDeps): Response {
  const { error, status } = toErrorResponse(c, caught, 'a login was refused', deps);
  // A 401, the status of an unknown client, would make browsers ask for a password.
  const pageStatus = status === 401 ? 400 : status;
  const displayedStatus = error.code === 'access_denied' ? 403 : pageStatus;
  return send(c, { status: displayedStatus, html: renderOAuthErrorPage(error, getRequestId(c)) }, deps);
}

function sendErrorJson(c: Context<Env>, caught: unknown, deps: OAuthRouterDeps): Response {
  const { error, status } = toErrorResponse(c, caught, 'a client was refused', deps);
  if (error.code === 'slow_down') c.header('Retry-After', '60');
  // Names the scheme that the client used (RFC 6749, 5.2). Any other client must not make a browser ask for a password.
  if (error.code === 'invalid_client')
    c.header('WWW-Authenticate', usesBasic(c.req.header('authorization')) ? 'Basic realm="Toolhost"' : 'Bearer');
  return c.json({ error: error.code, error_description: errorDescription(error.message) }, status as 400);
}

type DescribedServer = Pick<LoginServer, 'issuer' | 'slug' | 'name' | 'scopes'>;

/**
 * Returns the protected resource metadata (RFC 9728, 2) of a server or a view, whose title is `name`. `resource` is
 * exactly the URL that people configure. The authorization server is the server's in both cases.
 */
export function toResourceMetadata(server: DescribedServer, resource: string, name = server.name): object {
  return {
    resource,
    authorization_servers: [server.issuer],
    ...toAdvertisedScopes(server.scopes),
    bearer_methods_supported: ['header'],
    resource_name: name,
  };
}

/** Returns the authorization server metadata (RFC 8414, 2; RFC 9207, 3; CIMD draft). */
function toServerMetadata(
  server: DescribedServer & Pick<LoginServer, 'mode'>,
  { baseUrl, acceptsDocuments }: Pick<OAuthDeps, 'baseUrl' | 'acceptsDocuments'>,
): object {
  const toUrl = (route: Parameters<typeof buildUrl>[1]) => buildUrl(baseUrl, route, server.slug);
  return {
    issuer: server.issuer,
    authorization_endpoint: toUrl(routes.authorize),
    token_endpoint: toUrl(routes.token),
    registration_endpoint: toUrl(routes.register),
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: clientAuthMethods,
    ...(server.mode === 'issued' && {
      // With passthrough, agents hold tokens that only the provider can revoke.
      revocation_endpoint: toUrl(routes.revoke),
      revocation_endpoint_auth_methods_supported: clientAuthMethods,
    }),
    ...toAdvertisedScopes(server.scopes),
    authorization_response_iss_parameter_supported: true,
    ...(acceptsDocuments && { client_id_metadata_document_supported: true }),
  };
}

/** Returns the advertised scopes. Omits an empty list (RFC 8414, 3.2; RFC 9728, 3.2). */
function toAdvertisedScopes(scopes: readonly string[]): { scopes_supported?: string[] } {
  const advertised = scopes.filter((scope) => scope !== offlineScope);
  return advertised.length > 0 ? { scopes_supported: advertised } : {};
}
