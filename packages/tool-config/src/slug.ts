export const slugPattern = /^[a-z0-9](-?[a-z0-9])*$/;

/** Returns true if a text has the form of a slug; reserved names are not checked. */
export function isSlug(text: string): boolean {
  return text.length >= 3 && text.length <= 63 && slugPattern.test(text);
}

/** Names that would look like part of Toolhost itself. The management slug is reserved, too. */
export const reservedSlugs: ReadonlySet<string> = new Set([
  'api',
  'admin',
  'administrator',
  'app',
  'assets',
  'auth',
  'authorize',
  'billing',
  'calls',
  'callback',
  'console',
  'dashboard',
  'docs',
  'health',
  'healthz',
  'help',
  'internal',
  'keys',
  'livez',
  'login',
  'logout',
  'manage',
  'management',
  'mcp',
  'metrics',
  'oauth',
  'openapi',
  'public',
  'readyz',
  'register',
  'revoke',
  'root',
  'schema',
  'security',
  'server',
  'servers',
  'settings',
  'signin',
  'signup',
  'static',
  'status',
  'support',
  'system',
  'token',
  'toolhost',
  'well-known',
  'www',
]);

/** Returns the reason why a slug cannot be used, or undefined. */
export function getSlugProblem(slug: string, managementSlug?: string): string | undefined {
  if (!isSlug(slug)) {
    return `found ${JSON.stringify(slug.slice(0, 80))}; allowed: 3 to 63 lowercase letters and digits, with single hyphens between them`;
  }
  if (slug === managementSlug || reservedSlugs.has(slug)) return `"${slug}" is reserved; choose another`;
  return undefined;
}
