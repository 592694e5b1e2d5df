import dns from 'node:dns';
import type { LookupFunction, Socket } from 'node:net';
import { OutboundError } from '../errors.ts';
import { type BlockedClass, blockedClass, literalAddress } from './address.ts';
import { type Connect, connectorWith } from './connection.ts';
import { type EgressAllow, isAllowed, mayConnect } from './egress.ts';
import { connectThrough, type EgressProxy } from './egress-proxy.ts';

/** `dns.lookup` with `all: true`; an argument so that a test can be the name server. */
export type Resolve = (
  hostname: string,
  callback: (error: NodeJS.ErrnoException | null, addresses: dns.LookupAddress[]) => void,
) => void;

export const systemResolve: Resolve = (hostname, callback) => dns.lookup(hostname, { all: true }, callback);

const blocked = () =>
  new OutboundError('blocked', 'the upstream host does not stand for an address that may be called');

/**
 * Connects undici to one origin, and only to permitted addresses. Literals are checked here because Node resolves
 * nothing for them. Names are resolved once, all answers must pass, and the socket gets exactly those, so that a second
 * answer of a name server has no effect. The peer is checked once more before use.
 * `onBlocked` gets the class of each refused address.
 *
 * With a proxy, only what the operator excepted is connected to from here: a name, an address, or a name that stands only
 * for such addresses. Any other name that is known here must still stand for permitted addresses; an unknown one is looked
 * up by the proxy, which decides where it leads.
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
        // Another answer of the name server would lead past the proxy.
        else direct(options, callback, connectorWith(toAddresses(addresses)));
      });
      return undefined;
    }
    return direct(options, callback);
  };
}

/** A look-up that gives these addresses. */
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
