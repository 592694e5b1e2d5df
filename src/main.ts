import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { FullConfig } from './app/full-config.ts';
import { listen } from './app/listen.ts';
import { startLoopLag } from './app/loop-lag.ts';
import { processClocks, type Surroundings } from './app/surroundings.ts';
import type { FirstProcess } from './app/worker.ts';
import { type App, createApp } from './app.ts';
import { type Config, readConfig, type Settings } from './config.ts';
import { closeSilentConnections } from './edge/silent-connections.ts';
import { createServer } from './http.ts';
import { provideExampleServer } from './local/example.ts';
import { greeting } from './local/greeting.ts';
import { type LocalParts, startLocalParts } from './local/parts.ts';
import { createLog, type Log } from './log.ts';
import { systemResolve } from './outbound/connector.ts';

export type Running = {
  config: Config;
  baseUrl: string;
  app: App;
  /** Says no to readiness probes and asks clients to leave, while everything is still served. */
  drain(): void;
  /** Lets running requests finish within `ms`. False when some had to be cut off. */
  stop(ms?: number): Promise<boolean>;
};

/** From the signal to the end: below the half minute that supervisors usually grant. */
const drainMs = 25_000;
/** How long connections are still taken after the signal, so that load balancers notice first. */
const noticeMs = { local: 0, production: 5000 };
/** How long calls may still take when the database is lost. */
const lostMs = 2000;
/** How long a worker may take to end after that. */
const graceMs = 3000;
/** How often connections that have become idle are closed while the rest finishes. */
const sweepMs = 100;

export const usualSurroundings: Surroundings = {
  resolve: systemResolve,
  publicAddresses: [],
  headersMs: 10_000,
  requestMs: 30_000,
  slowReaderMs: 30_000,
  silentMs: 120_000,
  queueMs: 2000,
  reportShare: 0.1,
  ...processClocks,
  startLoopLag,
};

/**
 * Starts the service, or one worker of it, and resolves when it can serve.
 * @throws ConfigError, AppError conflict
 */
export async function start(
  env: NodeJS.ProcessEnv,
  surroundings: Surroundings = usualSurroundings,
  first?: FirstProcess,
): Promise<Running> {
  const settings = readConfig(env, readText);
  const { config, secrets } = settings;
  const log = createLog(config.logLevel);
  let app: App | undefined;
  let draining = false;
  const server = createServer(
    {
      headersTimeout: surroundings.headersMs,
      requestTimeout: surroundings.requestMs,
      // `closeSilentConnections` does this.
      keepAliveTimeout: 0,
      connectionsCheckingInterval: surroundings.headersMs / 5,
      noDelay: true,
    },
    (request, response) => {
      if (draining) response.setHeader('Connection', 'close');
      if (app) app.handle(request, response);
      else response.writeHead(503, { 'Retry-After': '1' }).end();
    },
  );
  closeSilentConnections(server, surroundings.silentMs);
  // A process that is alone may find its port only now. A worker knows it, and takes no connection before it can serve.
  const port = first ? config.port : await listen(server, config, false);
  const baseUrl = config.baseUrl ?? `http://127.0.0.1:${port}`;
  let local: LocalParts | undefined;
  try {
    local = first ? await first.join(secrets.oidc) : await startLocalParts(settings, baseUrl, port);
    app = await createApp(fullConfig(config, baseUrl, local, first), secrets, log, surroundings);
    if (local.providesExample && local.examplePort !== undefined) {
      await provideExampleServer(app.runner, local.examplePort);
    }
    first?.onReport(app.metrics);
    if (first) await listen(server, config, true);
  } catch (error) {
    await Promise.all([app?.close(), local?.close(), closeServer(server, drainMs)]);
    throw error;
  }
  const running = app;
  const parts = local;
  const drain = () => {
    draining = true;
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
      await parts.close();
      return (await running.close()) && isComplete;
    },
  };
}

const readText = (path: string) => readFileSync(path, 'utf8');

