import { flushCompileCache } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { getNewestMigration } from '../app/open-store.ts';
import { type Config, readConfig, type Settings } from '../config.ts';
import type { DevServers } from '../local/dev-servers.ts';
import { createSignInLink } from '../local/sign-in-link.ts';
import { type CommandSettings, formatCommandSettings, formatGreeting } from '../local/startup-message.ts';
import { createLog, type Log } from '../log.ts';
import { commit, programName, version } from '../version.ts';
import { releaseMemory, setServiceFlags } from './engine-flags.ts';
import { exitAfter, exitDespiteThreads, stopOnDatabaseLoss, stopOnSignals } from './signals.ts';
import { type RunningService, readText, shutdownTimeoutMs, startService } from './start.ts';

/** Maximum time for running calls to finish after the database is lost, in ms. */
const databaseLostGraceMs = 2000;
/** Maximum time for a worker to exit after its calls are drained, in ms. */
const workerExitGraceMs = 3000;

/** Work of a command that starts the service. Returns the part of the startup text that follows where the data is. */
export type StartWork = (service: {
  run: DevServers['run'];
  /** Settings with which commands find this service and its database, as the start of a command line. */
  settings: CommandSettings;
}) => Promise<string>;

/** `toolhost serve`: runs until a signal. Before the ready line, does the work of the command that starts the service. */
export async function serve(work?: StartWork): Promise<void> {
  const settings = readConfig(process.env, readText);
  const { config } = settings;
  // A person at a terminal gets the startup text instead of the log lines with the same content.
  const isTextOnly = process.stderr.isTTY && config.mode === 'local' && config.logLevel === 'info';
  const log = createLog(isTextOnly ? 'warn' : config.logLevel);
  process.on('unhandledRejection', (error) => {
    log.fatal({ err: error }, 'unhandled rejection; the process exits so that it can be restarted');
    process.exit(1);
  });
  if (config.workers === 1 || work) return serveAsOneProcess(settings, log, work);
  // Loaded only when there are several processes.
  const { default: cluster } = await import('node:cluster');
  if (cluster.isWorker) return serveAsWorker(settings, log);
  // The options of the command line are already part of the environment.
  cluster.setupPrimary({ args: ['serve'] });
  return serveWithWorkers(settings, log);
}

async function serveAsOneProcess(settings: Settings, log: Log, work?: StartWork): Promise<void> {
  const { config } = settings;
  const service = await startService(settings, log);
  exitDespiteThreads(config.logLevel, service.app);
  // Registered before the ready line, because a supervisor that waits for that line may send a signal immediately.
  stopOnSignals(log, () => stopGracefully(service, config));
  stopOnDatabaseLoss(log, service.app.databaseLost, () => service.stop(databaseLostGraceMs));
  const { runner } = service.app;
  const createLink = () => createSignInLink({ db: runner.db, now: runner.deps.now }, service.baseUrl);
  await announceReady(log, settings, service.baseUrl, createLink, work && (await runStartWork(work, service)));
  setImmediate(settle);
}

/** Does the work of the command that started the service, which stops if the work fails. */
async function runStartWork(work: StartWork, { app, baseUrl, config, stop }: RunningService): Promise<string> {
  const { createDevServers } = await import('../local/dev-servers.ts');
  try {
    const { run } = createDevServers(app.runner);
    return await work({ run, settings: formatCommandSettings(config, baseUrl) });
  } catch (error) {
    await stop();
    throw error;
  }
}

async function serveWithWorkers(settings: Settings, log: Log): Promise<void> {
  const { startWorkers } = await import('./primary.ts');
  const workers = await startWorkers(settings, log);
  const stop = () => workers.stop(shutdownTimeoutMs + workerExitGraceMs);
  stopOnSignals(log, stop);
  stopOnDatabaseLoss(log, workers.databaseLost, stop);
  workers.failedPermanently.then(stop).finally(() => process.exit(1));
  await announceReady(log, settings, workers.baseUrl, workers.createSignInLink);
  setImmediate(settle);
}

async function serveAsWorker(settings: Settings, log: Log): Promise<void> {
  const { config } = settings;
  const { connectToPrimary } = await import('./worker.ts');
  const primary = connectToPrimary();
  // A terminal sends its signals to every process. Workers ignore them and wait for the primary's message.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => undefined);
  let service: RunningService | undefined;
  primary.stopRequested.then(() => exitAfter(log, async () => !service || stopGracefully(service, config)));
  service = await startService(settings, log, { primary });
  exitDespiteThreads(config.logLevel, service.app);
  primary.reportReady();
  setImmediate(settle);
}

/**
 * Logs one line that identifies the running service, for later analysis, and prints how to use it. A sign-in link is only
 * printed, because logs are stored and read by others.
 */
async function announceReady(
  log: Log,
  { config, secrets }: Settings,
  baseUrl: string,
  createLink: () => Promise<string>,
  introduction?: string,
): Promise<void> {
  const { mode, engine, workers } = config;
  const migration = getNewestMigration();
  log.info(
    { version, commit, node: process.version, mode, engine, migration, workers, baseUrl },
    `listening on ${baseUrl}`,
  );
  process.stderr.write(formatGreeting(config, baseUrl, introduction));
  const link = mode === 'local' && !secrets.oidc ? await tryCreateLink(log, createLink) : undefined;
  const linkLine = link === undefined ? '' : `Open the dashboard (once, within 15 minutes): ${link}\n`;
  process.stdout.write(`toolhost ready ${baseUrl}\n${linkLine}`);
  log.level = config.logLevel;
}

async function tryCreateLink(log: Log, createLink: () => Promise<string>): Promise<string | undefined> {
  try {
    return await createLink();
  } catch (error) {
    log.error({ err: error }, `no sign-in link could be created; create one with: ${programName} open`);
    return undefined;
  }
}

/** Stops the service. Until load balancers have noticed that it is not ready, it continues to serve. */
async function stopGracefully(service: RunningService, { drainDelayMs }: Config): Promise<boolean> {
  service.drain();
  await delay(drainDelayMs);
  return service.stop(shutdownTimeoutMs - drainDelayMs);
}

/**
 * Does what would delay the ready line: saves the compile cache, which a killed process cannot save at exit, sets the
 * flags, and releases the memory that the start used. The flags come after the compile cache, because V8 only accepts
 * code that was compiled with the same flags.
 */
function settle(): void {
  flushCompileCache();
  setServiceFlags();
  releaseMemory();
}
