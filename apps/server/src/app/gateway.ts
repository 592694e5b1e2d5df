import { randomBytes } from 'node:crypto';
import type { CallToolDeps } from '../gateway/call/call-tool.ts';
import { createFileUrls } from '../gateway/files/attach-files.ts';
import { createFileStore } from '../gateway/files/stored-files.ts';
import { createContinuationStore } from '../gateway/long-results/continuations.ts';
import { createCallerOptions } from './adapters/callers.ts';
import { createGetEndpoint } from './adapters/endpoints.ts';
import { createScopeRequests } from './adapters/scope-requests.ts';
import { createThreadWork } from './adapters/threads.ts';
import type { Caches } from './caches.ts';
import type { CallLimiters } from './call-limiters.ts';
import type { CallRecords } from './call-records.ts';
import type { Foundation } from './foundation.ts';
import type { Logins } from './logins.ts';
import { createUrlRule } from './operation-deps.ts';

type GatewayDeps = { caches: Caches; logins: Logins; limiters: CallLimiters; callRecords: CallRecords };

/** Creates the components that authorize calls to hosted servers, and run them. */
export function createGateway(foundation: Foundation, { caches, logins, limiters, callRecords }: GatewayDeps) {
  const { config, store, keyring, observability, onUnexpected } = foundation;
  const { now } = store.time;
  const storeOptions = { db: store.db, records: store.records, keyring, random: randomBytes, now, onUnexpected };
  const callDeps: CallToolDeps = {
    limits: limiters.limits,
    memory: foundation.memory,
    threads: createThreadWork(foundation.threads),
    http: foundation.http,
    circuits: limiters.circuits,
    urlProblem: createUrlRule(config),
    clientTokens: logins.clientTokens,
    requestScopes: createScopeRequests(store.db, now),
    continuations: createContinuationStore(storeOptions),
    files: createFileStore(storeOptions),
    fileUrls: createFileUrls(config.baseUrl, config.serverHosts),
    record: callRecords.add,
    observe: observability.callHooks.observe,
    trace: observability.callHooks.trace,
    now,
    onUnexpected,
  };
  const callers = createCallerOptions(caches, logins, limiters.addresses, foundation);
  return { callDeps, callers, getEndpoint: createGetEndpoint(config, callers, callDeps) };
}

export type Gateway = ReturnType<typeof createGateway>;
