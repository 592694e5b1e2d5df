import { createServerHosts } from '../../domain/http/own-hosts.ts';
import { readUrl } from '../../domain/http/read-url.ts';
import { fileIdIn, filePath, pathReader } from '../../routes.ts';

/** The addresses of files: below the base URL, and on the own host of each server. */
export type FileAddresses = {
  /** `ownOrigin` is the origin of the server's own host, for a request that came to it. */
  addressOf(id: string, ownOrigin: string | undefined): string;
  /** The id in an address of ours; undefined for any other text. */
  idIn(text: string): string | undefined;
  /** Whether a file of this server is served on an own host with this origin. */
  isOwnOrigin(origin: string, slug: string): boolean;
};

/** Longest text that can be such an address. */
const longest = 400;

export function createFileAddresses(baseUrl: string, serverHosts: string | undefined): FileAddresses {
  const hosts = serverHosts === undefined ? undefined : createServerHosts(serverHosts, baseUrl);
  const { origin, protocol } = new URL(baseUrl);
  const readPath = pathReader(baseUrl);
  return {
    addressOf: (id, ownOrigin) => (ownOrigin ?? baseUrl) + filePath(id),
    idIn(text) {
      const url = text.length <= longest && /^https?:/.test(text) ? readUrl(text) : undefined;
      // Only the one plain form: no credentials, query, fragment or encoding.
      if (!url || url.href !== text || url.origin + url.pathname !== text) return undefined;
      if (url.origin === origin) return fileIdIn(readPath(url.pathname));
      return url.protocol === protocol && hosts?.slugOf(url.host) ? fileIdIn(url.pathname) : undefined;
    },
    isOwnOrigin: (origin, slug) => hosts?.originOf(slug) === origin,
  };
}
