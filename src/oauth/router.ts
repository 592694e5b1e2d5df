import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { mediaTypeOf } from '../domain/http/headers.ts';
import { formFields } from '../domain/http/values.ts';
import type { Lookup } from '../domain/visit.ts';
import type { MemoryBudget } from '../domain/work/memory-budget.ts';
import { AppError, errorDescription, OAuthError, oauthCodeOf, oauthErrorStatus } from '../errors.ts';
import { pagePolicy } from '../http/page.ts';
import { checkBodyHeaders, readBody } from '../http/read-body.ts';
import { routes, urlOf } from '../routes.ts';
import { callback } from './callback.ts';
import { type ClientRequest, usesBasic } from './client-authentication.ts';
import { clientAuthMethods, registerClient } from './clients.ts';
import { authorize, decide, hostOfState } from './consent.ts';
import { errorPage } from './pages.ts';
import {
  type FaultReport,
  type LoginServer,
  type OAuthAnswer,
  type OAuthParts,
  offlineScope,
  type RequestParts,
} from './parts.ts';
import { redeem, revoke } from './token.ts';

type Env = { Bindings: HttpBindings };

export type OAuthRouterParts = OAuthParts &
  FaultReport & {
    /** Returns true if the sender may make another request in this minute. Rate limit of the public endpoints. */
    mayAsk: (request: HttpBindings['incoming']) => boolean;
    /** Returns the charge for a query about a slug, which the sender may have made up. */
    lookFor: (request: HttpBindings['incoming']) => Lookup;
    /**
     * Limits how often a sender can cause requests to a server's provider. Call `failed` if the provider refused a
     * code.
     */
    returns: <Result>(
      request: HttpBindings['incoming'],
      serverId: string,
      work: (failed: () => void) => Promise<Result>,
    ) => Promise<Result>;
    memory: MemoryBudget;
    /** Returns the network of a request, as used by limits. */
    networkOf: (request: HttpBindings['incoming']) => string;
  };

export const mostLoginBodyBytes = 64 * 1024;

/** Creates the routes of the authorization server. Errors become pages for people and JSON for clients. */
export function createOAuthRouter(parts: OAuthRouterParts): Hono<Env> {
  const http = new Hono<Env>();
  addDiscovery(http, parts);
  addPages(http, parts);
  addClientEndpoints(http, parts);
  return http;
}

function requestIdOf(c: Context<Env>): string {
  return String(c.env.outgoing.getHeader('x-request-id'));
}

/**
 * Finds a server with a login. @throws AppError notFound; tooMany for an address that has requested many unknown
 * servers
 */
async function serverOf(c: Context<Env>, parts: OAuthRouterParts): Promise<LoginServer> {
  // Internal checks of this service have no sender.
  const sender = (c.env as HttpBindings | undefined)?.incoming;
  const look = sender && parts.lookFor(sender);
  const server = await parts.findServer(c.req.param('slug') ?? '', look);
  if (!server) throw notFound();
  return atHost(server, c.req.header('host'), parts);
}

/** Returns a server as seen under the requested host. In local mode, all names of this machine lead to it. */
function atHost(server: LoginServer, host: string | undefined, { ownHosts, baseUrl }: OAuthRouterParts): LoginServer {
  if (ownHosts.names.size === 1) return server;
  const below = server.issuer.slice(baseUrl.length);
  const aliases = [...ownHosts.names].map((name) => ownHosts.baseUrlAt(name) + below);
  return { ...server, issuer: ownHosts.baseUrlAt(host) + below, aliases };
}

/**
 * Returns the URL to which a callback belongs. The provider redirects to the host of BASE_URL, and the state names the
 * host where the login started. Returns undefined if that is this host, or not a name of this machine.
 */
function startOf(c: Context<Env>, { ownHosts }: OAuthRouterParts): string | undefined {
  const host = hostOfState(c.req.query('state'));
  if (host === undefined || !ownHosts.names.has(host) || host === c.req.header('host')?.toLowerCase()) return undefined;
  const { pathname, search } = new URL(c.req.url);
  return ownHosts.baseUrlAt(host) + pathname + search;
}

const notFound = () => new AppError('notFound', 'there is no login at this URL');

function addDiscovery(http: Hono<Env>, parts: OAuthRouterParts): void {
  const document = (describe: (server: LoginServer, c: Context<Env>) => object) => async (c: Context<Env>) => {
    c.header('Access-Control-Allow-Origin', '*');
    return c.json(describe(await serverOf(c, parts), c));
  };
  const ofServer = document((server, c) =>
    serverMetadata(server, { ...parts, baseUrl: parts.ownHosts.baseUrlAt(c.req.header('host')) }),
  );
  http.get(
    routes.resourceMetadata,
    document((server, c) => resourceMetadata(server, addressAt(server, c))),
  );
  http.get(
    routes.viewMetadata,
    document((server, c) => {
      const view = server.findView(c.req.param('view') ?? '');
      if (!view) throw notFound();
      return resourceMetadata(server, `${addressAt(server, c)}/${view.name}`, view.title);
    }),
  );
  for (const route of [routes.serverMetadata, routes.serverMetadataBelow]) http.get(route, ofServer);
}

