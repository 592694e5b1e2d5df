import type { CallTimes, ObserveCall } from '../domain/call-observation.ts';
import { type Access, accessKinds } from '../domain/config/access.ts';
import type { Era } from '../domain/mcp.ts';
import { type Outcome, outcomes } from '../errors.ts';
import { createHistogram } from './histogram.ts';
import { label, type Metric } from './metric.ts';

const eras = ['modern', 'legacy'] as const satisfies readonly Era[];
const boundsMs = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 20_000];
const ownBoundsMs = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000];

/** Outcomes and durations of calls. No label identifies the caller or the workspace. */
export function createCallMetrics(): { observe: ObserveCall; read(): Metric[] } {
  const indexOf = (list: readonly string[]) => Object.fromEntries(list.map((entry, i) => [entry, i]));
  const outcomeIndex = indexOf(outcomes) as Record<Outcome, number>;
  const accessIndex = indexOf(accessKinds) as Record<Access, number>;
  const kinds = accessKinds.length * eras.length;
  const calls = new Array<number>(outcomes.length * kinds).fill(0);
  const total = createHistogram('toolhost_call_duration_seconds', 'Whole duration of tool calls.', boundsMs);
  const upstream = createHistogram(
    'toolhost_upstream_duration_seconds',
    'Duration of the upstream part of tool calls, from the connection to the last byte.',
    boundsMs,
  );
  const waiting = createHistogram(
    'toolhost_call_wait_seconds',
    'Time that tool calls waited for a slot under the limits.',
    boundsMs,
  );
  const own = createHistogram(
    'toolhost_own_duration_seconds',
    "The service's own time in tool calls that reached the upstream part: neither waiting nor upstream.",
    ownBoundsMs,
  );

  function readCalls(): Metric {
    const samples = calls.map((value, i) => {
      const outcome = outcomes[Math.floor(i / kinds)] as string;
      const access = accessKinds[Math.floor((i % kinds) / eras.length)] as string;
      const era = eras[i % eras.length] as string;
      return {
        suffix: '',
        labels: `${label('outcome', outcome)},${label('access', access)},${label('era', era)}`,
        value,
      };
    });
    return {
      name: 'toolhost_calls_total',
      help: 'Tool calls by how they ended, kind of access and protocol era.',
      type: 'counter',
      merge: 'sum',
      samples,
    };
  }

  function observe(access: Access, era: Era, times: CallTimes, totalMs: number): void {
    const index = outcomeIndex[times.outcome] * kinds + accessIndex[access] * eras.length + (era === 'modern' ? 0 : 1);
    calls[index] = (calls[index] as number) + 1;
    total.observe(totalMs);
    const waitMs = times.waitMs ?? totalMs;
    waiting.observe(waitMs);
    if (times.upstreamMs === undefined) return;
    upstream.observe(times.upstreamMs);
    own.observe(Math.max(0, totalMs - waitMs - times.upstreamMs));
  }

  return { observe, read: () => [readCalls(), total.read(), upstream.read(), own.read(), waiting.read()] };
}
