import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { AppError } from '@toolhost/errors/errors';
import type { Config } from '../config.ts';
import { createServer } from '../http/node-http.ts';

/**
 * True if workers can share a port. Linux gives every worker its own accept queue for a shared port (SO_REUSEPORT)
 * and distributes connections among them. The default of `node:cluster`, where the primary accepts and hands over
 * connections, loses connections in transit to a dying worker.
 */
const canSharePort = process.platform === 'linux';

/** Starts listening and returns the port. @throws AppError conflict for a port in use */
export function listen(server: Server, { port, host }: Config, isWorker: boolean): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(explainListenError(error, port, host));
    });
    const onListening = () => resolve((server.address() as AddressInfo).port);
    server.listen({ port, host, reusePort: isWorker && canSharePort }, onListening);
  });
}

/**
 * Returns the port to listen on later: the configured port, or a free one. It checks for use by connecting, because
 * listening for a moment would accept, and lose, calls that a proxy sends in the meantime.
 * @throws AppError conflict
 */
export async function findPort(config: Config): Promise<number> {
  if (config.port !== 0) {
    if (await isPortInUse(config)) throw createPortInUseError(config.port);
    return config.port;
  }
  const server = createServer();
  const port = await listen(server, config, false);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

/** Addresses at which a server that listens on a wildcard address can be reached. */
const loopbackByWildcard: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

function isPortInUse({ port, host }: Config): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: loopbackByWildcard[host] ?? host });
    const finish = (isConnected: boolean) => {
      socket.destroy();
      resolve(isConnected);
    };
    socket.once('connect', () => finish(true)).once('error', () => finish(false));
  });
}

function createPortInUseError(port: number): AppError {
  return new AppError('conflict', `port ${port} is in use; stop the process that uses it, or set PORT or --port`);
}

/** Codes for an address of another machine, and for a name that leads to no address. */
const unknownAddressCodes = ['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'];

function explainListenError(error: NodeJS.ErrnoException, port: number, host: string): Error {
  if (error.code === 'EADDRINUSE') return createPortInUseError(port);
  if (error.code === 'EACCES')
    return new AppError('forbidden', `this user may not listen on port ${port}; set PORT or --port to 1024 or higher`);
  if (error.code !== undefined && unknownAddressCodes.includes(error.code))
    return new AppError('invalid', `HOST: ${host} is not an address of this machine; set 127.0.0.1, 0.0.0.0, or ::`);
  return error;
}
