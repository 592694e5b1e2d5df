import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { AppError } from '@toolhost/errors/errors';
import { getLiteralAddress, isPublicAddress } from '@toolhost/safe-http/address';
import { isAllowed } from '@toolhost/safe-http/egress';
import { storeAllowedAddress } from '../allowed-addresses.ts';
import { readConfig } from '../config.ts';

/** Entry of the host and port that was allowed, and the file where it is stored. */
export type AllowedHost = { entry: string; file: string };

/**
 * Allows a local service to call the host and port of a document, unless it is on the public internet or already
 * allowed. Returns undefined if nothing was stored. @throws AppError invalid outside local mode
 */
export async function allowDocumentHost(env: NodeJS.ProcessEnv, documentUrl: string): Promise<AllowedHost | undefined> {
  const { config } = readConfig(env, (path) => readFileSync(path, 'utf8'));
  if (config.mode !== 'local')
    throw new AppError(
      'invalid',
      `--serve starts a service in local mode, but BASE_URL is ${config.baseUrl}. Start the service with serve, and import without --serve`,
    );
  const url = new URL(documentUrl);
  const hostname = url.hostname.replace(/\.$/, '');
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  const literal = getLiteralAddress(hostname);
  const addresses =
    literal === undefined ? (await lookup(hostname, { all: true })).map(({ address }) => address) : [literal];
  const isReachable = (address: string) =>
    isPublicAddress(address) || isAllowed(config.egressAllow, hostname, address, port);
  if (addresses.every(isReachable)) return undefined;
  const entry = `${hostname}:${port}`;
  return { entry, file: storeAllowedAddress(config.dataDir, entry) };
}
