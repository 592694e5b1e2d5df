import type { Config } from '../config.ts';
import { createCircuitBreaker } from '../gateway/circuit-breaker.ts';
import { createLimits } from '../gateway/limits.ts';
import type { OutboundDoor } from '../outbound/door.ts';
import type { Surroundings } from './foundation.ts';

/** What stands between a call and its upstream, so that no workspace is slowed by another. */
export function limitCalls(config: Config, { clock, queueMs, startLoopLag }: Surroundings, door: OutboundDoor) {
  const lag = startLoopLag(clock);
  const limits = createLimits({ concurrentPerKey: config.concurrentCallsPerKey, clock, queueMs, lagMs: lag.ms });
  const breaker = createCircuitBreaker(clock);
  return {
    limits,
    breaker,
    lag,
    door: breaker.around(door),
    presentUse: { ofServer: limits.serverUse, ofWorkspace: limits.workspaceUse, circuitOf: breaker.stateOf },
  };
}
