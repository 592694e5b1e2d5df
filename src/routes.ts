/** Every URL of the product, named once. Paths are relative to the base URL. */

export const apiPath = '/api/v1';

export const routes = {
  home: '/',
  mcp: '/mcp/:slug',
  callback: '/mcp/:slug/callback',
  resourceMetadata: '/.well-known/oauth-protected-resource/mcp/:slug',
  openApi: `${apiPath}/openapi.json`,
  serverSchema: '/schema/server.json',
  livez: '/livez',
  readyz: '/readyz',
} as const;

/** A route with its slug in place, as an absolute URL. */
export function urlOf(
  baseUrl: string,
  route: (typeof routes)['mcp' | 'callback' | 'resourceMetadata'],
  slug: string,
): string {
  return baseUrl + route.replace(':slug', slug);
}

const mcpPath = /^\/mcp\/([^/]+)$/;

/** The slug of an MCP endpoint's path, or undefined for any other path. */
export function mcpSlug(path: string): string | undefined {
  return mcpPath.exec(path)?.[1];
}
