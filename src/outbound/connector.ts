import dns from 'node:dns';
import type { LookupFunction, Socket } from 'node:net';
import { OutboundError } from '../errors.ts';
import { type BlockedClass, blockedClass, literalAddress } from './address.ts';
import { type Connect, connectorWith } from './connection.ts';
import { type EgressAllow, isAllowed, mayConnect } from './egress.ts';
import { connectThrough, type EgressProxy } from './egress-proxy.ts';

/** Resolves a name like `dns.lookup` with `all: true`. Injected so that tests can act as the name server. */
export type Resolve = (
  hostname: string,
  callback: (error: NodeJS.ErrnoException | null, addresses: dns.LookupAddress[]) => void,
) => void;

export const systemResolve: Resolve = (hostname, callback) => dns.lookup(hostname, { all: true }, callback);

const blocked = () =>
  new OutboundError('blocked', 'the upstream host does not resolve to an address that may be called');

/**
 * Creates a connector to one origin that connects only to permitted addresses. Literal addresses are checked here,
 * because Node does not resolve them. Names are resolved once, all results must be permitted, and the socket gets
 * exactly those, so that a different second DNS response has no effect. The peer is checked once more before use.
 * `onBlocked` receives the class of each rejected address.
 *
 * With a proxy, only destinations that the operator excepted are connected to directly: a name, an address, or a name
 * that resolves only to such addresses. Any other name that resolves locally must still resolve to permitted addresses.
 * An unknown name is resolved by the proxy, which decides where it leads.
 */
export function guardedConnector(
  origin: URL,
  allow: EgressAllow,
  resolve: Resolve,
  onBlocked: (of: BlockedClass) => void,
  proxy?: EgressProxy,
): Connect {
  const port = Number(origin.port || (origin.protocol === 'https:' ? 443 : 80));
  const { hostname } = origin;
  const literal = literalAddress(hostname);
  const isBlockedLiteral = literal !== undefined && !mayConnect(allow, hostname, literal, port);
  const lookup = guardedLookup(allow, resolve, port, onBlocked);
  const connect = connectorWith(lookup);
  const tunnel =
    proxy && !isAllowed(allow, hostname, literal ?? '', port)
      ? connectThrough(proxy, hostname, port, connect)
      : undefined;
  const direct = (options: Parameters<Connect>[0], callback: Parameters<Connect>[1], through = connect) =>
    through(options, (...[error, socket]) => {
      if (error) callback(error, null);
      else if (isPermittedPeer(socket, allow, hostname, port)) callback(null, socket);
      else {
        onBlocked(blockedClass(socket.remoteAddress ?? ''));
        socket.destroy();
        callback(blocked(), null);
      }
    });
  return (options, callback) => {
    if (isBlockedLiteral) {
      onBlocked(blockedClass(literal));
      callback(blocked(), null);
      return undefined;
    }
    if (tunnel) {
      if (literal !== undefined) return tunnel(options, callback);
      lookup(hostname, { all: true }, (error, found) => {
        const addresses = typeof found === 'string' ? [] : found;
        const isExcepted = addresses.every(({ address }) => isAllowed(allow, hostname, address, port));
        if (error instanceof OutboundError) callback(error, null);
        else if (error || !isExcepted) tunnel(options, callback);
        // Resolving the name again could return an address that bypasses the proxy.
        else direct(options, callback, connectorWith(toAddresses(addresses)));
      });
      return undefined;
    }
    return direct(options, callback);
  };
}

/** Creates a lookup function that returns these addresses. */
function toAddresses(addresses: dns.LookupAddress[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    const [{ address, family } = { address: '', family: 0 }] = addresses;
    if (all) callback(null, addresses);
    else callback(null, address, family);
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
      const refused = addresses?.find(({ address }) => !mayConnect(allow, hostname, address, port));
      if (error || addresses.length === 0)
        callback(error ?? Object.assign(new Error('no address'), { code: 'ENODATA' }), '', 0);
      else if (refused) {
        onBlocked(blockedClass(refused.address));
        callback(blocked(), '', 0);
      } else toAddresses(addresses)(hostname, options, callback);
    });
  };
}
