import type { CircuitState } from '../../domain/limits.ts';
import { clearCount, countAt, createRecentCount, type RecentCount, recentTotal } from './recent-count.ts';

/** Properties of a caller that circuits use; see `Caller` of the gateway. */
export type CircuitCaller = {
  readonly id: string | undefined;
  readonly network: string | undefined;
  readonly party?: string | undefined;
  readonly credential?: CircuitCredential | undefined;
};

type CircuitCredential = { readonly party: string; readonly isProven: boolean; isFailing: boolean };

/** How far a credential can be trusted to be real: unknown, accepted or proven, as in `known-callers.ts`. */
type Standing = 'unknown' | 'accepted' | 'proven';

/** How the recent calls of one caller to an origin went, and whether more of them are sent. */
export type CallerCircuit = {
  /** The unknown callers of one address count as one caller, and so do its accepted ones. */
  standing: Standing;
  /** Callers with the same party may be one person. Undefined for an API key, which its workspace has made. */
  party: string | undefined;
  calls: RecentCount;
  failures: RecentCount;
  /** Monotonic ms from when one attempt is let through; 0 while closed. */
  openUntil: number;
  /** Whether that attempt is under way. */
  isTried: boolean;
};

/** State of the calls of one workspace to one origin. */
export type Circuit = {
  callers: Map<string, CallerCircuit>;
  /** The same for all callers together. */
  openUntil: number;
};

/** The circuits in use. No workspace can cause the circuits of another to be dropped. */
export type Circuits = {
  of(workspaceId: string, origin: string): Circuit;
  /** The state of the calls of one caller, which is added where it is new. */
  callerOf(circuit: Circuit, who: CircuitCaller | undefined): CallerCircuit;
  find(workspaceId: string, origin: string): Circuit | undefined;
  all(): Iterable<Circuit>;
};

export const windowMs = 30_000;
const slots = 30;
const openMs = 10_000;
const leastFailures = 20;
/** Most failures of one party that count towards opening a circuit for all. */
const mostOfParty = leastFailures / 2;
/** Most callers of one circuit; above it unknown callers are dropped first, and then those of the largest party. */
const mostCallers = 64;
const mostPerWorkspace = 500;
/** Callers of all circuits above which those that are idle are dropped; each takes about 800 bytes. */
const sweepAbove = 10_000;

/** Two plain maps, because every call looks here. Idle callers and circuits are dropped in occasional sweeps. */
export function createCircuits(clock: () => number): Circuits {
  const workspaces = new Map<string, Map<string, Circuit>>();
  let callers = 0;
  let most = sweepAbove;

  function add(workspaceId: string, origin: string): Circuit {
    const own = workspaces.get(workspaceId) ?? new Map<string, Circuit>();
    workspaces.set(workspaceId, own);
    const [oldest] = own;
    if (oldest && own.size >= mostPerWorkspace) {
      own.delete(oldest[0]);
      callers -= oldest[1].callers.size;
    }
    const circuit = { callers: new Map(), openUntil: 0 };
    own.set(origin, circuit);
    return circuit;
  }

  const find = (workspaceId: string, origin: string) => workspaces.get(workspaceId)?.get(origin);
  return {
    of(workspaceId, origin) {
      if (callers >= most) {
        callers = removeIdle(workspaces, clock());
        most = Math.max(sweepAbove, callers * 2);
      }
      return find(workspaceId, origin) ?? add(workspaceId, origin);
    },
    callerOf(circuit, who) {
      const before = circuit.callers.size;
      const caller = callerOf(circuit, who);
      callers += circuit.callers.size - before;
      return caller;
    },
    find,
    *all() {
      for (const own of workspaces.values()) yield* own.values();
    },
  };
}

/** Removes callers that have not called lately, and circuits without callers. Returns how many callers remain. */
function removeIdle(workspaces: Map<string, Map<string, Circuit>>, now: number): number {
  let left = 0;
  for (const [workspaceId, own] of workspaces) {
    for (const [origin, circuit] of own) {
      for (const [key, caller] of circuit.callers) if (isIdle(caller, now)) circuit.callers.delete(key);
      left += circuit.callers.size;
      if (circuit.openUntil < now && circuit.callers.size === 0) own.delete(origin);
    }
    if (own.size === 0) workspaces.delete(workspaceId);
  }
  return left;
}

function isIdle({ openUntil: until, isTried, calls }: CallerCircuit, now: number): boolean {
  return !isTried && until < now && recentTotal(calls, now) === 0;
}

function callerOf(circuit: Circuit, who: CircuitCaller | undefined): CallerCircuit {
  const { callers } = circuit;
  const standing = standingOf(who);
  const key =
    (standing === 'unknown' ? who?.network : standing === 'accepted' ? who?.credential?.party : who?.id) ?? '';
  const party = who?.credential?.party ?? who?.party;
  const known = callers.get(key);
  if (known) {
    known.party = party;
    return known;
  }
  if (callers.size >= mostCallers) removeOne(callers);
  const caller: CallerCircuit = {
    standing,
    party,
    calls: createRecentCount(windowMs, slots),
    failures: createRecentCount(windowMs, slots),
    openUntil: 0,
    isTried: false,
  };
  callers.set(key, caller);
  return caller;
}

