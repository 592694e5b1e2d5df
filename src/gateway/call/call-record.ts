import { Buffer } from 'node:buffer';
import type { ToolResult } from '../../domain/mcp.ts';
import { callIdPrefix } from '../../store/calls/call-writer.ts';
import type { CallRow } from '../../store/schema.ts';
import { tokensOfResult } from '../answer/result-tokens.ts';
import type { Call } from './call.ts';

/** The part of a call that its record is made of. A call that the service answers itself has no upstream. */
export type RecordedCall = Pick<Call, 'server' | 'caller' | 'asked' | 'startedAt' | 'outcome'> &
  Partial<Pick<Call, 'host' | 'answer' | 'upstreamMs' | 'reason'>>;

/** The record of a call that has ended after `totalMs`. */
export function callRecord(call: RecordedCall, result: ToolResult | undefined, totalMs: number): CallRow {
  const { server, caller, asked, upstreamMs } = call;
  return {
    id: `${callIdPrefix}${asked.requestId}`,
    workspace_id: server.workspaceId,
    server_id: server.id,
    slug: server.slug,
    tool: asked.name,
    started_at: call.startedAt,
    caller_kind: caller.kind,
    key_id: caller.keyId ?? null,
    upstream_host: call.host ?? null,
    upstream_status: call.answer?.status ?? null,
    outcome: call.outcome,
    duration_ms: Math.round(totalMs),
    upstream_ms: upstreamMs === undefined ? null : Math.round(upstreamMs),
    bytes_in: asked.bytesIn,
    bytes_out: result ? Buffer.byteLength(result.content) + Buffer.byteLength(result.structured ?? '') : 0,
    reason: call.reason ?? null,
    estimated_tokens: result ? tokensOfResult(result) : null,
    view: server.view?.name ?? null,
  };
}
