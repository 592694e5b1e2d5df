import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createLazyLoader } from '@toolhost/errors/yield-to-event-loop';
import type { Secrets } from '../config.ts';
import { createFront } from '../edge/front.ts';
import { createFileListener } from '../gateway/files/file-listener.ts';
import { createMcpListener } from '../gateway/mcp-listener.ts';
import type { Log } from '../log.ts';
import type { Runner, ServingRunner } from '../operations/run-operation.ts';
import type { ThreadPool } from '../threads/thread-pool.ts';
import { createFindEndpoint } from './adapters/endpoints.ts';
import { type Caches, createCaches } from './caches.ts';
import { type CallLimiters, createCallLimiters } from './call-limiters.ts';
import { type CallRecords, startCallRecords } from './call-records.ts';
import { createFoundation, type Foundation } from './foundation.ts';
import type { FullConfig } from './full-config.ts';
import { createGateway, type Gateway } from './gateway.ts';
import { startLeaderJobs } from './leader-jobs/leader-jobs.ts';
import { createLogins, type Logins } from './logins.ts';
import { createManagement } from './management.ts';
import { createMetricSources, readStoredMetrics } from './observability/metric-sources.ts';
import type { Observability } from './observability/observability.ts';
import { joinProcesses } from './processes.ts';
import type { Readiness } from './readiness.ts';
import type { RuntimeOptions } from './runtime-options.ts';
import type { Web } from './web.ts';

export type App = {
  handle: (request: IncomingMessage, response: ServerResponse) => void;
  runner: Runner;
  observability: Pick<Observability, 'read' | 'onShed'>;
  /** Fails readiness probes, so that load balancers send requests elsewhere. */
  drain(): void;
  /** Resolves with the reason when this process must stop using the database. */
  databaseLost: Promise<string>;
  /** Used at exit: threads that are busy in native code cannot be ended. */
  threads: Pick<ThreadPool, 'getStates' | 'getCounts'>;
  /** Returns false if pending data was lost. */
  close(): Promise<boolean>;
};

/** Builds the components of a serving process and connects them. */
export async function createApp(config: FullConfig, secrets: Secrets, log: Log, runtime: RuntimeOptions): Promise<App> {
  const foundation = await createFoundation(config, secrets, log, runtime);
  const { store, observability, threads } = foundation;
  const caches = createCaches(foundation);
  const logins = createLogins(foundation, caches);
  const callRecords = startCallRecords(foundation, caches.credentialUses);
  const limiters = createCallLimiters(foundation);
  const gateway = createGateway(foundation, { caches, logins, limiters, callRecords });
  // Loaded with the first request. A process that serves only agents starts faster and uses less memory without it.
  const web = createLazyLoader<Web>(async () => {
    const { createWeb } = await import('./web.ts');
    return createWeb({ foundation, caches, logins, limiters, runner });
  });
  const runner = createManagement(foundation, { caches, logins, limiters, callRecords, gateway, web });
  const processes = await joinProcesses(foundation, caches);
  // Work during startup is not overload.
  limiters.measureLag();
  const { readiness } = processes;
  observability.addSources(
    createMetricSources({ foundation, caches, logins, limiters, callRecords, gateway, runner, readiness }),
    () => readStoredMetrics(store),
  );
  const handle = createHandler(foundation, { caches, logins, limiters, gateway, runner, readiness, web });
  const leaderJobs = startLeaderJobs(foundation, runner.deps);
  return {
    handle,
    runner,
    observability,
    threads,
    databaseLost: store.databaseLost,
    drain: readiness.drain,
    close: () => closeInOrder(foundation, { leaderJobs, processes, logins, caches, callRecords, limiters }),
  };
}

type HandlerDeps = {
  caches: Caches;
  logins: Logins;
  limiters: CallLimiters;
  gateway: Gateway;
  runner: ServingRunner;
  readiness: Readiness;
  web: () => Promise<Web>;
};

/** Creates the handler of all requests. */
function createHandler(foundation: Foundation, deps: HandlerDeps): App['handle'] {
  const { config, runtime, observability, onUnexpected } = foundation;
  const { caches, logins, gateway, runner, web } = deps;
  const { unverifiedCallers, unreadResponses } = deps.limiters.addresses;
  const { onResponse } = observability.webRouterHooks;
  return createFront({
    config,
    random: randomBytes,
    serveMcp: createMcpListener({
      findEndpoint: createFindEndpoint({ config, caches, logins, runner }, gateway.getEndpoint),
      serverUrl: runner.deps.serverUrl,
      unverifiedCallers,
      unreadResponses,
      memory: foundation.memory,
      clock: runtime.clock,
      onResponse: observability.mcpListenerHooks.onResponse,
      onRefused: observability.mcpListenerHooks.onRefused,
      onUnexpected,
    }),
    serveFile: createFileListener({
      files: gateway.callDeps.files,
      fileUrls: gateway.callDeps.fileUrls,
      findServer: caches.servers.find,
      callers: gateway.callers,
      unverifiedCallers,
      slowReaderMs: runtime.slowReaderMs,
      runningClock: runtime.runningClock,
      onResponse,
      onUnexpected,
    }),
    serveWeb: async (request, response) => (await web()).serve(request, response),
    probes: { getUnreadyReason: deps.readiness.findReason, onResponse },
    unverifiedCallers,
    unreadResponses,
    onUnexpected,
  });
}

/** Components that are stopped with the process, each before the components that it depends on. */
type RunningComponents = {
  leaderJobs: { stop(): Promise<void> };
  processes: { leave(): Promise<void> };
  logins: Logins;
  caches: Caches;
  callRecords: CallRecords;
  limiters: CallLimiters;
};

/** Stops the components in order. Returns false if pending data was lost. */
async function closeInOrder(foundation: Foundation, components: RunningComponents): Promise<boolean> {
  await components.leaderJobs.stop();
  await components.processes.leave();
  const savedAllTokens = await components.logins.stop();
  await components.caches.changes.stop();
  const [savedAllRecords] = await Promise.all([components.callRecords.stop(), components.limiters.stop()]);
  await foundation.threads.close();
  await Promise.all([foundation.http.close(), foundation.documents.close()]);
  await foundation.store.close();
  await foundation.observability.stop();
  return savedAllTokens && savedAllRecords;
}
