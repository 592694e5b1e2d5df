import { basePathOf, ownHostPath } from './domain/http/own-hosts.ts';
import { reservedViewNames } from './domain/view-name.ts';

/** Paths of all URLs of Toolhost, relative to the base URL. */

export const apiPath = '/api/v1';

export const routes = {
  home: '/',
  login: '/login',
  loginCallback: '/login/callback',
  logout: '/logout',
  /** The dashboard page that shows the result of a login test. */
  loginCheck: '/login-check',
  mcp: '/mcp/:slug',
  callback: '/mcp/:slug/callback',
  authorize: '/mcp/:slug/authorize',
  consent: '/mcp/:slug/consent',
  token: '/mcp/:slug/token',
  register: '/mcp/:slug/register',
  revoke: '/mcp/:slug/revoke',
  resourceMetadata: '/.well-known/oauth-protected-resource/mcp/:slug',
  apiMetadata: `/.well-known/oauth-protected-resource${apiPath}`,
  viewMetadata: '/.well-known/oauth-protected-resource/mcp/:slug/:view',
  serverMetadata: '/.well-known/oauth-authorization-server/mcp/:slug',
  /** A nonstandard path that some clients request. */
  serverMetadataBelow: '/mcp/:slug/.well-known/oauth-authorization-server',
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
export function urlOf(baseUrl: string, route: Route, slug = ''): string {
  const url = baseUrl + route.replace(':slug', slug);
  return route.startsWith('/.well-known/')
    ? url.replace(/^(\w+:\/\/[^/]+)(.*?)(\/\.well-known\/[^/]+)/, '$1$3$2')
    : url;
}

/**
 * Removes the base URL's path from a request path, wherever clients put it. A path without it is left unchanged: probes
 * call the process directly, and some proxies have already removed it.
 */
export function pathReader(baseUrl: string): (path: string) => string {
  const base = basePathOf(baseUrl);
  if (base === '') return (path) => path;
  const start = new RegExp(`^(/\\.well-known/[^/]+)?${base.replaceAll('.', '\\.')}(?=/|$)`);
  return (path) => path.replace(start, '$1') || routes.home;
}

const viewPattern = `(?!(?:${reservedViewNames.join('|')})$)[a-z0-9][a-z0-9-]{0,39}`;
const mcpPath = new RegExp(`^/mcp/([^/]+(?:/${viewPattern})?)$`);

/** Returns the MCP endpoint that a path leads to: a slug, or `slug/view`. Undefined for any other path. */
export function mcpAddress(path: string): string | undefined {
  return mcpPath.exec(path)?.[1];
}

const endsInSlash = /^(\/(?:mcp|\.well-known)(?:\/.*[^/])?)\/$/;

/** Removes a trailing slash below `/mcp` and `/.well-known`, where it has no meaning; some clients add one. */
export function withoutEndSlash(path: string): string {
  return path.replace(endsInSlash, '$1');
}

/** Splits an address into its slug and view. The view is undefined if the address is that of the server itself. */
export function partsOfAddress(address: string): { slug: string; view: string | undefined } {
  const slash = address.indexOf('/');
  if (slash < 0) return { slug: address, view: undefined };
  return { slug: address.slice(0, slash), view: address.slice(slash + 1) };
}

const onOwnHost: Readonly<Record<string, SlugRoute>> = {
  [ownHostPath]: routes.mcp,
  '/.well-known/oauth-protected-resource': routes.resourceMetadata,
  [`/.well-known/oauth-protected-resource${ownHostPath}`]: routes.resourceMetadata,
  '/.well-known/oauth-authorization-server': routes.serverMetadata,
  [`/.well-known/oauth-authorization-server${ownHostPath}`]: routes.serverMetadata,
};

const viewOnOwnHost = new RegExp(`^(/\\.well-known/oauth-protected-resource)?${ownHostPath}/(${viewPattern})$`);

/**
 * Maps a path on a server's own host to the path below the base URL that serves it. Undefined if that host has no such
 * path.
 */
export function pathOnOwnHost(path: string, slug: string): string | undefined {
  if (fileIdIn(path) !== undefined) return path;
  if (Object.hasOwn(onOwnHost, path)) return onOwnHost[path]?.replace(':slug', slug);
  const [, wellKnown = '', view] = viewOnOwnHost.exec(path) ?? [];
  return view === undefined ? undefined : `${wellKnown}/mcp/${slug}/${view}`;
}

/** Returns the URL of the resource metadata of a server, or of a view, on the server's own host. */
export function ownResourceMetadata(ownOrigin: string, view: string | undefined): string {
  return `${ownOrigin}/.well-known/oauth-protected-resource${ownHostPath}${view === undefined ? '' : `/${view}`}`;
}

const fileOfPath = /^\/files\/(\w{1,64})$/;

/** Returns the path of a file in a tool result. */
export function filePath(id: string): string {
  return `/files/${id}`;
}

/** Returns the id in a file path, or undefined for any other path. */
export function fileIdIn(path: string): string | undefined {
  return fileOfPath.exec(path)?.[1];
}

/** Returns true for paths that any web page may request: discovery, schemas, and endpoints that need no cookie. */
export function isPublicToPages(path: string): boolean {
  return /^\/(\.well-known|schema)\/|^\/mcp\/[^/]+\/(\.well-known\/.*|register|token|revoke)$/.test(path);
}
