import { widestNetwork } from '../../domain/networks.ts';
import type { UpstreamRequest } from '../../domain/request/upstream-request.ts';
import { takeOfLargest } from '../../domain/work/largest-owner.ts';
import { createOwnedMemory, type OwnedMemory } from '../../domain/work/owned-memory.ts';
import type { HostedTool } from '../hosted/hosted-server.ts';
import type { Credential, KnownCallers } from './caller.ts';

/** A request that was refused for its credential. `network`: the address of a caller that was not known. */
type Refusal = { id: string; network: string; path: string; body: UpstreamRequest['body'] };

/** One workspace can fill three fourths of it. */
const mostKnown = 27_000;
/** Accepted but unproven credentials of one address; above it new ones stay unknown until an older one is idle. */
const mostOfNetwork = 2000;
/** Most tools that are remembered of an accepted credential. For the tools before them it counts as unknown again. */
const mostTools = 50;
const idleMs = 10 * 60_000;
const sweepEveryMs = 1000;
/** Refused requests that are remembered for each tool, and their longest length. */
const mostRefusals = 8;
const longestRequest = 4096;

/**
 * Remembers digests of credentials that had success. What a success proves depends on the API: many answer 200 or 404
 * before they check the credential. So there are three degrees:
 * - **accepted**: a tool answered with 2xx; one address shares its slots with other addresses;
 * - **checked**: in addition, the same tool refused another credential;
 * - **proven**: the same request was refused with another credential and succeeded with this one, or a login issued it.
 *
 * `clock` is monotonic, in ms.
 */
export function createKnownCallers(clock: () => number): KnownCallers {
  const networks = new Map<string, Network>();
  const proven = rememberCredentials();
  const accepted = rememberCredentials((credential, id) => leave(networks, credential, id));
  const refusals = new WeakMap<HostedTool, Refusal[]>();

  const find = (id: string) => proven.get(id) ?? accepted.get(id);
  const othersRefused = (tool: HostedTool, id: string) => refusals.get(tool)?.some((refusal) => refusal.id !== id);

  function accept(id: string, network: string, workspaceId: string): Credential | undefined {
    const now = clock();
    const members = networks.get(network) ?? { ids: new Set(), party: partyOf(network), sweptAt: 0 };
    if (members.ids.size >= mostOfNetwork) removeIdle(members, accepted, now);
    if (members.ids.size >= mostOfNetwork) return undefined;
    networks.set(network, members);
    members.ids.add(id);
    const credential = {
      workspaceId,
      network,
      party: members.party,
      tools: new Set<string>(),
      isProven: false,
      usedAt: now,
    };
    accepted.set(id, credential);
    return credential;
  }

  function prove(id: string, credential: Credential): void {
    accepted.delete(id);
    proven.set(id, madeGoodForAll(credential));
  }

  return {
    find,
    grade(caller, tool) {
      const { credential, id } = caller;
      if (!credential || id === undefined || credential.isProven) return;
      credential.usedAt = clock();
      const isAccepted = credential.tools.has(tool.name);
      caller.network = isAccepted ? undefined : credential.network;
      caller.isChecked = isAccepted && othersRefused(tool, id) === true;
    },
    noteAnswer({ caller, tool, server }, request, status) {
      const { id } = caller;
      if (id === undefined) return false;
      if (status === 401 || status === 403) {
        noteRefusal(refusals, tool, { id, network: caller.network ?? '', path: request.path, body: request.body });
        if (status === 401) for (const known of [accepted, proven]) known.delete(id);
        return false;
      }
      if (status > 299 || caller.credential?.isProven) return false;
      // Most answers show nothing new.
      if (caller.credential?.tools.has(tool.name) && !othersRefused(tool, id)) return false;
      const before = find(id);
      const { network } = caller;
      const credential = before ?? (network === undefined ? undefined : accept(id, network, server.workspaceId));
      if (!credential) return false;
      rememberTool(credential, tool.name);
      if (refusals.get(tool)?.some((refusal) => refusal.id !== id && isSame(refusal, request))) prove(id, credential);
      return before === undefined;
    },
    vouch(id) {
      const credential = accepted.get(id);
      if (credential) prove(id, credential);
    },
  };
}

function madeGoodForAll(credential: Credential): Credential {
  credential.isProven = true;
  credential.tools.clear();
  return credential;
}

function rememberTool({ tools }: Credential, name: string): void {
  tools.add(name);
  if (tools.size > mostTools) tools.delete(tools.values().next().value ?? '');
}

function rememberCredentials(onDropped?: (credential: Credential, id: string) => void): OwnedMemory<Credential> {
  return createOwnedMemory<Credential>({
    max: mostKnown,
    ownerOf: ({ workspaceId }) => workspaceId,
    partyOf: ({ workspaceId, network }) => `${workspaceId} ${widestNetwork(network)}`,
    ...(onDropped && { onDropped }),
  });
}

/** The party of an address. */
export function partyOf(network: string): string {
  return `party ${network}`;
}

/** The accepted credentials of one address. */
type Network = { ids: Set<string>; party: string; sweptAt: number };

function leave(networks: Map<string, Network>, { network }: Credential, id: string): void {
  const members = networks.get(network);
  members?.ids.delete(id);
  if (members?.ids.size === 0) networks.delete(network);
}

function removeIdle(members: Network, accepted: OwnedMemory<Credential>, now: number): void {
  if (now - members.sweptAt < sweepEveryMs) return;
  members.sweptAt = now;
  for (const id of members.ids) if (now - (accepted.peek(id)?.usedAt ?? 0) >= idleMs) accepted.delete(id);
}

function noteRefusal(refusals: WeakMap<HostedTool, Refusal[]>, tool: HostedTool, refusal: Refusal): void {
  if (refusal.path.length + (bodyLength(refusal.body) ?? longestRequest) > longestRequest) return;
  const known = refusals.get(tool) ?? [];
  refusals.set(tool, known);
  if (known.some((other) => other.id === refusal.id && isSame(other, refusal))) return;
  if (known.push(refusal) > mostRefusals) takeOfLargest(known, ({ network }) => widestNetwork(network), 1);
}

/** Undefined for a form with files, which is never compared. */
function bodyLength(body: UpstreamRequest['body']): number | undefined {
  return typeof body === 'object' ? undefined : (body?.length ?? 0);
}

function isSame(one: Pick<Refusal, 'path' | 'body'>, other: Pick<Refusal, 'path' | 'body'>): boolean {
  return one.path === other.path && one.body === other.body;
}
