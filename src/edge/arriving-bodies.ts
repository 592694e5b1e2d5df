import type { ArrivingBodies } from '../domain/visit.ts';

type Arriving = Parameters<ArrivingBodies['release']>[0];
type Body = { bytes: number; giveUp: () => void };

/** Most bytes of all of them together. Anybody may post to a server whose credential only its upstream knows. */
const mostBytes = 64 * 1024 * 1024;

/** Above the limit the body that began first is given up: one that arrives at a usual pace is gone long before. */
export function createArrivingBodies(): ArrivingBodies {
  /** In the order of their beginnings. */
  const bodies = new Map<Arriving, Body>();
  let held = 0;
  const release = (request: Arriving) => {
    const body = bodies.get(request);
    if (!body) return;
    held -= body.bytes;
    bodies.delete(request);
  };
  return {
    hold(request, bytes, giveUp) {
      const before = bodies.get(request);
      if (!before) request.once('close', () => release(request));
      held += bytes - (before?.bytes ?? 0);
      bodies.set(request, { bytes, giveUp });
      while (held > mostBytes) {
        const [first, body] = bodies.entries().next().value as [Arriving, Body];
        release(first);
        body.giveUp();
      }
    },
    release,
  };
}
