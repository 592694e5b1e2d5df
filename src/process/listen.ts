import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';
import { createServer } from '../http/node-http.ts';

/**
 * Linux gives every worker its own accept queue for a shared port (SO_REUSEPORT) and spreads connections over them. The
 * default of `node:cluster`, where the primary accepts and hands over, loses connections in transit to a dying worker.
 */
const canSharePort = process.platform === 'linux';

/** Starts listening and returns the port. @throws AppError conflict for a port in use */
export function listen(server: Server, { port, host }: Config, isWorker: boolean): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new AppError('conflict', `port ${port} is in use; stop what uses it, or set PORT`)
          : error,
      );
    });
    const done = () => resolve((server.address() as AddressInfo).port);
    server.listen({ port, host, reusePort: isWorker && canSharePort }, done);
  });
}

/** A free port for all workers. Checked here, because listeners with SO_REUSEPORT do not notice others. @throws AppError conflict */
export async function findPort(config: Config): Promise<number> {
  const server = createServer();
  const port = await listen(server, config, false);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
