import { createServerHosts } from './server-hosts.ts';

/** Hosts that this service answers to. */
export type OwnHosts = {
  /** `host[:port]` values of the base URL, and in local mode of every name of this machine. */
  names: ReadonlySet<string>;
  /** Whether a web address leads to one of them, or to the host of a server. */
  include(url: URL): boolean;
};

export type OwnAddresses = { baseUrl: string; mode: 'local' | 'production'; serverHosts: string | undefined };

const namesOfMachine = ['localhost', '127.0.0.1', '[::1]'];

export function createOwnHosts({ baseUrl, mode, serverHosts }: OwnAddresses): OwnHosts {
  const { host, port } = new URL(baseUrl);
  const local = mode === 'local' ? namesOfMachine.map((name) => withPort(name, port)) : [];
  const names = new Set([host, ...local]);
  const servers = serverHosts === undefined ? undefined : createServerHosts(serverHosts, baseUrl);
  return {
    names,
    // The scheme does not count: browsers go to https where we have told them to (RFC 6797).
    include(url) {
      // A trailing dot names the same host.
      const plain = withPort(url.hostname.replace(/\.+$/, ''), url.port);
      return names.has(plain) || servers?.slugOf(plain) !== undefined;
    },
  };
}

function withPort(name: string, port: string): string {
  return port === '' ? name : `${name}:${port}`;
}
