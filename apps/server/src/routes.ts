import { reservedViewNames } from '@toolhost/tool-config/view-name';
import { getBasePath, ownHostPath } from './own-hosts.ts';

/** Paths of all URLs of Toolhost, relative to the base URL. */

export const apiPath = '/api/v1';

export const routes = {
  home: '/',
  login: '/login',
  loginCallback: '/login/callback',
  /** Link that signs the person of local mode in once. */
  signInLink: '/login/link/:secret',
  logout: '/logout',
  /** Pages of the identity provider of local mode. */
  localIdentity: '/local-identity',
  /** The dashboard page that shows the result of a login test. */
  loginCheck: '/login-check',
  mcp: '/mcp/:slug',
  callback: '/mcp/:slug/callback',
  accountChoice: '/mcp/:slug/callback/account',
  authorize: '/mcp/:slug/authorize',
  consent: '/mcp/:slug/consent',
  token: '/mcp/:slug/token',
  register: '/mcp/:slug/register',
  revoke: '/mcp/:slug/revoke',
  resourceMetadata: '/.well-known/oauth-protected-resource/mcp/:slug',
  serverCard: '/mcp/:slug/server-card',
  registryDocument: '/mcp/:slug/server.json',
  aiCatalog: '/.well-known/ai-catalog.json',
  appsChallenge: '/.well-known/openai-apps-challenge',
  apiMetadata: `/.well-known/oauth-protected-resource${apiPath}`,
  viewMetadata: '/.well-known/oauth-protected-resource/mcp/:slug/:view',
  serverMetadata: '/.well-known/oauth-authorization-server/mcp/:slug',
  /** A nonstandard path that some clients request. */
  serverMetadataFallback: '/mcp/:slug/.well-known/oauth-authorization-server',
  openApi: `${apiPath}/openapi.json`,
  serverSchema: '/schema/server.json',
  serverFileSchema: '/schema/file.json',
  livez: '/livez',
  readyz: '/readyz',
  metrics: '/metrics',
} as const;

type Route = Exclude<(typeof routes)[keyof typeof routes], typeof routes.viewMetadata>;
type SlugRoute = Extract<Route, `${string}:slug${string}`>;

/**
 * Returns the absolute URL of a route, with the slug filled in. In metadata URLs, the path of the base URL follows the
 * well-known prefix (RFC 8414, 3.1; RFC 9728, 3.1).
 */
export function buildUrl(baseUrl: string, route: Route, slug = ''): string {
  const url = baseUrl + route.replace(':slug', slug);
  return route.startsWith('/.well-known/')
    ? url.replace(/^(\w+:\/\/[^/]+)(.*?)(\/\.well-known\/[^/]+)/, '$1$3$2')
    : url;
}

export function buildSignInLink(baseUrl: string, secret: string): string {
  return baseUrl + routes.signInLink.replace(':secret', secret);
}

/**
 * Removes the base URL's path from a request path, wherever clients put it. A path without it is left unchanged: probes
 * call the process directly, and some proxies have already removed it.
 */
export function createBasePathRemover(baseUrl: string): (path: string) => string {
  const base = getBasePath(baseUrl);
  if (base === '') return (path) => path;
  const basePathPattern = new RegExp(`^(/\\.well-known/[^/]+)?${base.replaceAll('.', '\\.')}(?=/|$)`);
  return (path) => path.replace(basePathPattern, '$1') || routes.home;
}

/** Source of a pattern for view names: letters, digits, and hyphens, except the reserved names. */
const viewPattern = `(?!(?:${reservedViewNames.join('|')})$)[a-z0-9][a-z0-9-]{0,39}`;
const mcpPathPattern = new RegExp(`^/mcp/([^/]+(?:/${viewPattern})?)$`);

/** Returns the MCP endpoint that a path leads to: a slug, or `slug/view`. Undefined for any other path. */
export function getMcpAddress(path: string): string | undefined {
  return mcpPathPattern.exec(path)?.[1];
}

const trailingSlashPattern = /^(\/(?:mcp|\.well-known)(?:\/.*[^/])?)\/$/;

/** Removes a trailing slash below `/mcp` and `/.well-known`, where it has no meaning; some clients add one. */
export function removeTrailingSlash(path: string): string {
  return path.replace(trailingSlashPattern, '$1');
}

/** Splits an address into its slug and view. The view is undefined if the address is that of the server itself. */
export function splitAddress(address: string): { slug: string; view: string | undefined } {
  const slash = address.indexOf('/');
  if (slash < 0) return { slug: address, view: undefined };
  return { slug: address.slice(0, slash), view: address.slice(slash + 1) };
}

const ownHostRoutes: Readonly<Record<string, SlugRoute>> = {
  [ownHostPath]: routes.mcp,
  [`${ownHostPath}/server-card`]: routes.serverCard,
  [`${ownHostPath}/server.json`]: routes.registryDocument,
  '/.well-known/oauth-protected-resource': routes.resourceMetadata,
  [`/.well-known/oauth-protected-resource${ownHostPath}`]: routes.resourceMetadata,
  '/.well-known/oauth-authorization-server': routes.serverMetadata,
  [`/.well-known/oauth-authorization-server${ownHostPath}`]: routes.serverMetadata,
};

const ownHostViewPattern = new RegExp(`^(/\\.well-known/oauth-protected-resource)?${ownHostPath}/(${viewPattern})$`);

/**
 * Maps a path on a server's own host to the path below the base URL that serves it. Undefined if that host has no such
 * path.
 */
export function toOwnHostTarget(path: string, slug: string): string | undefined {
  if (getFileId(path) !== undefined || path === routes.appsChallenge) return path;
  if (Object.hasOwn(ownHostRoutes, path)) return ownHostRoutes[path]?.replace(':slug', slug);
  const [, wellKnownPrefix = '', view] = ownHostViewPattern.exec(path) ?? [];
  return view === undefined ? undefined : `${wellKnownPrefix}/mcp/${slug}/${view}`;
}

/** Returns the URL of the resource metadata of a server, or of a view, on the server's own host. */
export function buildOwnHostMetadataUrl(ownOrigin: string, view: string | undefined): string {
  return `${ownOrigin}/.well-known/oauth-protected-resource${ownHostPath}${view === undefined ? '' : `/${view}`}`;
}

const filePathPattern = /^\/files\/(\w{1,64})$/;

/** Returns the path of a file in a tool result. */
export function buildFilePath(id: string): string {
  return `/files/${id}`;
}

/** Returns the id in a file path, or undefined for any other path. */
export function getFileId(path: string): string | undefined {
  return filePathPattern.exec(path)?.[1];
}

/** Returns true for paths that any web page may request: discovery, schemas, and endpoints that need no cookie. */
export function isCrossOriginPath(path: string): boolean {
  return /^\/(\.well-known|schema)\/|^\/mcp\/[^/]+\/(\.well-known\/.*|register|token|revoke|server-card|server\.json)$/.test(
    path,
  );
}

/**
 * Returns true for a form with which a provider returns from its own site (`response_mode: form_post`). The browser
 * shows the response as a page, so no web page can read it.
 */
export function isFormReturn(method: string | undefined, path: string): boolean {
  return method === 'POST' && /^\/mcp\/[^/]+\/callback$/.test(path);
}
