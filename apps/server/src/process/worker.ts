import cluster from 'node:cluster';
import { AppError } from '@toolhost/errors/errors';
import type { Siblings } from '../app/full-config.ts';
import type { Secrets } from '../config.ts';
import { getIdentityHost, type SharedServices } from '../local/start-shared.ts';
import type { IdentityOptions } from '../manage/identity.ts';
import type { Metric } from '../telemetry/metric.ts';

/**
 * Messages from a worker to the primary: it has started, it can serve, it needs the identity provider or the metrics of
 * all workers, or it reports its own metrics.
 */
export type FromWorker =
  | { kind: 'join' }
  | { kind: 'ready' }
  | { kind: 'identity' }
  | { kind: 'metrics' }
  | { kind: 'report'; metrics: Metric[] };

/** Messages from the primary to a worker: replies, a request for metrics, and the order to stop. */
export type ToWorker =
  | { kind: 'start'; examplePort?: number; maintainsExample: boolean }
  | { kind: 'identity'; options?: IdentityOptions }
  | { kind: 'metrics'; byProcess: Metric[][] }
  | { kind: 'report' }
  | { kind: 'stop' };

/** Primary process, as seen by a worker. */
export type PrimaryProcess = Siblings & {
  /** Announces the worker, and returns the services of local mode that all workers share. */
  join(oidc: Secrets['oidc']): Promise<SharedServices>;
  /** Sets the function that reads this worker's metrics when another worker gathers those of all workers. */
  onReport(read: () => Metric[]): void;
  reportReady(): void;
  /** Resolves when the worker should stop. */
  stopRequested: Promise<void>;
};

/** Starts to receive messages from the primary. When the primary exits, Node ends the worker. */
export function connectToPrimary(): PrimaryProcess {
  // Without the channel to the primary, nothing would replace or stop this worker.
  cluster.worker?.on('error', () => process.exit(1));
  const waiters = new Map<ToWorker['kind'], ((message: ToWorker) => void)[]>();
  process.on('message', (message: ToWorker) => {
    const resolvers = waiters.get(message.kind) ?? [];
    waiters.delete(message.kind);
    for (const resolve of resolvers) resolve(message);
  });
  const waitFor = <Kind extends ToWorker['kind']>(kind: Kind) =>
    new Promise<ToWorker & { kind: Kind }>((resolve) => {
      waiters.set(kind, [...(waiters.get(kind) ?? []), resolve as (message: ToWorker) => void]);
    });
  const send = (message: FromWorker) => process.send?.(message, () => undefined);
  const stopRequested = waitFor('stop').then(() => undefined);
  const findIdentity = async () => {
    const reply = waitFor('identity');
    send({ kind: 'identity' });
    const { options } = await reply;
    if (!options) throw new AppError('unavailable', 'the local sign-in did not start; try again');
    return options;
  };
  return {
    stopRequested,
    onReport: (read) =>
      void process.on('message', (message: ToWorker) => {
        if (message.kind === 'report') send({ kind: 'report', metrics: read() });
      }),
    async metrics() {
      const reply = waitFor('metrics');
      send({ kind: 'metrics' });
      return (await reply).byProcess;
    },
    reportReady: () => send({ kind: 'ready' }),
    async join(oidc) {
      const reply = waitFor('start');
      send({ kind: 'join' });
      const { examplePort, maintainsExample } = await reply;
      const identity = {
        find: oidc ? async () => oidc : findIdentity,
        host: getIdentityHost(oidc),
        isBuiltIn: oidc === undefined,
      };
      return { examplePort, maintainsExample, identity, close: async () => undefined };
    },
  };
}