function standingOf(who: CircuitCaller | undefined): Standing {
  if (who?.network !== undefined) return 'unknown';
  return who?.credential && !who.credential.isProven ? 'accepted' : 'proven';
}

function removeOne(callers: Map<string, CallerCircuit>): void {
  for (const [key, { standing }] of callers) if (standing === 'unknown') return void callers.delete(key);
  const crowd = largestParty(callers);
  for (const [key, { party }] of callers) if (crowd === undefined || party === crowd) return void callers.delete(key);
}

/** The party with the most callers, when it has several. Callers without a party belong to none. */
function largestParty(callers: Map<string, CallerCircuit>): string | undefined {
  const sizes = new Map<string, number>();
  let largest: string | undefined;
  let most = 1;
  for (const { party } of callers.values()) {
    if (party === undefined) continue;
    const size = (sizes.get(party) ?? 0) + 1;
    sizes.set(party, size);
    if (size <= most) continue;
    most = size;
    largest = party;
  }
  return largest;
}

/**
 * Time from which an attempt of a caller is let through; 0 when all its calls are. Other callers of an address do not
 * hold back an accepted credential whose own last call succeeded.
 */
export function openUntil(circuit: Circuit, caller: CallerCircuit, who: CircuitCaller | undefined): number {
  const isWell = caller.standing === 'accepted' && who?.credential?.isFailing === false;
  return isWell ? circuit.openUntil : Math.max(circuit.openUntil, caller.openUntil);
}

export function noteSuccess(caller: CallerCircuit, now: number): void {
  countAt(caller.calls, now);
}

/**
 * A caller whose calls fail is held back. All callers are held back once the calls of several fail, and of more than
 * half of those who call. A single caller, the unknown callers, or all callers of one address but API keys cannot cause
 * that.
 */
export function noteFailure(circuit: Circuit, caller: CallerCircuit, now: number): void {
  countAt(caller.calls, now);
  countAt(caller.failures, now);
  if (caller.failures.total >= leastFailures && isFailing(caller, now)) caller.openUntil = now + openMs;
  if (caller.standing === 'unknown') return;
  const parties = partiesOf(circuit, now);
  const failing = parties.filter((party) => party.failures * 2 > party.calls);
  const failures = failing.reduce((sum, party) => sum + Math.min(party.failures, party.most), 0);
  if (failing.length > 1 && failing.length * 2 > parties.length && failures >= leastFailures)
    circuit.openUntil = now + openMs;
}

/** The recent calls of callers that may be one person. */
type Party = { calls: number; failures: number; most: number };

/** The known callers that call, by party; an API key is one of its own. */
function partiesOf(circuit: Circuit, now: number): Party[] {
  const parties = new Map<string | CallerCircuit, Party>();
  for (const caller of activeCallers(circuit, now)) {
    if (caller.standing === 'unknown') continue;
    const key = caller.party ?? caller;
    const most = caller.party === undefined ? Number.POSITIVE_INFINITY : mostOfParty;
    const { calls, failures } = parties.get(key) ?? { calls: 0, failures: 0 };
    parties.set(key, {
      calls: calls + recentTotal(caller.calls, now),
      failures: failures + recentTotal(caller.failures, now),
      most,
    });
  }
  return [...parties.values()];
}

function isFailing({ failures, calls }: CallerCircuit, now: number): boolean {
  return recentTotal(failures, now) * 2 > recentTotal(calls, now);
}

function activeCallers({ callers }: Circuit, now: number): CallerCircuit[] {
  return [...callers.values()].filter((caller) => caller.openUntil !== 0 || recentTotal(caller.calls, now) > 0);
}

/** Applies the result of an attempt. */
export function noteAttempt(circuit: Circuit, caller: CallerCircuit, isGood: boolean, now: number): void {
  if (!isGood) {
    // The others make attempts of their own.
    caller.openUntil = now + openMs;
    return;
  }
  const closed = circuit.openUntil === 0 ? [caller] : circuit.callers.values();
  circuit.openUntil = 0;
  for (const each of closed) {
    each.openUntil = 0;
    clearCount(each.calls);
    clearCount(each.failures);
  }
}

/** State as the workspace sees it: that of all callers, and that of the caller if there is only one. */
export function stateOf(circuit: Circuit | undefined, now: number): CircuitState {
  const active = circuit ? activeCallers(circuit, now) : [];
  const sum = (count: 'calls' | 'failures') =>
    active.reduce((total, caller) => total + recentTotal(caller[count], now), 0);
  const counts = { calls: sum('calls'), failures: sum('failures') };
  const only = active.length === 1 ? active[0] : undefined;
  const until = Math.max(circuit?.openUntil ?? 0, only?.openUntil ?? 0);
  if (until === 0) return { state: 'closed', ...counts, retryMs: undefined };
  const retryMs = Math.max(0, until - now);
  return { state: retryMs > 0 ? 'open' : 'half_open', ...counts, retryMs };
}
