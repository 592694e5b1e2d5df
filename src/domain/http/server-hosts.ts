import { isSlug } from '../slug.ts';

/** A host for each server besides its path, for clients that expect `/mcp` at the root of a host. */
export type ServerHosts = {
  /** The slug whose host this is; `host` is a Host header with its port. */
  slugOf(host: string | undefined): string | undefined;
  /** Scheme, host and port. */
  originOf(slug: string): string;
};

/** Path of the MCP endpoint on the host of a server. */
export const ownHostPath = '/mcp';

/** `suffix` begins with a dot. Scheme and port are those of the base URL, whose own host belongs to no server. */
export function createServerHosts(suffix: string, baseUrl: string): ServerHosts {
  const { host: baseHost, protocol, port } = new URL(baseUrl);
  const ending = `${suffix.toLowerCase()}${port === '' ? '' : `:${port}`}`;
  return {
    slugOf(host) {
      const name = host?.toLowerCase();
      if (!name?.endsWith(ending) || name === baseHost) return undefined;
      const slug = name.slice(0, -ending.length);
      return isSlug(slug) ? slug : undefined;
    },
    originOf: (slug) => `${protocol}//${slug}${ending}`,
  };
}
