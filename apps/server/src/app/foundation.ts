import { MemoryBudget } from '@toolhost/limits/memory-budget';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import type { Secrets } from '../config.ts';
import type { Log } from '../log.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { ThreadPool } from '../threads/thread-pool.ts';
import { startThreads } from './adapters/threads.ts';
import type { FullConfig } from './full-config.ts';
import { openKeyring } from './keys/keyring.ts';
import { createMembership, type Membership } from './membership.ts';
import { type Observability, startObservability } from './observability/observability.ts';
import { openStore, type Store } from './open-store.ts';
import { createOutboundClients } from './outbound-clients.ts';
import type { RuntimeOptions } from './runtime-options.ts';

/** Settings and resources of a serving process, which its components share. */
export type Foundation = {
  config: FullConfig;
  secrets: Secrets;
  runtime: RuntimeOptions;
  log: Log;
  onUnexpected: (error: unknown, requestId: string) => void;
  store: Store;
  keyring: Keyring;
  observability: Observability;
  membership: Membership;
  threads: ThreadPool;
  /** Budget for the memory that the work of workspaces may use. */
  memory: MemoryBudget;
  /** Maximum bytes of queued operations. */
  maxQueuedBytes: number;
  /** Client for URLs of configurations. */
  http: HttpClient;
  /** Client for URLs that unverified callers choose. */
  documents: HttpClient;
};

/** Opens the database and starts the threads. @throws AppError conflict */
export async function createFoundation(
  config: FullConfig,
  secrets: Secrets,
  log: Log,
  runtime: RuntimeOptions,
): Promise<Foundation> {
  const store = await openStore({ config, secrets }, config.siblings === undefined, log, runtime);
  const keyring = await openKeyring({ config, secrets }, store, log);
  const observability = await startObservability(config, secrets.metricsToken, log);
  const budgets = runtime.divideMemory(config.workers);
  const memory = new MemoryBudget(budgets.work, observability.onShed);
  const threads = startThreads(memory, budgets.thread);
  const { http, documents } = createOutboundClients({ config, secrets, runtime, log, observability, memory, threads });
  return {
    config,
    secrets,
    runtime,
    log,
    onUnexpected: (error, requestId) => log.error({ err: error, requestId }, 'unexpected error'),
    store,
    keyring,
    observability,
    membership: createMembership(store, config, keyring.keyIds),
    threads,
    memory,
    maxQueuedBytes: budgets.queuedInputs,
    http,
    documents,
  };
}
