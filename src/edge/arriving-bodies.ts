import { type ArrivingBodies, holderOf, type Party, type SharedArrivals, type Visit } from '../domain/visit.ts';
import type { OnGivenUp } from '../domain/work/given-up.ts';
import { createHeldBytes } from './held-bytes.ts';

type Arriving = Parameters<ArrivingBodies['release']>[0];

export type ArrivingBodiesOptions = {
  networkOf: (visit: Visit) => string;
  /** Monotonic ms in which this process ran. */
  clock: () => number;
  /** Of all of them together. Anybody may post to a server whose credential only its upstream knows. */
  mostBytes: number;
  onGivenUp: OnGivenUp;
};

/** Bodies that arrive, counted for their parties. */
export function createArrivingBodies({
  networkOf,
  clock,
  mostBytes,
  onGivenUp,
}: ArrivingBodiesOptions): SharedArrivals {
  const held = createHeldBytes<Arriving>({ mostBytes, clock });
  const of = (party: Party | undefined): ArrivingBodies => ({
    hold(request, bytes, giveUp) {
      if (held.resize(request, bytes)) return;
      request.once('close', () => held.release(request));
      const giveUpForOthers = () => {
        onGivenUp('body');
        giveUp();
      };
      const name = party ? holderOf(party) : networkOf(request);
      held.add(request, { party: name, bytes, giveUp: giveUpForOthers });
    },
    release: held.release,
  });
  return { ...of(undefined), of };
}
