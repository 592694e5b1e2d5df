import { createHash } from 'node:crypto';
import { getHeaderValue } from '@toolhost/credentials/credential';
import { containsOwnCredential } from '@toolhost/credentials/own-credentials';
import type { ClientTokens } from '@toolhost/credentials/token-request';
import { AppError, OutboundError, recordableFailure } from '@toolhost/errors/errors';
import type { McpServer, ToolCall } from '@toolhost/mcp-protocol/mcp';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import { isHeaderValue, parseMediaType } from '@toolhost/tool-config/http/headers';
import { escapeMultipartName } from '@toolhost/tool-config/http/values';
import { buildRequest } from '@toolhost/tool-config/request/build-request';
import type { FormPart, UpstreamRequest } from '@toolhost/tool-config/request/upstream-request';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import type { RequestSpan } from '../../call-observation.ts';
import type { CircuitBreakers } from '../limits/circuit-breakers.ts';
import type { Call, CallRequest } from './call.ts';
import {
  countRendered,
  getTokens,
  renewServiceTokens,
  type Signing,
  secretFor,
  signRequest,
  toSignablePath,
} from './call-credentials.ts';

/** Properties of a request that a redirect leads to. */
export type RedirectHop = {
  /** True if it is sent to another origin than the tool's. Such a request reveals nothing about the call. */
  isCrossOrigin: boolean;
  timeoutMs: number;
};

/**
 * Rejects a request to a host that a person named and that a configuration may not name, such as this service itself.
 * @throws ToolFailure blocked, without the value
 */
export function checkPersonalHost(
  { request: { origin, path } }: CallRequest,
  urlProblem: (url: URL) => string | undefined,
): void {
  if (urlProblem(new URL(origin + path)) === undefined) return;
  const message = 'this service may not call the host that the value of the person names. Log in again to change it.';
  throw recordableFailure('blocked', message);
}

/**
 * Builds the request of a call, and records the credentials that it will send. `renewedToken` replaces the caller's
 * token.
 * @throws ToolFailure invalid_arguments, secret_missing
 */
export function createRequest(call: Call, args: Arguments, renewedToken?: string): CallRequest {
  const { tool, sensitive } = call;
  const token = renewedToken ?? call.caller.token;
  if (renewedToken !== undefined) sensitive.push(renewedToken);
  const sentCredentials: string[] = [];
  let renderedCharacters = 0;
  const useSecret = (name: string) => {
    const value = call.server.personalNames.has(name)
      ? valueFor(call, name)
      : secretFor(call.server, name, tool.request.url.origin);
    renderedCharacters = countRendered(renderedCharacters, value);
    sensitive.push(value);
    sentCredentials.push(value);
    return value;
  };
  const tokens = getTokens(call, { token, getSecret: useSecret, sent: sentCredentials });
  const baseRequest = buildRequest(tool.request, args, { tokens, secret: useSecret });
  const forwardedNames = call.server.config.forward_headers;
  const request = forwardedNames
    ? { ...baseRequest, headers: [...baseRequest.headers, ...getForwardedHeaders(call, forwardedNames)] }
    : baseRequest;
  // The caller's token has a digest already, which is sufficient if no other credential is sent.
  const knownDigest =
    sentCredentials.length === 1 && sentCredentials[0] === token && renewedToken === undefined
      ? call.caller.tokenDigest
      : undefined;
  call.request = { request, credentialHash: knownDigest ?? tool.hashCredentials(sentCredentials) };
  return call.request;
}

/**
 * Returns a value of the person who calls, which replaces `{{NAME}}`. It is sent only to the hosts that the person has
 * agreed to; after a change of the hosts, the login of the person is no longer valid. An optional value may be empty.
 * @throws ToolFailure secret_missing
 */
function valueFor(call: Call, name: string): string {
  const { caller, server } = call;
  const value = caller.person?.getValue(name);
  if (value !== undefined) {
    call.sentValues ??= [];
    call.sentValues.push(name);
    return value;
  }
  const field = server.config.login?.fields?.find((candidate) => candidate.name === name);
  if (caller.person && field?.optional) return '';
  const reason = caller.person?.missingReason ?? 'only people who log in have it';
  throw recordableFailure(
    'secret_missing',
    `this tool needs a value that each person brings (${field?.label ?? name}): ${reason}`,
  );
}

/** Maximum length of a forwarded header, in characters. */
const maxForwardedLength = 4096;

/**
 * Returns the headers of the client's request that the configuration forwards, alternating names and values.
 * @throws ToolFailure invalid_arguments for a value that must not be forwarded
 */
function getForwardedHeaders({ toolCall }: Call, names: readonly string[]): string[] {
  return names.flatMap((name) => {
    const value = getHeaderValue(toolCall.headers, name.toLowerCase());
    if (value === undefined) return [];
    if (value.length <= maxForwardedLength && isHeaderValue(value) && !containsOwnCredential(value))
      return [name, value];
    const message = `the request header ${name} cannot be forwarded; allowed: one line of Latin-1 text of at most ${maxForwardedLength} characters, without an API key or token of this service`;
    throw recordableFailure('invalid_arguments', message);
  });
}

