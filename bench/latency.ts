import { runAtRate, type Target } from './load.ts';
import { median } from './rounds.ts';
import type { Size } from './sizes.ts';

/** 99th percentiles of the service and the bare relay, in ms, at a rate that leaves the service half idle. */
export type Latency = { perSecond: number; serviceMs: number; relayMs: number };

/** Measures both in interleaved rounds. A latency starts when the call was due, so it includes waiting. */
export async function measureLatency(
  service: Target,
  relay: Target,
  perSecond: number,
  { rounds, seconds }: Pick<Size, 'rounds' | 'seconds'>,
): Promise<Latency> {
  const p99 = { service: [] as number[], relay: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    p99.service.push((await runAtRate(service, perSecond, seconds)).p99Ms);
    p99.relay.push((await runAtRate(relay, perSecond, seconds)).p99Ms);
  }
  return { perSecond, serviceMs: median(p99.service), relayMs: median(p99.relay) };
}
