import { isSlug } from '@toolhost/tool-config/slug';

/** Returns the path of a base URL, which all paths of this service begin with; empty at the root of a host. */
export function getBasePath(baseUrl: string): string {
  return baseUrl.slice(new URL(baseUrl).origin.length);
}

/** A separate host for each server, in addition to its path, for clients that expect `/mcp` at the root of a host. */
export type ServerHosts = {
  /** Returns the slug of the server that a host belongs to. `host` is a Host header with its port. */
  getSlug(host: string | undefined): string | undefined;
  /** Returns scheme, host, and port. */
  getOrigin(slug: string): string;
};

/** Path of the MCP endpoint on a server's own host. */
export const ownHostPath = '/mcp';

/**
 * Creates the mapping between hosts and servers. `suffix` begins with a dot. Scheme and port are those of the base URL,
 * whose own host belongs to no server.
 */
export function createServerHosts(suffix: string, baseUrl: string): ServerHosts {
  const { host: baseHost, protocol, port } = new URL(baseUrl);
  const hostSuffix = `${suffix.toLowerCase()}${port === '' ? '' : `:${port}`}`;
  return {
    getSlug(host) {
      const name = host?.toLowerCase();
      if (!name?.endsWith(hostSuffix) || name === baseHost) return undefined;
      const slug = name.slice(0, -hostSuffix.length);
      return isSlug(slug) ? slug : undefined;
    },
    getOrigin: (slug) => `${protocol}//${slug}${hostSuffix}`,
  };
}

/** Hosts that this service serves. */
export type ServiceHosts = {
  /** `host[:port]` values of the base URL and, in local mode, of every name of this machine. */
  names: ReadonlySet<string>;
  /** Returns true for one of `names` and, in a container, for a loopback name with any port. */
  includes(host: string): boolean;
  /** Path of the base URL. */
  path: string;
  /** Returns the base URL with the host of a request if that is included, otherwise the configured base URL. */
  getBaseUrl(host: string | undefined): string;
  /**
   * Returns true if a URL leads to one of these hosts, or to a server's own host. Other paths of the base URL's host
   * belong to other services.
   */
  includesUrl(url: URL): boolean;
};

export type ServiceHostOptions = {
  baseUrl: string;
  mode: 'local' | 'production';
  serverHosts: string | undefined;
  /** Additional names of this machine in local mode: hosts, with a port if it differs from the base URL's. */
  allowedHosts: readonly string[];
  /** True if the port of the requests is unknown, because a container engine publishes it. */
  isInContainer: boolean;
};

const localHostNames = ['localhost', '127.0.0.1', '[::1]'];

/** Matches a Host header that reached a published port from the machine of the container engine. */
const publishedHostPattern = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::(\d{1,5}))?$/;

function isPublishedHost(name: string): boolean {
  const [found, publishedPort = '80'] = publishedHostPattern.exec(name) ?? [];
  return found !== undefined && Number(publishedPort) <= 65_535;
}

export function createServiceHosts(options: ServiceHostOptions): ServiceHosts {
  const { baseUrl, mode, serverHosts, allowedHosts, isInContainer } = options;
  const { host, port, protocol } = new URL(baseUrl);
  const path = getBasePath(baseUrl);
  // Also matches paths that proxies may turn into one below the base path: they may decode, merge slashes, or fold case.
  const possibleSubpathPattern = new RegExp(`^${path.replaceAll('.', '\\.')}(?:/|$)|%|//`, 'i');
  const extraHosts = allowedHosts.map((entry) => (/:\d+$/.test(entry) ? toPlainHttpHost(entry) : addPort(entry, port)));
  const localHosts = mode === 'local' ? [...localHostNames.map((name) => addPort(name, port)), ...extraHosts] : [];
  const names = new Set([host, ...localHosts]);
  const serverHostMap = serverHosts === undefined ? undefined : createServerHosts(serverHosts, baseUrl);
  const includes = (name: string) => names.has(name) || (isInContainer && isPublishedHost(name));
  return {
    names,
    path,
    includes,
    getBaseUrl(requestHost) {
      const name = requestHost?.toLowerCase() ?? host;
      return name !== host && includes(name) ? `${protocol}//${name}${path}` : baseUrl;
    },
    // The scheme is ignored: browsers switch to https where Strict-Transport-Security tells them to (RFC 6797).
    includesUrl(url) {
      // A trailing dot names the same host.
      const hostWithPort = addPort(url.hostname.replace(/\.+$/, ''), url.port);
      return (
        (names.has(hostWithPort) && possibleSubpathPattern.test(url.pathname)) ||
        serverHostMap?.getSlug(hostWithPort) !== undefined
      );
    },
  };
}

/** Returns a host as HTTP clients send it: without the default port 80. */
function toPlainHttpHost(entry: string): string {
  return new URL(`http://${entry}`).host;
}

function addPort(name: string, port: string): string {
  return port === '' ? name : `${name}:${port}`;
}