/**
 * Authorizes a call again after it has waited in a queue, for a token, or for a file. A request that the upstream has
 * accepted is finished without this check. A request that the upstream refused and that is sent again needs it.
 * @throws Unauthenticated or AppError if the call is no longer allowed, and AppError unavailable if the server, and
 * therefore the request, has changed
 */
export async function recheckAccess({ authorization }: ToolCall, server: Pick<McpServer, 'source'>): Promise<void> {
  const current = await authorization.refresh();
  if (current.source === server.source) return;
  throw new AppError(
    'unavailable',
    'The server was changed while the call waited. Nothing was sent; call the tool again.',
    { retryAfterS: 1 },
  );
}

/** Client and circuit breakers of requests to upstreams. */
export type SendDeps = { http: HttpClient; circuits: CircuitBreakers };

/**
 * Renews the token of the login or of the service after a 401, and sends the request once more if the tool's hints
 * allow that, because an upstream may refuse a token after it has started the work. Returns the first response if there
 * is no new token.
 * @throws OutboundError
 * @throws ToolFailure upstream_status if only the next call may use the new token
 * @throws Unauthenticated, AppError if the call is no longer allowed after the wait for that token
 */
export async function retryWithRenewedToken(
  call: Call,
  refusedResponse: UpstreamResponse,
  args: Arguments,
  deps: SendDeps & { clientTokens: ClientTokens },
): Promise<UpstreamResponse> {
  const { login } = call.caller;
  const isNewToken = login?.onAccepted !== undefined;
  if (isNewToken) {
    // The token was renewed after the previous refusal, so another new one would be refused too.
    await login.discardToken(login.token);
    return refusedResponse;
  }
  const isRepeatable = call.tool.isRepeatable();
  const renewed = await login?.renew(isRepeatable);
  const serviceTokens = call.serviceTokens && (await renewServiceTokens(call, call.serviceTokens, deps.clientTokens));
  if (renewed === undefined && !serviceTokens) return refusedResponse;
  if (!isRepeatable) {
    call.response = refusedResponse;
    throw recordableFailure('upstream_status', notRetriedMessage);
  }
  call.serviceTokens = serviceTokens ?? call.serviceTokens;
  if (call.toolCall.authorization.isStale()) await recheckAccess(call.toolCall, call.server);
  const response = await send(call, createRequest(call, args, renewed), deps);
  if (response.status === 401 && renewed !== undefined) await login?.discardToken(renewed);
  return response;
}

const notRetriedMessage =
  'HTTP 401 Unauthorized: the API refused the token, which has now been renewed. The request was not sent again, because this tool is neither read-only nor idempotent. Call the tool again; the next call uses the new token.';

/** The body of a request, and its headers including those that depend on the body. */
type RequestContent = { body: string | Buffer | undefined; headers: string[] };

/** Sends one request of a call. `hop` is present if a redirect led to the request. @throws OutboundError */
export function send(
  call: Call,
  { request, credentialHash }: Pick<CallRequest, 'request'> & { credentialHash: string | undefined },
  { http, circuits }: SendDeps,
  hop?: RedirectHop,
): Promise<UpstreamResponse> {
  const { server, tool, toolCall, caller } = call;
  call.requests++;
  const isCrossOrigin = hop?.isCrossOrigin === true;
  // The origin as configured, because the real one may contain the value of a person.
  const span = call.span?.startRequest(request.method, isCrossOrigin ? request.origin : tool.request.url.origin);
  const content: RequestContent =
    typeof request.body === 'object' && 'fields' in request.body
      ? buildMultipartContent(request.headers, request.body.fields)
      : { body: request.body, headers: request.headers };
  const signed = call.signing && !isCrossOrigin ? signContent(call, call.signing, request, content) : undefined;
  const { body, headers } = signed ?? content;
  const traceparent = isCrossOrigin ? undefined : (span?.traceparent ?? toolCall.traceparent);
  const responsePromise = circuits.send(http, {
    workspaceId: server.workspaceId,
    origin: request.origin,
    credentialHash,
    unverifiedCaller: caller.isVerified ? undefined : caller.network,
    path: signed?.path ?? request.path,
    method: request.method,
    headers: traceparent === undefined ? headers : [...headers, ...buildTraceHeaders(traceparent, toolCall.tracestate)],
    body,
    timeoutMs: hop?.timeoutMs ?? tool.timeoutMs,
    limitBytes: tool.limitBytes,
    registerCancel: call.onDisconnect,
    reservation: call.reservation,
  });
  return span ? endSpan(responsePromise, span) : responsePromise;
}

/** Returns the headers of the W3C trace context. */
function buildTraceHeaders(traceparent: string, tracestate: string | undefined): string[] {
  return ['traceparent', traceparent, ...(tracestate === undefined ? [] : ['tracestate', tracestate])];
}

