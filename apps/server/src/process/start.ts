import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { resolveWithSystem } from '@toolhost/safe-http/connector';
import { getLookupLimits } from '@toolhost/safe-http/lookups';
import { type App, createApp } from '../app/app.ts';
import type { FullConfig } from '../app/full-config.ts';
import { defaultPollIntervalMs } from '../app/leader-jobs/leader-job.ts';
import { createLoopLag } from '../app/observability/loop-lag.ts';
import { divideProcessMemory } from '../app/process-memory.ts';
import type { RuntimeOptions } from '../app/runtime-options.ts';
import { processClocks } from '../app/runtime-options.ts';
import { type Config, readConfig, type Settings } from '../config.ts';
import { closeSilentConnections, extendTimeoutsByPauses, limitConnections } from '../edge/client-connections.ts';
import { createServer } from '../http/node-http.ts';
import { BodyRequest } from '../http/read-body.ts';
import { provideExampleServer } from '../local/example.ts';
import { type SharedServices, startSharedServices } from '../local/start-shared.ts';
import { createLog, type Log } from '../log.ts';
import { findPort, listen } from './listen.ts';
import type { PrimaryProcess } from './worker.ts';

export type RunningService = {
  config: Config;
  baseUrl: string;
  app: App;
  /** Fails readiness probes and asks clients to close their connections, while requests are still served. */
  drain(): void;
  /** Lets running requests finish within `ms`. Returns false if some had to be cut off. */
  stop(ms?: number): Promise<boolean>;
};

/** Time from the signal to the exit, in ms. Below the 30 s that supervisors usually allow. */
export const shutdownTimeoutMs = 25_000;
/** Interval at which idle connections are closed during shutdown, in ms. */
const sweepIntervalMs = 100;

/** File descriptors reserved for connections to upstreams (`safe-http/src/connections.ts`), and for everything else. */
const reservedForUpstreams = 4096;
const reservedForOthers = 256;
/** Assumed limit if the system does not report one. */
const defaultDescriptors = 4096;
/** Maximum number of client connections, because each takes memory. A limit of 16,384 descriptors allows as many. */
export const maxClientConnections = 12_000;

/** Returns the maximum number of client connections. It leaves descriptors for other work, but at most half of them. */
function getMaxClientConnections(): number {
  const descriptors = readOpenFilesLimit() ?? defaultDescriptors;
  const available = Math.max(descriptors - reservedForUpstreams - reservedForOthers, Math.floor(descriptors / 2));
  return Math.min(available, maxClientConnections);
}

/**
 * Returns the maximum number of files and sockets that this process may open; undefined if the system does not report
 * it, or without a limit.
 */
function readOpenFilesLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    // The file exists only on Linux.
    return undefined;
  }
}

export const defaultRuntimeOptions: RuntimeOptions = {
  resolve: resolveWithSystem,
  dnsLimits: getLookupLimits(process.env.UV_THREADPOOL_SIZE),
  extraPublicAddresses: [],
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  slowReaderMs: 30_000,
  idleTimeoutMs: 120_000,
  maxConnections: getMaxClientConnections(),
  queueMs: 2000,
  reportShare: 0.1,
  leaderPollIntervalMs: defaultPollIntervalMs,
  divideMemory: divideProcessMemory,
  ...processClocks,
  createLoopLag,
};

/** Starts the service with an environment, and resolves when it can serve. @throws ConfigError, AppError conflict */
export async function start(env: NodeJS.ProcessEnv, runtime?: RuntimeOptions): Promise<RunningService> {
  const settings = readConfig(env, readText);
  return startService(settings, createLog(settings.config.logLevel), { runtime });
}

/** Starts the service, or one of its workers, and resolves when it can serve. @throws AppError conflict */
export async function startService(
  settings: Settings,
  log: Log,
  { runtime = defaultRuntimeOptions, primary }: { runtime?: RuntimeOptions | undefined; primary?: PrimaryProcess } = {},
): Promise<RunningService> {
  const { config, secrets } = settings;
  let app: App | undefined;
  const server = createServer({
    IncomingMessage: BodyRequest,
    headersTimeout: runtime.headersTimeoutMs,
    requestTimeout: runtime.requestTimeoutMs,
    // `closeSilentConnections` closes idle connections instead.
    keepAliveTimeout: 0,
    connectionsCheckingInterval: runtime.headersTimeoutMs / 5,
    noDelay: true,
  });
  const setHandler = (handle: App['handle']) => {
    // An unknown expectation may be ignored (RFC 9110, 10.1.1). Node would respond to it outside all limits.
    for (const event of ['request', 'checkExpectation']) server.removeAllListeners(event).on(event, handle);
  };
  setHandler((_request, response) => void response.writeHead(503, { 'Retry-After': '1' }).end());
  extendTimeoutsByPauses(server);
  closeSilentConnections(server, runtime.idleTimeoutMs);
  // Behind proxies, all connections are theirs.
  if (config.trustedProxies === 0)
    limitConnections(server, runtime.maxConnections, (shedKind) => app?.observability.onShed(shedKind));
  // A process listens only when it can serve, so that a proxy in front sends it no call before. Only to find a free port
  // it must listen earlier. A port in use is reported before the database is opened.
  const usesFreePort = !primary && config.port === 0;
  const port = usesFreePort ? await listen(server, config, false) : primary ? config.port : await findPort(config);
  const baseUrl = config.baseUrl ?? `http://127.0.0.1:${port}`;
  let local: SharedServices | undefined;
  try {
    local = primary ? await primary.join(secrets.oidc) : await startSharedServices(settings, baseUrl, port);
    app = await createApp(toFullConfig(config, baseUrl, local, primary), secrets, log, runtime);
    if (local.maintainsExample && local.examplePort !== undefined) {
      await provideExampleServer(app.runner, local.examplePort);
    }
    primary?.onReport(app.observability.read);
    setHandler(app.handle);
    if (!usesFreePort) await listen(server, config, primary !== undefined);
  } catch (error) {
    await Promise.all([app?.close(), local?.close(), closeServer(server, shutdownTimeoutMs)]);
    throw error;
  }
  const startedApp = app;
  const startedLocal = local;
  const drain = () => {
    setHandler((request, response) => {
      response.setHeader('Connection', 'close');
      startedApp.handle(request, response);
    });
    startedApp.drain();
  };
  return {
    config,
    baseUrl,
    app,
    drain,
    async stop(ms = shutdownTimeoutMs) {
      drain();
      const isComplete = await closeServer(server, ms);
      await startedLocal.close();
      return (await startedApp.close()) && isComplete;
    },
  };
}

export const readText = (path: string) => readFileSync(path, 'utf8');

/**
 * Adds the values of local mode to a configuration. Local mode allows egress to the worked example, which listens on
 * loopback.
 */
function toFullConfig(
  config: Config,
  baseUrl: string,
  local: SharedServices,
  siblings: PrimaryProcess | undefined,
): FullConfig {
  const { examplePort, identity } = local;
  const exampleEgress = examplePort === undefined ? [] : [{ host: '127.0.0.1', range: undefined, port: examplePort }];
  return { ...config, baseUrl, identity, siblings, egressAllow: [...config.egressAllow, ...exampleEgress] };
}

/** Lets running requests finish within `ms`. Returns false if some had to be cut off. */
async function closeServer(server: Server, ms: number): Promise<boolean> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  let isComplete = true;
  const sweep = setInterval(() => server.closeIdleConnections(), sweepIntervalMs);
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
