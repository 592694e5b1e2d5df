import { type ArrivingBodies, holderOf, type Party, type SharedArrivals, type Visit } from '../domain/visit.ts';
import { createHeldBytes } from './held-bytes.ts';

type Arriving = Parameters<ArrivingBodies['release']>[0];

/** Most bytes of all of them together. Anybody may post to a server whose credential only its upstream knows. */
const mostBytes = 64 * 1024 * 1024;

/** Bodies that arrive, counted for their parties. `clock` gives monotonic ms. */
export function createArrivingBodies(networkOf: (visit: Visit) => string, clock: () => number): SharedArrivals {
  const held = createHeldBytes<Arriving>({ mostBytes, clock });
  const of = (party: Party | undefined): ArrivingBodies => ({
    hold(request, bytes, giveUp) {
      if (held.resize(request, bytes)) return;
      request.once('close', () => held.release(request));
      held.add(request, { party: party ? holderOf(party) : networkOf(request), bytes, giveUp });
    },
    release: held.release,
  });
  return { ...of(undefined), of };
}
