import dns from 'node:dns';
import type { LookupFunction, Socket } from 'node:net';
import { OutboundError } from '@toolhost/errors/errors';
import { type BlockedClass, getBlockedClass, getLiteralAddress } from './address.ts';
import { canConnect, type EgressAllow, isAllowed } from './egress.ts';
import { connectThrough, type EgressProxy } from './egress-proxy.ts';
import { type Connect, type Connecting, createConnect, type OnBytes, type OnSocket } from './open-socket.ts';

/** Resolves a name like `dns.lookup` with `all: true`. Injected so that tests can act as the name server. */
export type Resolve = (
  hostname: string,
  callback: (error: NodeJS.ErrnoException | null, addresses: dns.LookupAddress[]) => void,
) => void;

export const resolveWithSystem: Resolve = (hostname, callback) => dns.lookup(hostname, { all: true }, callback);

const createBlockedError = () =>
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
export function createGuardedConnector(
  origin: URL,
  allow: EgressAllow,
  resolve: Resolve,
  onBlocked: (blockedClass: BlockedClass) => void,
  proxy?: EgressProxy,
): Connect {
  const port = Number(origin.port || (origin.protocol === 'https:' ? 443 : 80));
  const { hostname } = origin;
  const literal = getLiteralAddress(hostname);
  const isLiteralBlocked = literal !== undefined && !canConnect(allow, hostname, literal, port);
  const lookUp = createGuardedLookup(allow, resolve, port, onBlocked);
  const connect = createConnect(origin, lookUp);
  const tunnel =
    proxy && !isAllowed(allow, hostname, literal ?? '', port)
      ? connectThrough(proxy, hostname, port, connect)
      : undefined;
  const connectDirectly = (onBytes: OnBytes, onSocket: OnSocket, connectSocket = connect) =>
    connectSocket(onBytes, (error, socket) => {
      if (!socket || isPermittedPeer(socket, allow, hostname, port)) onSocket(error, socket);
      else {
        onBlocked(getBlockedClass(socket.remoteAddress ?? ''));
        socket.destroy();
        onSocket(createBlockedError());
      }
    });
  return (onBytes, onSocket) => {
    if (isLiteralBlocked) {
      onBlocked(getBlockedClass(literal));
      onSocket(createBlockedError());
      return undefined;
    }
    if (!tunnel) return connectDirectly(onBytes, onSocket);
    if (literal !== undefined) return tunnel(onBytes, onSocket);
    let isDestroyed = false;
    let connecting: Connecting | undefined;
    lookUp(hostname, { all: true }, (error, result) => {
      const addresses = typeof result === 'string' ? [] : result;
      const areAllExcepted = addresses.every(({ address }) => isAllowed(allow, hostname, address, port));
      if (isDestroyed) return;
      if (error instanceof OutboundError) onSocket(error);
      else if (error || !areAllExcepted) connecting = tunnel(onBytes, onSocket);
      // Resolving the name again could return an address that bypasses the proxy.
      else connecting = connectDirectly(onBytes, onSocket, createConnect(origin, createFixedLookup(addresses)));
    });
    return {
      destroy() {
        isDestroyed = true;
        connecting?.destroy();
      },
    };
  };
}

/** Creates a lookup function that returns these addresses. */
function createFixedLookup(addresses: dns.LookupAddress[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    const [{ address, family } = { address: '', family: 0 }] = addresses;
    if (all) callback(null, addresses);
    else callback(null, address, family);
  };
}

function isPermittedPeer(socket: Socket, allow: EgressAllow, hostname: string, port: number): boolean {
  return socket.remoteAddress !== undefined && canConnect(allow, hostname, socket.remoteAddress, port);
}

function createGuardedLookup(
  allow: EgressAllow,
  resolve: Resolve,
  port: number,
  onBlocked: (blockedClass: BlockedClass) => void,
): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, (error, addresses) => {
      const blockedAddress = addresses?.find(({ address }) => !canConnect(allow, hostname, address, port));
      if (error || addresses.length === 0)
        callback(error ?? Object.assign(new Error('no address'), { code: 'ENODATA' }), '', 0);
      else if (blockedAddress) {
        onBlocked(getBlockedClass(blockedAddress.address));
        callback(createBlockedError(), '', 0);
      } else createFixedLookup(addresses)(hostname, options, callback);
    });
  };
}