/** Returns the URL of a server on the requested host. */
function addressAt({ issuer, ownAddress }: LoginServer, c: Context<Env>): string {
  const host = c.req.header('host')?.toLowerCase();
  return ownAddress !== undefined && new URL(ownAddress).host === host ? ownAddress : issuer;
}

/** Adds the pages for people. No page redirects before the target is verified. */
function addPages(http: Hono<Env>, parts: OAuthRouterParts): void {
  const shown =
    (answerTo: (c: Context<Env>, server: LoginServer) => Promise<OAuthAnswer>) => async (c: Context<Env>) => {
      pageHeaders(c);
      try {
        checkRate(c, parts);
        return send(c, await answerTo(c, await serverOf(c, parts)));
      } catch (thrown) {
        return sendErrorPage(c, thrown, parts);
      }
    };
  const query = (c: Context<Env>) => new URL(c.req.url).searchParams;
  http.get(
    routes.authorize,
    shown((c, server) => authorize(server, query(c), c.req.header('cookie'), partsFor(c, parts))),
  );
  http.get(
    routes.callback,
    shown(async (c, server) => {
      const location = startOf(c, parts);
      if (location !== undefined) return { status: 302, html: '', location };
      const returned = { query: query(c), cookieHeader: c.req.header('cookie'), requestId: requestIdOf(c) };
      return parts.returns(c.env.incoming, server.id, (failed) =>
        callback(server, returned, { ...parts, onCodeRefused: failed }),
      );
    }),
  );
  http.post(
    routes.consent,
    shown(async (c, server) =>
      decide(
        server,
        await formOf(c, parts),
        { cookie: c.req.header('cookie'), fetchSite: c.req.header('sec-fetch-site') },
        parts,
      ),
    ),
  );
}

/** Adds the endpoints for client software. */
function addClientEndpoints(http: Hono<Env>, parts: OAuthRouterParts): void {
  const json = (answerTo: (c: Context<Env>, server: LoginServer) => Promise<Response>) => async (c: Context<Env>) => {
    c.header('Access-Control-Allow-Origin', '*');
    c.header('Cache-Control', 'no-store');
    try {
      checkRate(c, parts);
      return await answerTo(c, await serverOf(c, parts));
    } catch (thrown) {
      return sendErrorJson(c, thrown, parts);
    }
  };
  http.post(
    routes.register,
    json(async (c, server) => c.json(registerClient(server.id, await jsonOf(c, parts), parts), 201)),
  );
  http.post(
    routes.token,
    json(async (c, server) => c.json(await redeem(server, await clientRequestOf(c, parts), partsFor(c, parts)))),
  );
  http.post(
    routes.revoke,
    json(async (c, server) => {
      await revoke(server, await clientRequestOf(c, parts), requestIdOf(c), partsFor(c, parts));
      return c.body(null, 200);
    }),
  );
}

function partsFor(c: Context<Env>, parts: OAuthRouterParts): RequestParts {
  return { ...parts, network: parts.networkOf(c.env.incoming) };
}

function checkRate(c: Context<Env>, parts: OAuthRouterParts): void {
  if (!parts.mayAsk(c.env.incoming))
    throw new OAuthError('slow_down', 'too many requests from this address; wait a minute');
}

async function formOf(c: Context<Env>, parts: OAuthRouterParts): Promise<URLSearchParams> {
  if (mediaTypeOf(c.req.header('content-type')) !== 'application/x-www-form-urlencoded') {
    throw new OAuthError('invalid_request', 'Content-Type must be application/x-www-form-urlencoded');
  }
  const form = formFields(await bodyText(c, parts));
  if (!form) throw new OAuthError('invalid_request', 'the form has more than 500 fields');
  return form;
}

async function clientRequestOf(c: Context<Env>, parts: OAuthRouterParts): Promise<ClientRequest> {
  return { form: await formOf(c, parts), authorization: c.req.header('authorization') };
}

async function jsonOf(c: Context<Env>, parts: OAuthRouterParts): Promise<unknown> {
  const text = await bodyText(c, parts);
  try {
    return JSON.parse(text);
  } catch {
    throw new OAuthError('invalid_client_metadata', 'the body is not JSON');
  }
}

