import { isSlug } from '../slug.ts';

/** Returns the path of a base URL, which all paths of this service begin with; empty at the root of a host. */
export function basePathOf(baseUrl: string): string {
  return baseUrl.slice(new URL(baseUrl).origin.length);
}

/** A separate host for each server, in addition to its path, for clients that expect `/mcp` at the root of a host. */
export type ServerHosts = {
  /** Returns the slug of the server that a host belongs to. `host` is a Host header with its port. */
  slugOf(host: string | undefined): string | undefined;
  /** Returns scheme, host, and port. */
  originOf(slug: string): string;
};

/** Path of the MCP endpoint on a server's own host. */
export const ownHostPath = '/mcp';

/**
 * Creates the mapping between hosts and servers. `suffix` begins with a dot. Scheme and port are those of the base URL,
 * whose own host belongs to no server.
 */
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

/** Hosts that this service serves. */
export type OwnHosts = {
  /** `host[:port]` values of the base URL and, in local mode, of every name of this machine. */
  names: ReadonlySet<string>;
  /** Path of the base URL. */
  path: string;
  /** Returns the base URL under a request's host: in local mode that of any name, otherwise the configured one. */
  baseUrlAt(host: string | undefined): string;
  /**
   * Returns true if a URL leads to one of these hosts, or to a server's own host. Other paths of the base URL's host
   * belong to other services.
   */
  include(url: URL): boolean;
};

export type OwnAddresses = {
  baseUrl: string;
  mode: 'local' | 'production';
  serverHosts: string | undefined;
  /** Additional names of this machine in local mode: hosts, with a port if it differs from the base URL's. */
  allowedHosts: readonly string[];
};

const namesOfMachine = ['localhost', '127.0.0.1', '[::1]'];

export function createOwnHosts({ baseUrl, mode, serverHosts, allowedHosts }: OwnAddresses): OwnHosts {
  const { host, port, protocol } = new URL(baseUrl);
  const path = basePathOf(baseUrl);
  // Proxies may decode paths, merge slashes, or ignore case.
  const mayBeBelow = new RegExp(`^${path.replaceAll('.', '\\.')}(?:/|$)|%|//`, 'i');
  const listed = allowedHosts.map((entry) => (/:\d+$/.test(entry) ? plainHost(entry) : withPort(entry, port)));
  const local = mode === 'local' ? [...namesOfMachine.map((name) => withPort(name, port)), ...listed] : [];
  const names = new Set([host, ...local]);
  const servers = serverHosts === undefined ? undefined : createServerHosts(serverHosts, baseUrl);
  return {
    names,
    path,
    baseUrlAt(asked) {
      const name = asked?.toLowerCase() ?? host;
      return name !== host && names.has(name) ? `${protocol}//${name}${path}` : baseUrl;
    },
    // The scheme is ignored: browsers switch to https where Strict-Transport-Security tells them to (RFC 6797).
    include(url) {
      // A trailing dot names the same host.
      const plain = withPort(url.hostname.replace(/\.+$/, ''), url.port);
      return (names.has(plain) && mayBeBelow.test(url.pathname)) || servers?.slugOf(plain) !== undefined;
    },
  };
}

/** Returns a host as clients of plain HTTP send it: without the default port. */
function plainHost(entry: string): string {
  return new URL(`http://${entry}`).host;
}

function withPort(name: string, port: string): string {
  return port === '' ? name : `${name}:${port}`;
}
