import type { Log } from '../../log.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import { version } from '../../version.ts';

/** Traces to the collector of the operator, or undefined without one: then nothing of it is even loaded. */
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
