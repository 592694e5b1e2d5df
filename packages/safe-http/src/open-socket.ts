import { Buffer } from 'node:buffer';
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import tls from 'node:tls';

/** Receives bytes from an upstream, which are valid only until this function returns. */
export type OnBytes = (bytes: Buffer) => void;

/** Receives the socket once it can be written to, or the reason why there is none. */
export type OnSocket = (error: Error | undefined, socket?: Socket) => void;

/** A connection attempt. Destroying it closes its socket, if it has one. */
export type Connecting = { destroy(): void };

/**
 * Connects to an upstream. Returns the attempt, unless it has failed already. `tunnel` is a connection through a proxy
 * that TLS runs in.
 */
export type Connect = (onBytes: OnBytes, onSocket: OnSocket, tunnel?: Socket) => Connecting | undefined;

const connectTimeoutMs = 3000;
/** Idle time after which the system checks if the other side still exists, in ms. */
const keepAliveProbeMs = 60_000;

/**
 * Shared read buffer of all upstream sockets. Otherwise Node allocates memory for each read, which costs more than
 * copying the bytes that are kept, and lasts until the next garbage collection.
 */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** Creates a function that opens sockets to one origin. It resolves names with `lookup`. */
export function createConnect({ protocol, hostname, port }: URL, lookup: LookupFunction): Connect {
  const isTls = protocol === 'https:';
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  const servername = isIP(host) === 0 ? host : undefined;
  const address = { host, port: Number(port || (isTls ? 443 : 80)), lookup, autoSelectFamily: true };
  /** TLS session that the next handshake resumes. */
  let session: Buffer | undefined;
  return (onBytes, onSocket, tunnel) => {
    const onread = {
      buffer: readBuffer,
      callback: (length: number) => {
        onBytes(readBuffer.subarray(0, length));
        return true;
      },
    };
    const options = { ...address, onread };
    const tlsOptions = { servername, session, ALPNProtocols: ['http/1.1'] };
    let socket: Socket;
    if (!isTls) socket = connectTcp(options);
    else if (tunnel) socket = tls.connect({ ...tlsOptions, host, socket: tunnel }).on('data', onBytes);
    else socket = tls.connect({ ...options, ...tlsOptions });
    socket.on('session', (newSession) => {
      session = newSession;
    });
    reportConnection(socket, isTls ? 'secureConnect' : 'connect', onSocket);
    return socket.setNoDelay(true).setKeepAlive(true, keepAliveProbeMs);
  };
}

/** Calls `onSocket` once: when the socket is connected, fails, or takes too long. */
function reportConnection(socket: Socket, connectEvent: string, onSocket: OnSocket): void {
  let isSettled = false;
  const settle = (error?: Error) => {
    isSettled = true;
    clearTimeout(timer);
    socket.off(connectEvent, onConnect).off('error', settle).off('close', onClose);
    if (error) onSocket(error);
    else onSocket(undefined, socket);
  };
  const onConnect = () => settle();
  const onClose = () => settle(new Error('the socket was closed'));
  // A connection that was established while this process was busy is reported first.
  const timer = setTimeout(() => setImmediate(destroyUnlessSettled), connectTimeoutMs);
  const destroyUnlessSettled = () => {
    if (!isSettled) socket.destroy(createConnectTimeoutError());
  };
  socket.on(connectEvent, onConnect).on('error', settle).on('close', onClose);
}

function createConnectTimeoutError(): Error {
  return Object.assign(new Error('connect timeout'), { code: 'ETIMEDOUT' });
}
