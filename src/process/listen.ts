import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';
import { createServer } from '../http/node-http.ts';

/**
 * Linux can give every worker a queue of its own for one port, and spreads connections over them. The way of
 * `node:cluster`, where the first process accepts and hands on, loses connections on their way to a worker that dies.
 */
const canSharePort = process.platform === 'linux';

/** Begins to listen and gives the port. @throws AppError conflict for a port in use */
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

/** The port for all workers, which nobody else uses: those who share one do not notice that. @throws AppError conflict */
export async function findPort(config: Config): Promise<number> {
  const server = createServer();
  const port = await listen(server, config, false);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
