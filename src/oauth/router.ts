import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { mediaTypeOf } from '../domain/http/headers.ts';
import { formFields } from '../domain/http/values.ts';
import type { Lookup } from '../domain/visit.ts';
import type { MemoryBudget } from '../domain/work/memory-budget.ts';
import { AppError, errorDescription, OAuthError, oauthCodeOf, oauthErrorStatus } from '../errors.ts';
import { pagePolicy } from '../http/page.ts';
import { checkBodyHeaders, readBody } from '../http/read-body.ts';
import { routes } from '../routes.ts';
import { registerClient } from './clients/client.ts';
import { authorize } from './login/authorize.ts';
import { callback } from './login/callback.ts';
import { decide } from './login/consent.ts';
import { errorPage } from './login/pages.ts';
import type { LoginServer } from './login-server.ts';
import { resourceMetadata, serverMetadata } from './metadata.ts';
import type { FaultReport, OAuthAnswer, OAuthParts, RequestParts } from './parts.ts';
import { revoke } from './tokens/revoke.ts';
import { redeem } from './tokens/token.ts';

type Env = { Bindings: HttpBindings };

export type OAuthRouterParts = OAuthParts &
  FaultReport & {
    /** Rate limit of the open endpoints: whether the sender may make one more request in this minute. */
    mayAsk: (request: HttpBindings['incoming']) => boolean;
    /** What a query of the store for a slug, which the sender may have made up, is counted with. */
    lookFor: (request: HttpBindings['incoming']) => Lookup;
    /** Limits how often the sender has the provider of a server asked; `failed` is called when it refused a code. */
    returns: <Result>(
      request: HttpBindings['incoming'],
      serverId: string,
      work: (failed: () => void) => Promise<Result>,
    ) => Promise<Result>;
    memory: MemoryBudget;
    /** The address of a request, as limits count it. */
    networkOf: (request: HttpBindings['incoming']) => string;
  };

const maxBodyBytes = 64 * 1024;

/** Routes of the authorization server. Errors become pages for people and JSON for clients. */
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

/** A server with a login. @throws AppError notFound; tooMany for an address that asked for many that do not exist */
async function serverOf(c: Context<Env>, parts: OAuthRouterParts): Promise<LoginServer> {
  // A check of this service itself has no sender.
  const sender = (c.env as HttpBindings | undefined)?.incoming;
  const look = sender && parts.lookFor(sender);
  const server = await parts.findServer(c.req.param('slug') ?? '', look);
  if (!server) throw new AppError('notFound', 'there is no login at this address');
  return server;
}

function addDiscovery(http: Hono<Env>, parts: OAuthRouterParts): void {
  const document = (describe: (server: LoginServer, host: string) => object) => async (c: Context<Env>) => {
    c.header('Access-Control-Allow-Origin', '*');
    return c.json(describe(await serverOf(c, parts), c.req.header('host')?.toLowerCase() ?? ''));
  };
  http.get(
    routes.resourceMetadata,
    document((server, host) => resourceMetadata(server, addressAt(server, host))),
  );
  http.get(routes.viewMetadata, async (c) => {
    c.header('Access-Control-Allow-Origin', '*');
    const server = await serverOf(c, parts);
    const view = server.findView(c.req.param('view'));
    if (!view) throw new AppError('notFound', 'there is no login at this address');
    const address = addressAt(server, c.req.header('host')?.toLowerCase() ?? '');
    return c.json(resourceMetadata(server, `${address}/${view.name}`, view.title));
  });
  for (const route of [routes.serverMetadata, routes.serverMetadataBelow]) {
    http.get(
      route,
      document((server) => serverMetadata(server, parts)),
    );
  }
}

/** The address of a server on the host that was asked. */
function addressAt({ issuer, ownAddress }: LoginServer, host: string): string {
  return ownAddress !== undefined && new URL(ownAddress).host === host ? ownAddress : issuer;
}

