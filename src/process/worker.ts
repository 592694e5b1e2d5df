import cluster from 'node:cluster';
import type { Siblings } from '../app/full-config.ts';
import type { Secrets } from '../config.ts';
import { AppError } from '../errors.ts';
import { identityHost, type LocalParts } from '../local/parts.ts';
import type { IdentityOptions } from '../manage/identity.ts';
import type { Metric } from '../telemetry/metric.ts';

/**
 * Messages from a worker to the primary: it has started, it can serve, it needs the identity provider or all metrics.
 */
export type FromWorker =
  | { kind: 'join' }
  | { kind: 'ready' }
  | { kind: 'identity' }
  | { kind: 'metrics' }
  | { kind: 'report'; metrics: Metric[] };

/** Messages from the primary to a worker: replies, a request for metrics, and the order to stop. */
export type ToWorker =
  | { kind: 'start'; examplePort?: number; providesExample: boolean }
  | { kind: 'identity'; options?: IdentityOptions }
  | { kind: 'metrics'; all: Metric[][] }
  | { kind: 'report' }
  | { kind: 'stop' };

/** Primary process, as seen by a worker. */
export type PrimaryProcess = Siblings & {
  /** Announces the worker and returns the components of local mode that all workers share. */
  join(oidc: Secrets['oidc']): Promise<LocalParts>;
  /** Sets the function that reads this worker's metrics when another worker gathers those of all workers. */
  onReport(read: () => Metric[]): void;
  reportReady(): void;
  /** Resolves when the worker should stop. */
  stopped: Promise<void>;
};

/** Starts to receive messages from the primary. When the primary exits, Node ends the worker. */
export function connectToPrimary(): PrimaryProcess {
  // The channel is broken, so nothing would replace or stop this worker.
  cluster.worker?.on('error', () => process.exit(1));
  const waiting = new Map<ToWorker['kind'], ((message: ToWorker) => void)[]>();
  process.on('message', (message: ToWorker) => {
    const known = waiting.get(message.kind) ?? [];
    waiting.delete(message.kind);
    for (const resolve of known) resolve(message);
  });
  const next = <Kind extends ToWorker['kind']>(kind: Kind) =>
    new Promise<ToWorker & { kind: Kind }>((resolve) => {
      waiting.set(kind, [...(waiting.get(kind) ?? []), resolve as (message: ToWorker) => void]);
    });
  const send = (message: FromWorker) => process.send?.(message, () => undefined);
  const stopped = next('stop').then(() => undefined);
  const find = async () => {
    const answer = next('identity');
    send({ kind: 'identity' });
    const { options } = await answer;
    if (!options) throw new AppError('unavailable', 'the local sign-in did not start; try again');
    return options;
  };
  return {
    stopped,
    onReport: (read) =>
      void process.on('message', (message: ToWorker) => {
        if (message.kind === 'report') send({ kind: 'report', metrics: read() });
      }),
    async metrics() {
      const answer = next('metrics');
      send({ kind: 'metrics' });
      return (await answer).all;
    },
    reportReady: () => send({ kind: 'ready' }),
    async join(oidc) {
      const answer = next('start');
      send({ kind: 'join' });
      const { examplePort, providesExample } = await answer;
      const identity = { find: oidc ? async () => oidc : find, host: identityHost(oidc) };
      return { examplePort, providesExample, identity, close: async () => undefined };
    },
  };
}
