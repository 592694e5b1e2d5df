import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Surroundings } from './app/foundation.ts';
import { startLoopLag } from './app/loop-lag.ts';
import { type App, createApp } from './app.ts';
import { type Config, readConfig } from './config.ts';
import { AppError } from './errors.ts';
import { type Example, provideExampleServer, startExampleUpstream } from './local/example.ts';
import { greeting } from './local/greeting.ts';
import { createLocalIdentity } from './local/identity.ts';
import { localMasterKey } from './local/master-key.ts';
import { createLog, type Log } from './log.ts';
import { systemResolve } from './outbound/connector.ts';
import { routes, urlOf } from './routes.ts';

export type Running = { config: Config; baseUrl: string; app: App; stop(): Promise<void> };

/** Longer than the idle time of the usual load balancers, so that they close first. */
const keepAliveMs = 65_000;
const drainMs = 25_000;

export const usualSurroundings: Surroundings = {
  resolve: systemResolve,
  headersMs: 10_000,
  requestMs: 30_000,
  slowReaderMs: 30_000,
  stalledMs: 120_000,
  queueMs: 2000,
  now: Date.now,
  clock: () => performance.now(),
  startLoopLag,
};

/** Starts the service and resolves when it can serve. @throws ConfigError, AppError conflict */
export async function start(env: NodeJS.ProcessEnv, surroundings: Surroundings = usualSurroundings): Promise<Running> {
  const config = readConfig(env, (path) => readFileSync(path, 'utf8'));
  const log = createLog(config.logLevel);
  let app: App | undefined;
  const server = createServer(
    {
      headersTimeout: surroundings.headersMs,
      requestTimeout: surroundings.requestMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: surroundings.headersMs / 5,
      noDelay: true,
    },
    (request, response) => {
      if (app) app.handle(request, response);
      else response.writeHead(503, { 'Retry-After': '1' }).end();
    },
  );
  server.setTimeout(surroundings.stalledMs);
  const port = await listen(server, config);
  const baseUrl = config.baseUrl ?? `http://127.0.0.1:${port}`;
  const example =
    config.mode === 'local' && config.demo ? await startExampleUpstream(config.dataDir, port + 1) : undefined;
  const masterKeys = config.masterKeys ?? [localMasterKey(config.dataDir)];
  const identity = identityOf(config, baseUrl, port + 2);
  try {
    app = await createApp(withExample({ ...config, baseUrl, masterKeys, identity }, example), log, surroundings);
    if (example) await provideExampleServer(app.runner, example.port);
  } catch (error) {
    await Promise.all([app?.close(), example?.close(), identity.close(), closeServer(server)]);
    throw error;
  }
  const running = app;
  return {
    config,
    baseUrl,
    app,
    async stop() {
      running.drain();
      await closeServer(server);
      await example?.close();
      await identity.close();
      await running.close();
    },
  };
}

/** The identity provider of the environment, or in local mode one of our own on loopback. */
function identityOf(config: Config, baseUrl: string, preferredPort: number) {
  const { oidc } = config;
  if (oidc) return { find: async () => oidc, host: new URL(oidc.issuer).host, close: async () => undefined };
  const redirectUris = [baseUrl + routes.loginCallback, urlOf(baseUrl, routes.callback, config.managementSlug)];
  return { ...createLocalIdentity(preferredPort, redirectUris), host: 'this machine' };
}

/** The operator of local mode is the person at the machine, who wants the example to be reachable. */
function withExample<C extends Config>(config: C, example: Example | undefined): C {
  if (!example) return config;
  const range = config.egressAllow;
  return { ...config, egressAllow: [...range, { host: '127.0.0.1', range: undefined, port: example.port }] };
}

function listen(server: Server, config: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new AppError('conflict', `port ${config.port} is in use; stop what uses it, or set PORT`)
          : error,
      );
    });
    server.listen(config.port, config.host, () => resolve((server.address() as AddressInfo).port));
  });
}

/** Lets running requests finish, up to a deadline. */
async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), drainMs);
  await closed;
  clearTimeout(timer);
}

/** `toolhost serve`: runs until a signal. */
export async function serve(): Promise<void> {
  const running = await start(process.env);
  // First of all, as whoever waits for the line below may send a signal at once.
  stopOnSignals(running, createLog('info'));
  process.stderr.write(greeting(running.config, running.baseUrl));
  process.stdout.write(`toolhost ready ${running.baseUrl}\n`);
}

function stopOnSignals(running: Running, log: Log): void {
  let stopping = false;
  const stop = (signal: string) => {
    if (stopping) process.exit(1);
    stopping = true;
    log.info({ signal }, 'stopping: running calls finish first');
    running.stop().then(
      () => process.exit(0),
      (error) => {
        log.error({ err: error }, 'did not stop cleanly');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.on('unhandledRejection', (error) => {
    log.fatal({ err: error }, 'a failure that nothing handles; the process ends so that it can be started afresh');
    process.exit(1);
  });
}
