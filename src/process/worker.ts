import cluster from 'node:cluster';
import type { Siblings } from '../app/full-config.ts';
import type { Secrets } from '../config.ts';
import { AppError } from '../errors.ts';
import { identityHost, type LocalParts } from '../local/parts.ts';
import type { IdentityOptions } from '../manage/identity.ts';
import type { Metric } from '../telemetry/metric.ts';

/** What a worker tells the first process: that it is there, that it can serve, that somebody signs in or looks at the metrics. */
export type Said =
  | { kind: 'here' }
  | { kind: 'ready' }
  | { kind: 'identity' }
  | { kind: 'metrics' }
  | { kind: 'report'; metrics: Metric[] };

/** What the first process answers, and when it is time to go. */
export type Heard =
  | { kind: 'start'; examplePort?: number; providesExample: boolean }
  | { kind: 'identity'; options?: IdentityOptions }
  | { kind: 'metrics'; all: Metric[][] }
  | { kind: 'report' }
  | { kind: 'stop' };

/** The first process, as a worker sees it. When it is gone, Node ends the worker. */
export type FirstProcess = Siblings & {
  /** Hears what is there for all of them. */
  join(oidc: Secrets['oidc']): Promise<LocalParts>;
  /** What to read when some worker wants the metrics of all. */
  onReport(read: () => Metric[]): void;
  sayReady(): void;
  /** Resolves when the worker should stop. */
  stopped: Promise<void>;
};

/** Begins to listen to the first process. */
export function firstProcess(): FirstProcess {
  // It is gone, and nobody would replace or stop this worker.
  cluster.worker?.on('error', () => process.exit(1));
  const waiting = new Map<Heard['kind'], ((heard: Heard) => void)[]>();
  process.on('message', (heard: Heard) => {
    const known = waiting.get(heard.kind) ?? [];
    waiting.delete(heard.kind);
    for (const resolve of known) resolve(heard);
  });
  const hear = <Kind extends Heard['kind']>(kind: Kind) =>
    new Promise<Heard & { kind: Kind }>((resolve) => {
      waiting.set(kind, [...(waiting.get(kind) ?? []), resolve as (heard: Heard) => void]);
    });
  const say = (said: Said) => process.send?.(said, () => undefined);
  const stopped = hear('stop').then(() => undefined);
  const find = async () => {
    const heard = hear('identity');
    say({ kind: 'identity' });
    const { options } = await heard;
    if (!options) throw new AppError('unavailable', 'the sign-in of this machine did not start; try again');
    return options;
  };
  return {
    stopped,
    onReport: (read) =>
      void process.on('message', (heard: Heard) => {
        if (heard.kind === 'report') say({ kind: 'report', metrics: read() });
      }),
    async metrics() {
      const heard = hear('metrics');
      say({ kind: 'metrics' });
      return (await heard).all;
    },
    sayReady: () => say({ kind: 'ready' }),
    async join(oidc) {
      const heard = hear('start');
      say({ kind: 'here' });
      const { examplePort, providesExample } = await heard;
      const identity = { find: oidc ? async () => oidc : find, host: identityHost(oidc) };
      return { examplePort, providesExample, identity, close: async () => undefined };
    },
  };
}
