import { createHash } from 'node:crypto';
import type { RequestSpan } from '../../domain/call-observation.ts';
import { headerValue } from '../../domain/credentials/credential.ts';
import { holdsOurCredential } from '../../domain/credentials/own-credentials.ts';
import type { ClientTokens } from '../../domain/credentials/token-request.ts';
import { isHeaderValue, mediaTypeOf } from '../../domain/http/headers.ts';
import { quotedName } from '../../domain/http/values.ts';
import type { McpServer, ToolCall } from '../../domain/mcp.ts';
import { buildRequest } from '../../domain/request/build-request.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import type { FormPart, UpstreamRequest } from '../../domain/request/upstream-request.ts';
import { AppError, OutboundError, plainFailure } from '../../errors.ts';
import type { Answer } from '../../outbound/exchange.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import type { Call, CallRequest } from './call.ts';
import {
  countFilled,
  renewOwnTokens,
  type Signing,
  secretFor,
  signablePath,
  signatureOf,
  tokensOf,
} from './credentials-of-call.ts';

/** Properties of a request that a redirect leads to. */
export type Hop = {
  /** True if it is sent to another origin than the tool's. Such a request reveals nothing about the call. */
  isElsewhere: boolean;
  timeoutMs: number;
};

/**
 * Builds the request of a call, and records the credentials that it will send. The token is the caller's, or `renewed`
 * if present.
 * @throws ToolFailure invalid_arguments, secret_missing
 */
export function requestOf(call: Call, args: Arguments, renewed?: string): CallRequest {
  const { tool, sensitive } = call;
  const token = renewed ?? call.caller.token;
  if (renewed !== undefined) sensitive.push(renewed);
  const sent: string[] = [];
  let filled = 0;
  const secret = (name: string) => {
    const value = secretFor(call.server, name, tool.request.url.origin);
    filled = countFilled(filled, value);
    sensitive.push(value);
    sent.push(value);
    return value;
  };
  const tokens = tokensOf(call, { token, secret, sent });
  const built = buildRequest(tool.request, args, { tokens, secret });
  const forwarded = call.server.config.forward_headers;
  const request = forwarded ? { ...built, headers: [...built.headers, ...headersOfClient(call, forwarded)] } : built;
  // The caller's token has a digest already, which is sufficient if no other credential is sent.
  const known = sent.length === 1 && sent[0] === token && renewed === undefined ? call.caller.tokenDigest : undefined;
  call.request = { request, credentialHash: known ?? tool.credentialHash(sent) };
  return call.request;
}

/** Maximum length of a forwarded header, in characters. */
const mostForwarded = 4096;

/**
 * Returns the headers of the client's request that the configuration forwards, alternating names and values.
 * @throws ToolFailure invalid_arguments for a value that must not be forwarded
 */
function headersOfClient({ asked }: Call, names: readonly string[]): string[] {
  return names.flatMap((name) => {
    const value = headerValue(asked.headers, name.toLowerCase());
    if (value === undefined) return [];
    if (value.length <= mostForwarded && isHeaderValue(value) && !holdsOurCredential(value)) return [name, value];
    const message = `the request header ${name} cannot be forwarded; allowed: one line of Latin-1 text of at most ${mostForwarded} characters, without an API key or token of this service`;
    throw plainFailure('invalid_arguments', message);
  });
}

/**
 * Authorizes a call again after it has waited in a queue, for a token, or for a file. A request that the upstream has
 * accepted is finished without this check. A request that the upstream refused and that is sent again needs it.
 * @throws Unauthenticated or AppError if the call is no longer allowed, and AppError unavailable if the server, and
 * therefore the request, has changed
 */
export async function admitAgain({ admission }: ToolCall, server: Pick<McpServer, 'source'>): Promise<void> {
  const now = await admission.again();
  if (now.source === server.source) return;
  throw new AppError(
    'unavailable',
    'The server was changed while the call waited. Nothing was sent; call the tool again.',
    {
      retryAfterS: 1,
    },
  );
}

