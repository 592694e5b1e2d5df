import { isSlug } from '../slug.ts';

/** The path of a base URL, below which everything of this service is; empty at the root of a host. */
export function basePathOf(baseUrl: string): string {
  return baseUrl.slice(new URL(baseUrl).origin.length);
}

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

/** Hosts that this service answers to. */
export type OwnHosts = {
  /** `host[:port]` values of the base URL, and in local mode of every name of this machine. */
  names: ReadonlySet<string>;
  /** The path of the base URL. */
  path: string;
  /** The base URL under the host of a request: in local mode that of any name, else the configured one. */
  baseUrlAt(host: string | undefined): string;
  /** Whether a web address leads to one of them, or to the host of a server. Other paths of the host are of other services. */
  include(url: URL): boolean;
};

export type OwnAddresses = {
  baseUrl: string;
  mode: 'local' | 'production';
  serverHosts: string | undefined;
  /** Further names of this machine in local mode: hosts, with a port where it is not that of the base URL. */
  allowedHosts: readonly string[];
};

const namesOfMachine = ['localhost', '127.0.0.1', '[::1]'];

export function createOwnHosts({ baseUrl, mode, serverHosts, allowedHosts }: OwnAddresses): OwnHosts {
  const { host, port, protocol } = new URL(baseUrl);
  const path = basePathOf(baseUrl);
  // Proxies may decode paths, join their slashes or ignore case.
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
    // The scheme does not count: browsers go to https where we have told them to (RFC 6797).
    include(url) {
      // A trailing dot names the same host.
      const plain = withPort(url.hostname.replace(/\.+$/, ''), url.port);
      return (names.has(plain) && mayBeBelow.test(url.pathname)) || servers?.slugOf(plain) !== undefined;
    },
  };
}

/** A host as clients of plain HTTP send it: without the usual port. */
function plainHost(entry: string): string {
  return new URL(`http://${entry}`).host;
}

function withPort(name: string, port: string): string {
  return port === '' ? name : `${name}:${port}`;
}
