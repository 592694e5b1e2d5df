import { type ArrivingBodies, holderOf, type Party, type SharedArrivals, type Visit } from '../domain/visit.ts';
import { createHeldBytes } from './held-bytes.ts';

type Arriving = Parameters<ArrivingBodies['release']>[0];

export type ArrivingBodiesOptions = {
  networkOf: (visit: Visit) => string;
  /** Monotonic ms. */
  clock: () => number;
  /** Of all of them together. Anybody may post to a server whose credential only its upstream knows. */
  mostBytes: number;
};

/** Bodies that arrive, counted for their parties. */
export function createArrivingBodies({ networkOf, clock, mostBytes }: ArrivingBodiesOptions): SharedArrivals {
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
