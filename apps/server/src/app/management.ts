import { getExposedTools } from '../gateway/hosted/server-variants.ts';
import { createTryOut } from '../gateway/try-out.ts';
import type { Serving } from '../operations/operation.ts';
import { createConcurrencyLimiters } from '../operations/quotas/concurrency-limiters.ts';
import type { ServingRunner } from '../operations/run-operation.ts';
import { createFindPerson } from './adapters/callers.ts';
import { createConnectionProbe } from './adapters/connection-probe.ts';
import { createReadLongBody } from './adapters/long-bodies.ts';
import { createNotificationSender } from './adapters/notifier.ts';
import type { Caches } from './caches.ts';
import type { CallLimiters } from './call-limiters.ts';
import type { CallRecords } from './call-records.ts';
import type { Foundation } from './foundation.ts';
import type { Gateway } from './gateway.ts';
import { createLoginCheck, type Logins } from './logins.ts';
import { createOperationDeps } from './operation-deps.ts';
import type { Web } from './web.ts';

type ManagementDeps = {
  caches: Caches;
  logins: Logins;
  limiters: CallLimiters;
  callRecords: CallRecords;
  gateway: Gateway;
  web: () => Promise<Web>;
};

/** Creates the runner of operations, which the REST API, the management server, and the leader jobs use. */
export function createManagement(foundation: Foundation, deps: ManagementDeps): ServingRunner {
  const { config, runtime, store, keyring, membership, threads, maxQueuedBytes } = foundation;
  return {
    db: store.db,
    transactions: store.transactions,
    reports: store.reports,
    deps: createOperationDeps(config, keyring, store.time.now, {
      threads,
      http: foundation.http,
      clock: runtime.runningClock,
      serving: createServing(foundation, deps),
    }),
    concurrencyLimiters: createConcurrencyLimiters({
      maxConcurrentReports: store.engine === 'sqlite' ? 1 : 2,
      // The processes share the time of reports.
      reportShare: () => runtime.reportShare / membership.count,
      maxQueuedBytes,
      onShed: foundation.observability.onShed,
    }),
    memory: foundation.memory,
    readLongBody: createReadLongBody(threads, maxQueuedBytes),
    clock: runtime.clock,
    onCommitted: deps.caches.changes.pollAfterCommit,
  };
}

/** Creates the functions that operations need from a process that serves calls. */
function createServing({ http, secrets, log, runtime }: Foundation, deps: ManagementDeps): Serving {
  const { oauth, grants } = deps.logins;
  const { callDeps, getEndpoint } = deps.gateway;
  const { servers } = deps.caches;
  const findPerson = createFindPerson(deps.logins);
  const tryOut = createTryOut(servers, { ...callDeps, findPerson }, runtime.clock);
  return {
    currentUsage: deps.limiters.currentUsage,
    callTool: tryOut.callTool,
    previewCall: tryOut.previewCall,
    getOfferedTools: (request) => getExposedTools(servers, request),
    async askModel(request) {
      const { sendQuestion } = await import('../gateway/models/send-question.ts');
      const { limits, record, now } = callDeps;
      return sendQuestion(request, { servers, http, limits, record, now });
    },
    probeConnection: createConnectionProbe({
      servers,
      oauth,
      getEndpoint,
      getLoginRouter: async () => (await deps.web()).loginRouter,
    }),
    finishLogin: createLoginCheck(oauth, grants),
    flushCalls: deps.callRecords.flush,
    notifier: createNotificationSender(http, secrets, log),
  };
}
