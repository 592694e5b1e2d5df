import { encodeCursor } from '../apps/server/src/store/page.ts';
import type { KnownInputs } from './reports-requests.ts';
import { callDays, callId, makeConfig, type RowCounts } from './reports-rows.ts';

const hourMs = 60 * 60 * 1000;
const dayMs = 24 * hourMs;

/** Returns frequent, rare, and absent values of the large workspace for each input. */
export function getKnownInputs({ calls, servers, keys, now }: RowCounts, upstream: string): KnownInputs {
  const getMiddleIndex = (count: number) => 2 * Math.floor(count / 4);
  const time = (ago: number) => new Date(now - ago).toISOString();
  return {
    values: {
      slug: ['server-0', `server-${getMiddleIndex(servers)}`, 'server-none'],
      tool: ['tool_0', 'tool_8', 'tool_none'],
      id: [callId(getMiddleIndex(calls)), 'call_none'],
      outcome: ['ok', 'timeout', 'redirect', 'oversize'],
      caller_kind: ['api_key', 'try_out', 'oauth'],
      key_id: ['key_0', `key_${getMiddleIndex(keys)}`, 'key_none'],
      creator_id: ['usr_0', 'usr_2'],
      since: [time(callDays * dayMs), time(hourMs)],
      until: [time(hourMs / 2)],
      buckets: [500, 1],
      days: [30, 366],
      view: ['reading', 'none'],
      query: ['server 1', 'none', callId(getMiddleIndex(calls))],
      sort: ['changed', 'name'],
      actor_id: ['key_0', 'key_none'],
      operation: ['setSecret', 'none'],
      target: ['server-0', 'none'],
      fields: [['name']],
      part: ['server', 'tools'],
      before: [1],
      version: [1],
      limit: [200],
      // The second cursor points into the invitations of lists that have them.
      cursor: [encodeCursor({ at: now - 15 * dayMs, id: 'x' }), encodeCursor({ at: now - 1000, id: 'iguest' })],
    },
    documents: {
      checkMcpServer: { ...makeConfig(upstream), slug: 'reports-checked' },
      planDuplicate: { slug: 'server-0', to: 'server-2' },
      planMcpServer: { slug: 'server-0', config: { ...makeConfig(upstream), slug: 'server-0' } },
      previewToolCall: { slug: 'server-0', tool: 'tool_0', arguments: { id: '7' } },
    },
  };
}
