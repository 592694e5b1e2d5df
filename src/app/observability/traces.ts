import type { Log } from '../../log.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import { version } from '../../version.ts';

/** Starts traces to the operator's collector. Without one it loads no code and returns undefined. */
export async function startTraces(endpoint: string | undefined, log: Log): Promise<Tracing | undefined> {
  if (endpoint === undefined) return undefined;
  const { startTracing } = await import('../../telemetry/tracing.ts');
  return startTracing({
    endpoint,
    version,
    env: process.env,
    onCollector(state, cause) {
      if (state === 'failing') log.warn({ cause }, 'the trace collector does not take spans; calls go on without it');
      else log.info('the trace collector takes spans again');
    },
  });
}
