import type { Connect } from './connector.ts';
import { createRetryBudget, type RetryBudget } from './retry-budget.ts';

/** How long what an upstream sends after its answer is waited for. */
export const restMs = 50;
/** So often its connections must have been quiet for that long before they are used again at once. */
const provenRests = 100;
/** How long the connections to an upstream that sent an unasked byte carry one request each. */
const distrustMs = 10 * 60_000;

/** An origin, as one workspace knows it. */
export type Upstream = {
  origin: string;
  /** The same as undici takes it. */
  url: URL;
  connect: Connect;
  retries: RetryBudget;
  /** How often a connection was quiet after an answer. */
  rests: number;
  /** Until when a connection carries one request only, in monotonic ms. */
  distrustedUntil: number;
};

export function createUpstream(origin: string, connect: Connect): Upstream {
  const never = Number.NEGATIVE_INFINITY;
  return { origin, url: quickUrl(origin), connect, retries: createRetryBudget(), rests: 0, distrustedUntil: never };
}

/** Undici asks its URL for the origin with each request. A URL puts it together each time, which takes 2 µs; this one keeps it. */
function quickUrl(origin: string): URL {
  return Object.defineProperty(new URL(origin), 'origin', { value: origin });
}

/** Whether its connections may be used again at once; until then each rests after an answer. */
export function isProven(upstream: Upstream): boolean {
  return upstream.rests >= provenRests;
}

/** Whether a connection to it carries one request only. */
export function isDistrusted(upstream: Upstream, now: number): boolean {
  return upstream.distrustedUntil > now;
}

/** An upstream that sends what nobody asked for may do it again at any time. Gives whether it was trusted until now. */
export function distrust(upstream: Upstream, now: number): boolean {
  const isNew = !isDistrusted(upstream, now);
  upstream.distrustedUntil = now + distrustMs;
  upstream.rests = 0;
  return isNew;
}