export type SendParts = { http: HttpClient; clientTokens: ClientTokens };

/**
 * Renews the token of the login or of the service after a 401, and sends the request once more if the tool's hints
 * allow that, because an upstream may refuse a token after it has started the work. Returns the first response if there
 * is no new token.
 * @throws OutboundError
 * @throws ToolFailure upstream_status if only the next call may use the new token
 * @throws Unauthenticated, AppError if the call is no longer allowed after the wait for that token
 */
export async function sendRenewed(call: Call, refused: Answer, args: Arguments, parts: SendParts): Promise<Answer> {
  const { login } = call.caller;
  if (login?.onTaken) {
    // The token was renewed for this call, so another new one would be refused too.
    await login.giveUp(login.token);
    return refused;
  }
  const isRepeatable = call.tool.isRepeatable();
  const renewed = await login?.renew(isRepeatable);
  const own = call.ownTokens && (await renewOwnTokens(call, call.ownTokens, parts.clientTokens));
  if (renewed === undefined && !own) return refused;
  if (!isRepeatable) {
    call.answer = refused;
    throw plainFailure('upstream_status', notRepeated);
  }
  call.ownTokens = own ?? call.ownTokens;
  if (call.asked.admission.isOld()) await admitAgain(call.asked, call.server);
  const answer = await send(call, requestOf(call, args, renewed), parts.http);
  if (answer.status === 401 && renewed !== undefined) await login?.giveUp(renewed);
  return answer;
}

const notRepeated =
  'HTTP 401 Unauthorized: the API refused the token, which has now been renewed. The request was not sent again, because this tool is neither read-only nor idempotent. Call the tool again; the next call uses the new token.';

/** The body of a request, and its headers including those that depend on the body. */
type Content = { body: string | Buffer | undefined; headers: string[] };

/** Sends one request of a call. `hop` is present if a redirect led to the request. @throws OutboundError */
export function send(
  call: Call,
  { request, credentialHash }: Pick<CallRequest, 'request'> & { credentialHash: string | undefined },
  client: HttpClient,
  hop?: Hop,
): Promise<Answer> {
  const { server, tool, asked, caller } = call;
  call.requests++;
  const isElsewhere = hop?.isElsewhere === true;
  const span = call.span?.request(request.method, request.origin);
  const content: Content =
    typeof request.body === 'object' && 'fields' in request.body
      ? withMultipartBody(request.headers, request.body.fields)
      : { body: request.body, headers: request.headers };
  const signed = call.signing && !isElsewhere ? signedContent(call, call.signing, request, content) : undefined;
  const { body, headers } = signed ?? content;
  const traceparent = isElsewhere ? undefined : (span?.traceparent ?? asked.traceparent);
  const sent = client.send({
    workspaceId: server.workspaceId,
    origin: request.origin,
    credentialHash,
    stranger: caller.isKnown ? undefined : caller.network,
    path: signed?.path ?? request.path,
    method: request.method,
    headers: traceparent === undefined ? headers : [...headers, ...traceHeaders(traceparent, asked.tracestate)],
    body,
    timeoutMs: hop?.timeoutMs ?? tool.timeoutMs,
    limitBytes: tool.limitBytes,
    onGone: call.onGone,
    held: call.held,
  });
  return span ? traced(sent, span) : sent;
}

/** Returns the headers of the W3C trace context. */
function traceHeaders(traceparent: string, tracestate: string | undefined): string[] {
  return ['traceparent', traceparent, ...(tracestate === undefined ? [] : ['tracestate', tracestate])];
}

