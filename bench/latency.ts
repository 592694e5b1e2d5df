import { runAtRate, type Target } from './load.ts';
import { median } from './rounds.ts';
import type { Size } from './sizes.ts';

/** The 99th percentile at a rate that leaves the service half idle, in ms, beside the same of the bare relay. */
export type Latency = { perSecond: number; serviceMs: number; relayMs: number };

/** Interleaved rounds. Latencies count from when a call was due, so waiting is included. */
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