/** Pages for people. No page redirects before the target is verified. */
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
    shown(async (c, server) =>
      authorize(await parts.withOperator(server), query(c), c.req.header('cookie'), partsFor(c, parts)),
    ),
  );
  http.get(
    routes.callback,
    shown((c, server) => {
      const returned = { query: query(c), cookieHeader: c.req.header('cookie'), requestId: requestIdOf(c) };
      return parts.returns(c.env.incoming, server.id, (failed) => callback(telling(server, failed), returned, parts));
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

/** The same server, which tells when its provider refused a code. One that is down refuses none. */
function telling(server: LoginServer, failed: () => void): LoginServer {
  const { provider } = server;
  const exchange: typeof provider.exchange = (answer) =>
    provider.exchange(answer).catch((error: unknown) => {
      if (error instanceof OAuthError && error.code !== 'temporarily_unavailable') failed();
      throw error;
    });
  return { ...server, provider: { ...provider, exchange } };
}

/** Endpoints that client software calls. */
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
    json(async (c, server) => c.json(await redeem(server, await formOf(c, parts), partsFor(c, parts)))),
  );
  http.post(
    routes.revoke,
    json(async (c, server) => {
      await revoke(server, await formOf(c, parts), requestIdOf(c), partsFor(c, parts));
      return c.body(null, 200);
    }),
  );
}

function partsFor(c: Context<Env>, parts: OAuthRouterParts): RequestParts {
  return { ...parts, documents: parts.documentsOf(parts.networkOf(c.env.incoming)) };
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
  checkBodyHeaders(incoming, maxBodyBytes);
  const held = memory.hold('', networkOf(incoming));
  return readBody(incoming, maxBodyBytes, { held })
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

function send(c: Context<Env>, answer: OAuthAnswer): Response {
  for (const cookie of answer.cookies ?? []) c.header('Set-Cookie', cookie, { append: true });
  if (answer.kind === 'page') return c.html(answer.html, answer.status as 200);
  c.header('Location', answer.location);
  return c.html(answer.html, 302);
}

function toOAuthError(c: Context<Env>, error: unknown, parts: OAuthRouterParts): OAuthError | AppError {
  if (error instanceof OAuthError || error instanceof AppError) return error;
  parts.onUnexpected(error, requestIdOf(c));
  return new OAuthError('server_error', 'something went wrong inside the service');
}

function statusOf(error: OAuthError | AppError): number {
  if (error instanceof AppError) return error.status;
  return oauthErrorStatus[error.code];
}

function sendErrorPage(c: Context<Env>, thrown: unknown, parts: OAuthRouterParts): Response {
  const error = toOAuthError(c, thrown, parts);
  if (error instanceof OAuthError && error.detail !== undefined) {
    parts.log('a login was refused', { error: error.code, message: error.message, detail: error.detail });
  }
  const shown = error instanceof OAuthError ? error : new OAuthError(oauthCodeOf(error), error.message);
  // 400 for an unknown client, 403 for a form or login of another browser: 401 would make browsers ask for a password.
  const status = shown.code === 'access_denied' ? 403 : statusOf(error) === 401 ? 400 : statusOf(error);
  addHeaders(c, error);
  return c.html(errorPage(shown, requestIdOf(c)), status as 400);
}

function addHeaders(c: Context<Env>, error: OAuthError | AppError): void {
  if (error instanceof OAuthError) return;
  for (const [name, value] of Object.entries(error.headers)) c.header(name, value);
}

function sendErrorJson(c: Context<Env>, thrown: unknown, parts: OAuthRouterParts): Response {
  const error = toOAuthError(c, thrown, parts);
  if (error instanceof OAuthError && error.detail !== undefined) {
    parts.log('a client was refused', { error: error.code, message: error.message, detail: error.detail });
  }
  const code = error instanceof OAuthError ? error.code : oauthCodeOf(error);
  addHeaders(c, error);
  if (code === 'slow_down') c.header('Retry-After', '60');
  if (code === 'invalid_client') c.header('WWW-Authenticate', 'Bearer');
  return c.json({ error: code, error_description: errorDescription(error.message) }, statusOf(error) as 400);
}
