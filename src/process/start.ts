import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { type App, createApp } from '../app/app.ts';
import { usualLookMs } from '../app/elected/elected-work.ts';
import type { FullConfig } from '../app/full-config.ts';
import { createLoopLag } from '../app/observability/loop-lag.ts';
import { processMemory } from '../app/process-memory.ts';
import { processClocks, type Surroundings } from '../app/surroundings.ts';
import { type Config, readConfig } from '../config.ts';
import { closeSilentConnections, limitConnections, prolongTimeByStops } from '../edge/client-connections.ts';
import { createServer } from '../http/node-http.ts';
import { provideExampleServer } from '../local/example.ts';
import { type LocalParts, startLocalParts } from '../local/parts.ts';
import { createLog } from '../log.ts';
import { systemResolve } from '../outbound/connector.ts';
import { lookupLimits } from '../outbound/lookups.ts';
import { findPort, listen } from './listen.ts';
import type { PrimaryProcess } from './worker.ts';

export type Running = {
  config: Config;
  baseUrl: string;
  app: App;
  /** Fails readiness probes and asks clients to close their connections, while requests are still served. */
  drain(): void;
  /** Lets running requests finish within `ms`. Returns false if some had to be cut off. */
  stop(ms?: number): Promise<boolean>;
};

/** Time from the signal to the exit, in ms. Below the 30 s that supervisors usually allow. */
export const drainMs = 25_000;
/** Interval at which idle connections are closed during shutdown. */
const sweepMs = 100;

/**
 * File descriptors reserved for connections to APIs (`outbound/connections.ts`), and for the database, files, and
 * threads.
 */
const mostForUpstreams = 4096;
const forOthers = 256;
/** Assumed limit if the system does not report one. */
const usualDescriptors = 4096;
/** Maximum number of client connections. It is what 16,384 descriptors leave. An idle connection also takes memory. */
export const mostForClients = 12_000;

/**
 * Returns the maximum number of client connections, so that other work finds a descriptor: at least half of them are
 * reserved.
 */
function mostClientConnections(): number {
  const all = openFilesLimit() ?? usualDescriptors;
  const left = Math.max(all - mostForUpstreams - forOthers, Math.floor(all / 2));
  return Math.min(left, mostForClients);
}

/**
 * Returns the maximum number of files and sockets that this process may open; undefined if the system does not report
 * it, or without a limit.
 */
function openFilesLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    // The file exists only on Linux.
    return undefined;
  }
}

export const usualSurroundings: Surroundings = {
  resolve: systemResolve,
  lookups: lookupLimits(process.env.UV_THREADPOOL_SIZE),
  publicAddresses: [],
  headersMs: 10_000,
  requestMs: 30_000,
  slowReaderMs: 30_000,
  silentMs: 120_000,
  mostConnections: mostClientConnections(),
  queueMs: 2000,
  reportShare: 0.1,
  electedLookMs: usualLookMs,
  memory: processMemory,
  ...processClocks,
  createLoopLag,
};

/**
 * Starts the service, or one of its workers, and resolves when it can serve.
 * @throws ConfigError, AppError conflict
 */
export async function start(
  env: NodeJS.ProcessEnv,
  surroundings: Surroundings = usualSurroundings,
  primary?: PrimaryProcess,
): Promise<Running> {
  const settings = readConfig(env, readText);
  const { config, secrets } = settings;
  const log = createLog(config.logLevel);
  let app: App | undefined;
  const server = createServer({
    headersTimeout: surroundings.headersMs,
    requestTimeout: surroundings.requestMs,
    // `closeSilentConnections` closes idle connections instead.
    keepAliveTimeout: 0,
    connectionsCheckingInterval: surroundings.headersMs / 5,
    noDelay: true,
  });
  const serveWith = (handle: App['handle']) => {
    // An unknown expectation may be ignored (RFC 9110, 10.1.1). Node would respond to it outside all limits.
    for (const event of ['request', 'checkExpectation']) server.removeAllListeners(event).on(event, handle);
  };
  serveWith((_request, response) => void response.writeHead(503, { 'Retry-After': '1' }).end());
  prolongTimeByStops(server);
  closeSilentConnections(server, surroundings.silentMs);
  // Behind proxies, all connections are theirs.
  if (config.trustedProxies === 0)
    limitConnections(server, surroundings.mostConnections, (what) => app?.observability.onGivenUp(what));
  // A process listens only when it can serve, so that a proxy in front sends it no call before. A free port is only
  // known by listening, and a port in use is reported before the database is touched.
  const isFree = !primary && config.port === 0;
  const port = isFree ? await listen(server, config, false) : primary ? config.port : await findPort(config);
  const baseUrl = config.baseUrl ?? `http://127.0.0.1:${port}`;
  let local: LocalParts | undefined;
  try {
    local = primary ? await primary.join(secrets.oidc) : await startLocalParts(settings, baseUrl, port);
    app = await createApp(fullConfig(config, baseUrl, local, primary), secrets, log, surroundings);
    if (local.providesExample && local.examplePort !== undefined) {
      await provideExampleServer(app.runner, local.examplePort);
    }
    primary?.onReport(app.observability.read);
    serveWith(app.handle);
    if (!isFree) await listen(server, config, primary !== undefined);
  } catch (error) {
    await Promise.all([app?.close(), local?.close(), closeServer(server, drainMs)]);
    throw error;
  }
  const running = app;
  const localParts = local;
  const drain = () => {
    serveWith((request, response) => {
      response.setHeader('Connection', 'close');
      running.handle(request, response);
    });
    running.drain();
  };
  return {
    config,
    baseUrl,
    app,
    drain,
    async stop(ms = drainMs) {
      drain();
      const isComplete = await closeServer(server, ms);
      await localParts.close();
      return (await running.close()) && isComplete;
    },
  };
}

export const readText = (path: string) => readFileSync(path, 'utf8');

/**
 * Adds the values of local mode to a configuration. Local mode allows egress to the worked example, which listens on
 * loopback.
 */
function fullConfig(
  config: Config,
  baseUrl: string,
  local: LocalParts,
  siblings: PrimaryProcess | undefined,
): FullConfig {
  const { examplePort, identity } = local;
  const own = examplePort === undefined ? [] : [{ host: '127.0.0.1', range: undefined, port: examplePort }];
  return { ...config, baseUrl, identity, siblings, egressAllow: [...config.egressAllow, ...own] };
}

/** Lets running requests finish within `ms`. Returns false if some had to be cut off. */
async function closeServer(server: Server, ms: number): Promise<boolean> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  let isComplete = true;
  const sweep = setInterval(() => server.closeIdleConnections(), sweepMs);
  const timer = setTimeout(() => {
    isComplete = false;
    server.closeAllConnections();
  }, ms);
  server.closeIdleConnections();
  await closed;
  clearInterval(sweep);
  clearTimeout(timer);
  return isComplete;
}