/** Signs a request, after all other headers are known. The trace context that is added later is not signed. */
function signedContent(call: Call, signing: Signing, request: UpstreamRequest, content: Content) {
  const path = signablePath(request.path);
  const at = call.startedAt + performance.now() - call.startedClock;
  const signature = signatureOf({ ...request, ...content, path }, signing, at);
  call.sensitive.push(signature.at(-1)?.split('Signature=')[1] ?? '');
  return { ...content, path, headers: [...content.headers, ...signature] };
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

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const lineEnd = Buffer.from('\r\n');

/** Builds a multipart body (RFC 2046, 5.1), and the headers with its Content-Type, which must name the boundary. */
function withMultipartBody(headers: readonly string[], parts: readonly FormPart[]): Content {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-type');
  const written = at < 0 ? formType : (headers[at + 1] as string);
  const typed = mediaTypeOf(written) === formType ? parts : parts.map(typedPart);
  const heads = headsOf(typed);
  const values = typed.map(bytesOf);
  // No value can contain the hash of all values, so the boundary occurs in none of them.
  const digest = createHash('sha256');
  for (const value of values) digest.update(value);
  const boundary = `toolhost-${digest.digest('hex')}`;
  const delimiter = Buffer.from(`--${boundary}\r\n`);
  const pieces = values.flatMap((value, i) => [delimiter, heads[i] as Buffer, value, lineEnd]);
  const body = Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
  const others = at < 0 ? headers : headers.toSpliced(at, 2);
  return { body, headers: [...others, 'Content-Type', `${multipartType(written, typed)}; boundary=${boundary}`] };
}

const formType = 'multipart/form-data';

/** Adds a media type to a part. Only form parts may omit it. */
function typedPart([name, value, of]: FormPart): FormPart {
  return [name, value, { mediaType: 'text/plain; charset=utf-8', ...of }];
}

/**
 * Returns the written type without a boundary. `multipart/related` names the type of its first part (RFC 2387, 3.1).
 */
function multipartType(written: string, [first]: readonly FormPart[]): string {
  const type = written.replaceAll(/\s*;\s*boundary\s*=\s*(?:"[^"]*"|[^;"]*)/gi, '');
  const root = first?.[2]?.mediaType;
  const isTold = root === undefined || mediaTypeOf(written) !== 'multipart/related' || /;\s*type\s*=/i.test(type);
  return isTold ? type : `${type}; type="${mediaTypeOf(root)}"`;
}

/** Returns the headers of each part. Thousands of plain fields may share one name, so its headers are built once. */
function headsOf(parts: readonly FormPart[]): Buffer[] {
  const ofNames = new Map<string, Buffer>();
  return parts.map((part) => {
    const head = (part[2] === undefined ? ofNames.get(part[0]) : undefined) ?? headOf(part);
    if (part[2] === undefined) ofNames.set(part[0], head);
    return head;
  });
}

/** Builds the headers of a part. */
function headOf([name, , { fileName, mediaType } = {}]: FormPart): Buffer {
  const file = fileName === undefined ? '' : `; filename="${quotedName(fileName)}"`;
  const type = mediaType === undefined ? '' : `Content-Type: ${mediaType}\r\n`;
  return Buffer.from(`Content-Disposition: form-data; name="${quotedName(name)}"${file}\r\n${type}\r\n`);
}

/** Returns the bytes of a part. Line ends are rewritten only in plain text fields; a file is sent unchanged. */
function bytesOf([, value, of]: FormPart): Buffer {
  if (typeof value !== 'string') return value;
  return of?.fileName === undefined ? withLineEnds(Buffer.from(value)) : Buffer.from(value);
}

/** Rewrites the line ends of a text field to CRLF. */
function withLineEnds(bytes: Buffer): Buffer {
  if (!bytes.includes(lineFeed) && !bytes.includes(carriageReturn)) return bytes;
  const written = Buffer.allocUnsafe(2 * bytes.length);
  let to = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte !== lineFeed && byte !== carriageReturn) {
      written[to++] = byte;
      continue;
    }
    written[to++] = carriageReturn;
    written[to++] = lineFeed;
    if (byte === carriageReturn && bytes[at + 1] === lineFeed) at++;
  }
  return written.subarray(0, to);
}
