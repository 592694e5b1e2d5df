/** Every URL of the product, named once. Paths are relative to the base URL. */

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
  serverMetadata: '/.well-known/oauth-authorization-server/mcp/:slug',
  /** Where some clients look although no standard says so. */
  serverMetadataBelow: '/mcp/:slug/.well-known/oauth-authorization-server',
  openApi: `${apiPath}/openapi.json`,
  serverSchema: '/schema/server.json',
  livez: '/livez',
  readyz: '/readyz',
  metrics: '/metrics',
} as const;

type SlugRoute = Extract<(typeof routes)[keyof typeof routes], `${string}:slug${string}`>;

/** A route with its slug in place, as an absolute URL. */
export function urlOf(baseUrl: string, route: SlugRoute, slug: string): string {
  return baseUrl + route.replace(':slug', slug);
}

const mcpPath = /^\/mcp\/([^/]+)$/;

/** The slug of an MCP endpoint's path, or undefined for any other path. */
export function mcpSlug(path: string): string | undefined {
  return mcpPath.exec(path)?.[1];
}

/** What any web page may read or post to: discovery, and the endpoints that need no cookie. */
export function isPublicToPages(path: string): boolean {
  return /^\/\.well-known\/|^\/mcp\/[^/]+\/(\.well-known\/.*|register|token|revoke)$/.test(path);
}
