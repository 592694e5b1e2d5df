import { ownHostPath } from './domain/http/server-hosts.ts';

/** Names of all URLs of the product. Paths are relative to the base URL. */

export const apiPath = '/api/v1';

export const routes = {
  home: '/',
  login: '/login',
  loginCallback: '/login/callback',
  logout: '/logout',
  mcp: '/mcp/:slug',
  callback: '/mcp/:slug/callback',
  authorize: '/mcp/:slug/authorize',
  consent: '/mcp/:slug/consent',
  token: '/mcp/:slug/token',
  register: '/mcp/:slug/register',
  revoke: '/mcp/:slug/revoke',
  resourceMetadata: '/.well-known/oauth-protected-resource/mcp/:slug',
  apiMetadata: `/.well-known/oauth-protected-resource${apiPath}`,
  serverMetadata: '/.well-known/oauth-authorization-server/mcp/:slug',
  /** A path that some clients request, although no standard defines it. */
  serverMetadataBelow: '/mcp/:slug/.well-known/oauth-authorization-server',
  openApi: `${apiPath}/openapi.json`,
  serverSchema: '/schema/server.json',
  serverFileSchema: '/schema/file.json',
  livez: '/livez',
  readyz: '/readyz',
  metrics: '/metrics',
} as const;

type SlugRoute = Extract<(typeof routes)[keyof typeof routes], `${string}:slug${string}`>;

/** The absolute URL of a route for a slug. */
export function urlOf(baseUrl: string, route: SlugRoute, slug: string): string {
  return baseUrl + route.replace(':slug', slug);
}

const mcpPath = /^\/mcp\/([^/]+)$/;

/** The slug in the path of an MCP endpoint, or undefined for any other path. */
export function mcpSlug(path: string): string | undefined {
  return mcpPath.exec(path)?.[1];
}

const onOwnHost: Readonly<Record<string, SlugRoute>> = {
  [ownHostPath]: routes.mcp,
  '/.well-known/oauth-protected-resource': routes.resourceMetadata,
  [`/.well-known/oauth-protected-resource${ownHostPath}`]: routes.resourceMetadata,
  '/.well-known/oauth-authorization-server': routes.serverMetadata,
  [`/.well-known/oauth-authorization-server${ownHostPath}`]: routes.serverMetadata,
};

/** The path below the base URL that answers a path on a server's own host; undefined where that host has nothing. */
export function pathOnOwnHost(path: string, slug: string): string | undefined {
  return Object.hasOwn(onOwnHost, path) ? onOwnHost[path]?.replace(':slug', slug) : undefined;
}

/** URL of the resource metadata on a server's own host. */
export function ownResourceMetadata(ownOrigin: string): string {
  return `${ownOrigin}/.well-known/oauth-protected-resource${ownHostPath}`;
}

/** Paths that any web page may request: discovery, and endpoints that need no cookie. */
export function isPublicToPages(path: string): boolean {
  return /^\/\.well-known\/|^\/mcp\/[^/]+\/(\.well-known\/.*|register|token|revoke)$/.test(path);
}
