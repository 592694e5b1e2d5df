import type { CallSpan, RequestSpan } from '../domain/call-sight.ts';
import type { ToolCall } from '../domain/mcp.ts';
import { type Arguments, buildRequest, type UpstreamRequest } from '../domain/request-template.ts';
import { OutboundError, type OutboundReason, type Outcome, ToolFailure } from '../errors.ts';
import type { Answer, OutboundDoor } from '../outbound/door.ts';
import type { Caller } from './caller.ts';
import type { HostedServer, HostedTool } from './hosted-server.ts';
import { multipartBody } from './multipart-body.ts';
import { refuseOwnKey } from './refuse-own-key.ts';
import { secretFor } from './secret-use.ts';

/**
 * The request of a call, a digest of the credentials in it, which decides over which connections it may go, and whose
 * failure it would be.
 */
export type CallRequest = { request: UpstreamRequest; credentialHash: string; caller: Caller };

/**
 * Builds the request of a call; `sensitive` gets the credentials of the call.
 * @throws ToolFailure invalid_arguments, secret_missing
 */
export function requestOf(
  server: HostedServer,
  tool: HostedTool,
  caller: Caller,
  args: Arguments,
  sensitive: string[],
): CallRequest {
  const { origin } = tool.request.url;
  const sent: string[] = [];
  const token = caller.token(origin);
  if (token !== undefined) sensitive.push(token);
  if (token !== undefined && tool.request.authentication) sent.push(token);
  const secret = (name: string) => {
    const value = secretFor(server, name, origin);
    sensitive.push(value);
    sent.push(value);
    return value;
  };
  const request = buildRequest(tool.request, args, { token, secret });
  refuseOwnKey(request);
  return { request, credentialHash: tool.credentialHash(sent), caller };
}

/** @throws OutboundError */
export function send(
  server: HostedServer,
  tool: HostedTool,
  call: ToolCall,
  { request, credentialHash, caller }: CallRequest,
  door: OutboundDoor,
  span: CallSpan | undefined,
): Promise<Answer> {
  const { body, headers } = request;
  const requestSpan = span?.request(request.method, request.origin);
  const traceparent = requestSpan?.traceparent ?? call.traceparent;
  if (traceparent !== undefined) headers.push('traceparent', traceparent);
  if (call.tracestate !== undefined) headers.push('tracestate', call.tracestate);
  const sent = door.send({
    workspaceId: server.workspaceId,
    origin: request.origin,
    credentialHash,
    caller,
    path: request.path,
    method: request.method,
    headers,
    body: typeof body === 'object' ? multipart(body.fields, headers) : body,
    timeoutMs: tool.timeoutMs,
    limitBytes: tool.limitBytes,
    // A legacy client that disconnects has not cancelled (MCP 2025-11-25, transports), so its call finishes.
    onGone: call.era === 'modern' ? call.onGone : undefined,
  });
  return requestSpan ? traced(sent, requestSpan) : sent;
}

function multipart(fields: readonly [string, string][], headers: string[]): Buffer {
  const { contentType, body } = multipartBody(fields);
  headers.push('Content-Type', contentType);
  return body;
}

async function traced(sent: Promise<Answer>, span: RequestSpan): Promise<Answer> {
  try {
    const answer = await sent;
    span.end({ status: answer.status });
    return answer;
  } catch (error) {
    span.end({ failure: error instanceof OutboundError ? error.reason : 'internal' });
    throw error;
  }
}

const outcomeOf: Record<OutboundReason, Outcome> = {
  blocked: 'blocked',
  dns: 'unreachable',
  unreachable: 'unreachable',
  tls: 'unreachable',
  reset: 'unreachable',
  truncated: 'malformed',
  malformed: 'malformed',
  timeout: 'timeout',
  oversize: 'oversize',
  circuit_open: 'circuit_open',
  no_connection: 'limited',
  stopped: 'unavailable',
  cancelled: 'cancelled',
};

export function toToolFailure(error: OutboundError): ToolFailure {
  const hint =
    error.reason === 'oversize'
      ? '; ask for less with filters or paging, or let the server keep fewer fields with response_fields'
      : '';
  return new ToolFailure(outcomeOf[error.reason], `${error.message}${hint}`);
}
