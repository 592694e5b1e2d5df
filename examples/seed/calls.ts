import { STATUS_CODES } from 'node:http';
import { newId } from '@toolhost/credentials/ids';
import type { Store } from '../../apps/server/src/app/open-store.ts';
import { localWorkspace } from '../../apps/server/src/config.ts';
import type { OperationDeps } from '../../apps/server/src/operations/operation.ts';
import { createCredentialUses } from '../../apps/server/src/store/api-keys.ts';
import { type CallRecord, transactionRecords } from '../../apps/server/src/store/calls/call-writer.ts';
import { insertCaptures } from '../../apps/server/src/store/calls/captures.ts';
import { findServer } from '../../apps/server/src/store/servers/servers.ts';
import { makeCapture } from './captures.ts';
import type { History } from './history.ts';
import type { SeedLogin } from './logins.ts';
import { largeSeed, makeManyUsages } from './many.ts';
import {
  callAt,
  generateFailures,
  generateTraffic,
  type SeedCall,
  type SeedCaller,
  type Usage,
  usages,
} from './traffic.ts';

/** Age of the oldest call in days, below the retention of 30 days, so that the first start prunes no call. */
const days = 28;
const count = 5400;
const minuteMs = 60_000;
/** Number of calls in the last minutes, so that there are recent calls even at night. */
const recentCalls = { count: 24, ms: 80 * minuteMs };

/** Server whose recent calls are captured. */
const capturedSlug = 'invoices';

type SeedContext = History & { logins: readonly SeedLogin[]; isLarge: boolean; now: number; next: () => number };

/** Writes call records, the last use of the keys, and captures. Returns the number of calls. */
export async function writeCalls(store: Store, deps: OperationDeps, context: SeedContext): Promise<number> {
  const calls = generateCalls(context);
  const capturedServer = await findServer(store.db, localWorkspace.id, capturedSlug);
  const lastUses = new Map<string | null, number>();
  const captures: Parameters<typeof insertCaptures>[2][number][] = [];
  for (let start = 0; start < calls.length; start += transactionRecords) {
    const rows = calls.slice(start, start + transactionRecords).map((call) => {
      const row = toRecord(call, pickCaller(call, context), newId(deps.random, 'req'));
      lastUses.set(row.key_id, row.started_at);
      if (row.slug === capturedServer?.slug && row.started_at > context.now - recentCalls.ms)
        captures.push(toCapture(row, call, capturedServer.id));
      return row;
    });
    await store.calls.write(rows);
  }
  for (const id of Object.values(context.keys)) {
    const at = lastUses.get(id);
    if (at === undefined) continue;
    const uses = createCredentialUses(store.db, () => at);
    uses.recordKeyUse(id);
    await uses.flush();
  }
  await insertCaptures(store.db, deps.keyring, captures);
  return calls.length;
}

function toCapture(row: CallRecord, call: SeedCall, serverId: string) {
  const { id: callId, workspace_id: workspaceId, started_at: at } = row;
  return { callId, workspaceId, serverId, at, document: makeCapture(call) };
}

function generateCalls({ isLarge, now, next }: SeedContext): SeedCall[] {
  const recentTimes = Array.from({ length: recentCalls.count }, () => Math.floor(now - next() * recentCalls.ms)).sort(
    (a, b) => a - b,
  );
  const invoices = usages.filter(({ slug }) => slug === 'invoices');
  return [
    ...generateTraffic(count, days, now - recentCalls.ms, next),
    ...(isLarge ? generateTraffic(largeSeed.calls, days, now, next, pickFewOften(makeManyUsages(), next)) : []),
    ...generateFailures(now - recentCalls.ms, days * 24 * 60 * minuteMs, next),
    ...recentTimes.map((at, index) => callAt(at, false, next, index % 3 === 0 ? invoices : usages)),
  ].sort((a, b) => a.at - b.at);
}

/** Picks an item, most often one of the first. */
function pickFewOften(manyUsages: readonly Usage[], next: () => number): () => readonly Usage[] {
  return () => {
    const at = Math.floor(manyUsages.length * next() ** 3);
    return manyUsages.slice(at, at + 1);
  };
}

/** Picks a caller that may call the server, and occasionally a person who tests a tool. */
function pickCaller({ usage, at }: SeedCall, { people, keys, logins, next }: SeedContext): SeedCaller {
  if (next() < 0.03) return { kind: 'try_out', id: next() < 0.5 ? people.ada.id : people.bruno.id };
  if (usage.slug === 'helpdesk') {
    const open = logins.filter((login) => login.at <= at && at <= login.until);
    const login = open[Math.floor(next() * open.length)];
    return login ? { kind: 'oauth', id: login.id } : { kind: 'try_out', id: people.ada.id };
  }
  if (usage.slug === 'projects') return { kind: 'caller_token', id: null };
  if (usage.tool === 'yearly_report') return { kind: 'api_key', id: keys.nightly };
  const serverKey = usage.slug === 'invoices' ? keys.assistant : keys.warehouse;
  return { kind: 'api_key', id: next() < 0.6 ? serverKey : keys.assistant };
}

function toRecord(call: SeedCall, caller: SeedCaller, requestId: string): CallRecord {
  const { usage, at, outcome, status, durationMs, upstreamMs, bytesIn, bytesOut } = call;
  const isBefore = ['invalid_arguments', 'secret_missing', 'no_token', 'limited', 'internal'].includes(outcome);
  return {
    id: `call_${requestId}`,
    workspace_id: localWorkspace.id,
    slug: usage.slug,
    tool: usage.tool,
    started_at: at,
    caller_kind: caller.kind,
    key_id: caller.id,
    upstream_host: isBefore ? null : usage.host,
    upstream_status: status,
    outcome,
    duration_ms: durationMs,
    upstream_ms: upstreamMs,
    bytes_in: bytesIn,
    bytes_out: bytesOut,
    estimated_tokens: Math.ceil(bytesOut / 8),
    reason: getReason(call),
    view: null,
    model: null,
    upstream_requests: null,
  };
}

/** Returns the error text that the service would record. */
function getReason({ outcome, status, usage }: SeedCall): string | null {
  switch (outcome) {
    case 'ok':
      return null;
    case 'invalid_arguments':
      return 'unknown argument';
    case 'upstream_status':
      return `HTTP ${status} ${STATUS_CODES[status ?? 0] ?? ''}, application/json`;
    case 'timeout':
      return `${usage.host} did not respond within 10 s`;
    case 'unreachable':
      return `${usage.host} refused the connection`;
    case 'malformed':
    case 'transform':
      return 'HTTP 200 OK, application/json: the response does not match the tool configuration';
    default:
      return outcome.replaceAll('_', ' ');
  }
}