/** The operator of local mode is the person at the machine, who wants the example to be reachable. */
function fullConfig(
  config: Config,
  baseUrl: string,
  local: LocalParts,
  siblings: FirstProcess | undefined,
): FullConfig {
  const { examplePort, identity } = local;
  const own = examplePort === undefined ? [] : [{ host: '127.0.0.1', range: undefined, port: examplePort }];
  return { ...config, baseUrl, identity, siblings, egressAllow: [...config.egressAllow, ...own] };
}

/** Lets running requests finish, up to a deadline. False when some had not. */
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

/** `toolhost serve`: runs until a signal. */
export async function serve(): Promise<void> {
  const settings = readConfig(process.env, readText);
  const { config } = settings;
  const log = createLog(config.logLevel);
  process.on('unhandledRejection', (error) => {
    log.fatal({ err: error }, 'a failure that nothing handles; the process ends so that it can be started afresh');
    process.exit(1);
  });
  if (config.workers === 1) return serveAlone(config, log);
  // What several processes need is loaded only where there are several.
  const { default: cluster } = await import('node:cluster');
  return cluster.isWorker ? serveAsWorker(config, log) : serveWithWorkers(settings, log);
}

async function serveAlone(config: Config, log: Log): Promise<void> {
  const running = await start(process.env);
  // First of all, as whoever waits for the line below may send a signal at once.
  stopOnSignals(log, () => stopGently(running, config));
  stopWhenLost(log, running.app.lost, () => running.stop(lostMs));
  sayReady(config, running.baseUrl);
  giveBackMemory();
}

async function serveWithWorkers(settings: Settings, log: Log): Promise<void> {
  const { startWorkers } = await import('./app/workers.ts');
  const workers = await startWorkers(settings, log);
  const stop = () => workers.stop(drainMs + graceMs);
  stopOnSignals(log, stop);
  stopWhenLost(log, workers.lost, stop);
  workers.givenUp.then(stop).finally(() => process.exit(1));
  sayReady(settings.config, workers.baseUrl);
  giveBackMemory();
}

async function serveAsWorker(config: Config, log: Log): Promise<void> {
  const { firstProcess } = await import('./app/worker.ts');
  const first = firstProcess();
  // A terminal sends its signals to every process; the first one passes them on.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => undefined);
  let running: Running | undefined;
  first.stopped.then(() => endWith(log, async () => !running || stopGently(running, config)));
  running = await start(process.env, usualSurroundings, first);
  first.sayReady();
  giveBackMemory();
}

/** What the start has used and nobody needs any more; it would stay until a load came. `bin/toolhost` makes this possible. */
function giveBackMemory(): void {
  setImmediate(() => globalThis.gc?.({ type: 'major', flavor: 'last-resort' }));
}

function sayReady(config: Config, baseUrl: string): void {
  process.stderr.write(greeting(config, baseUrl));
  process.stdout.write(`toolhost ready ${baseUrl}\n`);
}

/** Not ready at first, and in production still there for those who have not noticed. */
async function stopGently(running: Running, { mode }: Config): Promise<boolean> {
  running.drain();
  await delay(noticeMs[mode]);
  return running.stop(drainMs - noticeMs[mode]);
}

function stopOnSignals(log: Log, stop: () => Promise<boolean>): void {
  let stopping = false;
  const onSignal = (signal: string) => {
    if (stopping) process.exit(1);
    stopping = true;
    log.info({ signal }, 'stopping: running calls finish first');
    void endWith(log, stop);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

/** A process whose database is lost ends with 1; what it still answers is not kept. */
function stopWhenLost(log: Log, lost: Promise<string>, stop: () => Promise<boolean>): void {
  void lost.then((why) => {
    log.fatal(why);
    return endWith(log, async () => {
      await stop();
      return false;
    });
  });
}

/** Ends the process: with 0 when everything was finished, with 1 when not. */
async function endWith(log: Log, stop: () => Promise<boolean>): Promise<void> {
  try {
    const isComplete = await stop();
    if (!isComplete) log.error('not everything could be finished in time');
    process.exit(isComplete ? 0 : 1);
  } catch (error) {
    log.error({ err: error }, 'did not stop cleanly');
    process.exit(1);
  }
}