/** Signs a request, after all other headers are known. The trace context that is added later is not signed. */
function signContent(call: Call, signing: Signing, request: UpstreamRequest, content: RequestContent) {
  const path = toSignablePath(request.path);
  const signedAt = call.startedAt + performance.now() - call.startedClock;
  const signature = signRequest({ ...request, ...content, path }, signing, signedAt);
  call.sensitive.push(signature.at(-1)?.split('Signature=')[1] ?? '');
  return { ...content, path, headers: [...content.headers, ...signature] };
}

async function endSpan(responsePromise: Promise<UpstreamResponse>, span: RequestSpan): Promise<UpstreamResponse> {
  try {
    const response = await responsePromise;
    span.end({ status: response.status });
    return response;
  } catch (error) {
    span.end({ failure: error instanceof OutboundError ? error.reason : 'internal' });
    throw error;
  }
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const lineEnd = Buffer.from('\r\n');

/** Builds a multipart body (RFC 2046, 5.1), and the headers with its Content-Type, which must name the boundary. */
function buildMultipartContent(headers: readonly string[], parts: readonly FormPart[]): RequestContent {
  const typeIndex = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-type');
  const declaredType = typeIndex < 0 ? formType : (headers[typeIndex + 1] as string);
  const typedParts = parseMediaType(declaredType) === formType ? parts : parts.map(addMediaType);
  const partHeaders = toPartHeaders(typedParts);
  const values = typedParts.map(toPartBytes);
  // No value can contain the hash of all values, so the boundary occurs in none of them.
  const digest = createHash('sha256');
  for (const value of values) digest.update(value);
  const boundary = `toolhost-${digest.digest('hex')}`;
  const delimiter = Buffer.from(`--${boundary}\r\n`);
  const chunks = values.flatMap((value, i) => [delimiter, partHeaders[i] as Buffer, value, lineEnd]);
  const body = Buffer.concat([...chunks, Buffer.from(`--${boundary}--\r\n`)]);
  const otherHeaders = typeIndex < 0 ? headers : headers.toSpliced(typeIndex, 2);
  return {
    body,
    headers: [...otherHeaders, 'Content-Type', `${toMultipartType(declaredType, typedParts)}; boundary=${boundary}`],
  };
}

const formType = 'multipart/form-data';

/** Adds a media type to a part. Only form parts may omit it. */
function addMediaType([name, value, file]: FormPart): FormPart {
  return [name, value, { mediaType: 'text/plain; charset=utf-8', ...file }];
}

/** Returns the declared type without a boundary. `multipart/related` names the type of its root (RFC 2387, 3.1). */
function toMultipartType(declaredType: string, [first]: readonly FormPart[]): string {
  const type = declaredType.replaceAll(/\s*;\s*boundary\s*=\s*(?:"[^"]*"|[^;"]*)/gi, '');
  const rootType = first?.[2]?.mediaType;
  const isComplete =
    rootType === undefined || parseMediaType(declaredType) !== 'multipart/related' || /;\s*type\s*=/i.test(type);
  return isComplete ? type : `${type}; type="${parseMediaType(rootType)}"`;
}

/** Returns the headers of each part. Thousands of plain fields may share one name, so its headers are built once. */
function toPartHeaders(parts: readonly FormPart[]): Buffer[] {
  const headersByName = new Map<string, Buffer>();
  return parts.map((part) => {
    const partHeader = (part[2] === undefined ? headersByName.get(part[0]) : undefined) ?? toPartHeader(part);
    if (part[2] === undefined) headersByName.set(part[0], partHeader);
    return partHeader;
  });
}

function toPartHeader([name, , { fileName, mediaType } = {}]: FormPart): Buffer {
  const file = fileName === undefined ? '' : `; filename="${escapeMultipartName(fileName)}"`;
  const type = mediaType === undefined ? '' : `Content-Type: ${mediaType}\r\n`;
  return Buffer.from(`Content-Disposition: form-data; name="${escapeMultipartName(name)}"${file}\r\n${type}\r\n`);
}

/** Returns the bytes of a part. Line ends are rewritten only in plain text fields; a file is sent unchanged. */
function toPartBytes([, value, file]: FormPart): Buffer {
  if (typeof value !== 'string') return value;
  return file?.fileName === undefined ? toCrlf(Buffer.from(value)) : Buffer.from(value);
}

/** Rewrites the line ends of a text field to CRLF. */
function toCrlf(bytes: Buffer): Buffer {
  if (!bytes.includes(lineFeed) && !bytes.includes(carriageReturn)) return bytes;
  const output = Buffer.allocUnsafe(2 * bytes.length);
  let outputLength = 0;
  for (let offset = 0; offset < bytes.length; offset++) {
    const byte = bytes[offset] as number;
    if (byte !== lineFeed && byte !== carriageReturn) {
      output[outputLength++] = byte;
      continue;
    }
    output[outputLength++] = carriageReturn;
    output[outputLength++] = lineFeed;
    if (byte === carriageReturn && bytes[offset + 1] === lineFeed) offset++;
  }
  return output.subarray(0, outputLength);
}
