import type { Connect } from './connector.ts';

/** How long a connection rests after an answer, to detect bytes that no request asked for. */
export const restMs = 50;
/** Number of rests without such bytes after which connections are reused at once. */
const provenRests = 100;
/** How long connections to an upstream that sent an unasked byte carry one request each. */
const distrustMs = 10 * 60_000;

/** An origin as used by one workspace. */
export type Upstream = {
  workspaceId: string;
  origin: string;
  /** The origin as a URL, for undici. */
  url: URL;
  connect: Connect;
  /** Number of rests in which a connection was quiet. */
  rests: number;
  /** Time until which a connection carries one request only, in monotonic ms. */
  distrustedUntil: number;
};

export function createUpstream(workspaceId: string, origin: string, connect: Connect): Upstream {
  const never = { rests: 0, distrustedUntil: Number.NEGATIVE_INFINITY };
  return { workspaceId, origin, url: quickUrl(origin), connect, ...never };
}

/** A URL that stores its origin. Undici reads it for each request, and computing it takes 2 µs. */
function quickUrl(origin: string): URL {
  return Object.defineProperty(new URL(origin), 'origin', { value: origin });
}

/** Whether connections may be reused at once; before that, each rests after an answer. */
export function isProven(upstream: Upstream): boolean {
  return upstream.rests >= provenRests;
}

/** Whether connections carry one request only. */
export function isDistrusted(upstream: Upstream, now: number): boolean {
  return upstream.distrustedUntil > now;
}

/** Distrusts an upstream that sent unasked bytes, as it may do so again. Returns whether it was trusted until now. */
export function distrust(upstream: Upstream, now: number): boolean {
  const isNew = !isDistrusted(upstream, now);
  upstream.distrustedUntil = now + distrustMs;
  upstream.rests = 0;
  return isNew;
}