async function bodyText(c: Context<Env>, { memory, networkOf }: OAuthRouterParts): Promise<string> {
  const { incoming } = c.env;
  checkBodyHeaders(incoming, mostLoginBodyBytes);
  const held = memory.hold('', networkOf(incoming));
  return readBody(incoming, mostLoginBodyBytes, { held })
    .then((body) => body.toString('utf8'))
    .finally(() => held.end());
}

function pageHeaders(c: Context<Env>): void {
  c.header('Content-Security-Policy', pagePolicy);
  c.header('X-Frame-Options', 'DENY');
  // With no-referrer the browser would send our own form with the origin "null".
  c.header('Referrer-Policy', 'same-origin');
  c.header('Cache-Control', 'no-store');
}

function send(c: Context<Env>, { status, html, location, cookies = [] }: OAuthAnswer): Response {
  for (const cookie of cookies) c.header('Set-Cookie', cookie, { append: true });
  if (location !== undefined) c.header('Location', location);
  return c.html(html, status as 200);
}

/**
 * Converts a caught error to the error of the response. Sets the headers of an AppError. `refused` is the log message.
 */
function answered(c: Context<Env>, thrown: unknown, refused: string, parts: OAuthRouterParts) {
  if (thrown instanceof AppError) {
    for (const [name, value] of Object.entries(thrown.headers)) c.header(name, value);
    return { error: new OAuthError(oauthCodeOf(thrown), thrown.message), status: thrown.status };
  }
  if (!(thrown instanceof OAuthError)) parts.onUnexpected(thrown, requestIdOf(c));
  const error = thrown instanceof OAuthError ? thrown : new OAuthError('server_error', 'an internal error occurred');
  const { code, message, detail } = error;
  if (detail !== undefined) parts.log(refused, { error: code, message, detail });
  return { error, status: oauthErrorStatus[code] };
}

function sendErrorPage(c: Context<Env>, thrown: unknown, parts: OAuthRouterParts): Response {
  const { error, status } = answered(c, thrown, 'a login was refused', parts);
  // Uses 400 for an unknown client, and 403 for a form or login of another browser. A 401 would make browsers ask for a
  // password.
  const shown = error.code === 'access_denied' ? 403 : status === 401 ? 400 : status;
  return c.html(errorPage(error, requestIdOf(c)), shown as 400);
}

function sendErrorJson(c: Context<Env>, thrown: unknown, parts: OAuthRouterParts): Response {
  const { error, status } = answered(c, thrown, 'a client was refused', parts);
  if (error.code === 'slow_down') c.header('Retry-After', '60');
  // Names the scheme that the client used (RFC 6749, 5.2). Any other client must not make a browser ask for a password.
  if (error.code === 'invalid_client')
    c.header('WWW-Authenticate', usesBasic(c.req.header('authorization')) ? 'Basic realm="Toolhost"' : 'Bearer');
  return c.json({ error: error.code, error_description: errorDescription(error.message) }, status as 400);
}

type Described = Pick<LoginServer, 'issuer' | 'slug' | 'name' | 'scopes'>;

/**
 * Returns the protected resource metadata (RFC 9728, 2) of a server or a view, whose title is `name`. `resource` is
 * exactly the URL that people configure. The authorization server is the server's in both cases.
 */
export function resourceMetadata(server: Described, resource: string, name = server.name): object {
  return {
    resource,
    authorization_servers: [server.issuer],
    ...advertisedScopes(server.scopes),
    bearer_methods_supported: ['header'],
    resource_name: name,
  };
}

/** Returns the authorization server metadata (RFC 8414, 2; RFC 9207, 3; CIMD draft). */
function serverMetadata(
  server: Described & Pick<LoginServer, 'mode'>,
  { baseUrl, takesDocuments }: Pick<OAuthParts, 'baseUrl' | 'takesDocuments'>,
): object {
  const at = (route: Parameters<typeof urlOf>[1]) => urlOf(baseUrl, route, server.slug);
  return {
    issuer: server.issuer,
    authorization_endpoint: at(routes.authorize),
    token_endpoint: at(routes.token),
    registration_endpoint: at(routes.register),
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: clientAuthMethods,
    ...(server.mode === 'issued' && {
      // With passthrough, agents hold tokens that only the provider can revoke.
      revocation_endpoint: at(routes.revoke),
      revocation_endpoint_auth_methods_supported: clientAuthMethods,
    }),
    ...advertisedScopes(server.scopes),
    authorization_response_iss_parameter_supported: true,
    ...(takesDocuments && { client_id_metadata_document_supported: true }),
  };
}

/** Returns the advertised scopes. Omits an empty list (RFC 8414, 3.2; RFC 9728, 3.2). */
function advertisedScopes(scopes: readonly string[]): { scopes_supported?: string[] } {
  const advertised = scopes.filter((scope) => scope !== offlineScope);
  return advertised.length > 0 ? { scopes_supported: advertised } : {};
}
