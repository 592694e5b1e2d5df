import type { Config } from '../config.ts';
import type { Visit } from '../domain/visit.ts';
import { clientAddress, networkOf } from '../edge/client-address.ts';
import { createStrangers } from '../edge/strangers.ts';
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
    addresses: addressesOf(config, clock),
  };
}

/** Where requests come from, and what is done about those that are refused again and again. */
function addressesOf({ trustedProxies, refusalsPerMinute }: Config, clock: () => number) {
  const ofVisit = (visit: Visit) => networkOf(clientAddress(visit, trustedProxies));
  const strangers = createStrangers({ refusalsPerMinute, networkOf: ofVisit, clock });
  return { strangers, networkOf: ofVisit, limitedByAddress: strangers.limited, clock };
}
