import { widestNetwork } from '../domain/networks.ts';
import type { WorkParty } from '../domain/work/fair-queue.ts';
import type { Caller } from './callers/caller.ts';
import { partyOf } from './callers/known-callers.ts';
import { isProvenCaller } from './limits/activity.ts';
import { memoryParty } from './limits/call-memory.ts';

/** The party whose work a caller's is: its own, or the address of a stranger. */
export function workPartyOf(caller: Caller): WorkParty {
  const isStranger = !isProvenCaller(caller) || caller.party !== undefined;
  const name = memoryParty(caller) ?? '';
  return { name: isStranger ? widestNetwork(name) : name, isStranger };
}

/** The party of somebody without a credential. */
export function partyOfNetwork(network: string): WorkParty {
  return { name: widestNetwork(partyOf(network)), isStranger: true };
}
