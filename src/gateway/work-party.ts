import type { WorkParty } from '../domain/work/places.ts';
import type { Caller } from './callers/caller.ts';

/** The party whose work and memory a caller's is: its own, or all of its address, who may be one person. */
export function workPartyOf({ network, id = '' }: Caller): WorkParty {
  return network === undefined ? { name: id, isStranger: false } : partyOfNetwork(network);
}

/** The party of somebody without a credential. */
export function partyOfNetwork(network: string): WorkParty {
  return { name: network, isStranger: true };
}
