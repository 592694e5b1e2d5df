import dns from 'node:dns';
import type { LookupFunction, Socket } from 'node:net';
import type { buildConnector as Connectors } from 'undici';
import { OutboundError } from '../errors.ts';
import { type BlockedClass, blockedClass, literalAddress } from './address.ts';
import { type EgressAllow, mayConnect } from './egress.ts';
import { buildConnector } from './undici.ts';

/** `dns.lookup` with `all: true`; handed in so that a test can be the name server. */
export type Resolve = (
  hostname: string,
  callback: (error: NodeJS.ErrnoException | null, addresses: dns.LookupAddress[]) => void,
) => void;

export const systemResolve: Resolve = (hostname, callback) => dns.lookup(hostname, { all: true }, callback);

const connectTimeoutMs = 3000;

/** Connects for undici. Gives the socket that is connecting, if it comes to one, so that it can be given up. */
export type Connect = (options: Connectors.Options, callback: Connectors.Callback) => Socket | undefined;

const blocked = () =>
  new OutboundError('blocked', 'the upstream host does not stand for an address that may be called');

/**
 * Connects undici to one origin, but only to addresses that may be called. Literals are checked here because Node
 * resolves nothing for them; names are resolved once, all answers must pass, and exactly those are handed to the socket,
 * so that no second answer of a name server counts; the peer is checked once more before use.
 * `onBlocked` is told the class of each address that was refused.
 */
export function guardedConnector(
  origin: URL,
  allow: EgressAllow,
  resolve: Resolve,
  onBlocked: (of: BlockedClass) => void,
): Connect {
  const port = Number(origin.port || (origin.protocol === 'https:' ? 443 : 80));
  const { hostname } = origin;
  const literal = literalAddress(hostname);
  const isBlockedLiteral = literal !== undefined && !mayConnect(allow, hostname, literal, port);
  // undici hands unknown options on to net.connect and tls.connect; its types do not say so.
  const socketOptions: object = { autoSelectFamily: true, lookup: guardedLookup(allow, resolve, port, onBlocked) };
  // So does undici's connector give its socket.
  const connect = buildConnector({ timeout: connectTimeoutMs, allowH2: false, ...socketOptions }) as Connect;
  return (options, callback) => {
    if (isBlockedLiteral) {
      onBlocked(blockedClass(literal));
      callback(blocked(), null);
      return undefined;
    }
    return connect(options, (...[error, socket]) => {
      if (error) callback(error, null);
      else if (isPermittedPeer(socket, allow, hostname, port)) callback(null, socket);
      else {
        onBlocked(blockedClass(socket.remoteAddress ?? ''));
        socket.destroy();
        callback(blocked(), null);
      }
    });
  };
}

function isPermittedPeer(socket: Socket, allow: EgressAllow, hostname: string, port: number): boolean {
  return socket.remoteAddress !== undefined && mayConnect(allow, hostname, socket.remoteAddress, port);
}

function guardedLookup(
  allow: EgressAllow,
  resolve: Resolve,
  port: number,
  onBlocked: (of: BlockedClass) => void,
): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, (error, addresses) => {
      const first = addresses?.[0];
      const refused = addresses?.find(({ address }) => !mayConnect(allow, hostname, address, port));
      if (error || !first) callback(error ?? Object.assign(new Error('no address'), { code: 'ENODATA' }), '', 0);
      else if (refused) {
        onBlocked(blockedClass(refused.address));
        callback(blocked(), '', 0);
      } else if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}
