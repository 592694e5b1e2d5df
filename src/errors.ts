/**
 * Every error that the product throws on purpose. Thrown anywhere, rendered once per entry point:
 * REST as `application/problem+json` (RFC 9457), MCP as a JSON-RPC error, tool failures as `isError` results.
 */

/** One fault of an input: the path, and a message with what was found and what is allowed. */
export type Problem = { path: string; message: string };

/** Most problems that are listed at once; the rest is only counted. */
export const mostProblems = 20;

export const longestPath = 200;
const longestMessage = 2000;

/** The same with texts that fit into a list, because an input may have names of any length. */
export function shortProblem({ path, message }: Problem): Problem {
  return { path: shortText(path, longestPath), message: shortText(message, longestMessage) };
}

export function shortText(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest).toWellFormed()}…` : text;
}

/** The HTTP status of each kind of error, its code for programs, and its title for people. */
export const errorKinds = {
  invalid: { status: 400, code: 'invalid_request', title: 'The request is not valid' },
  unauthenticated: { status: 401, code: 'unauthenticated', title: 'No valid credential' },
  forbidden: { status: 403, code: 'forbidden', title: 'Not allowed' },
  notFound: { status: 404, code: 'not_found', title: 'Not found' },
  methodNotAllowed: { status: 405, code: 'method_not_allowed', title: 'Method not allowed' },
  conflict: { status: 409, code: 'conflict', title: 'Conflict' },
  tooLarge: { status: 413, code: 'too_large', title: 'Too large' },
  unsupported: { status: 415, code: 'unsupported_media_type', title: 'Unsupported media type' },
  encoded: { status: 415, code: 'unsupported_content_coding', title: 'Unsupported content coding' },
  misdirected: { status: 421, code: 'misdirected_request', title: 'Misdirected request' },
  tooMany: { status: 429, code: 'too_many_requests', title: 'Too many requests' },
  internal: { status: 500, code: 'internal_error', title: 'Internal error' },
  unavailable: { status: 503, code: 'unavailable', title: 'Temporarily unavailable' },
  loop: { status: 508, code: 'loop_detected', title: 'Loop detected' },
} as const;

export type ErrorKind = keyof typeof errorKinds;

/** An error that a person or an agent may read. `message` never holds a secret, an address or a query string. */
export class AppError extends Error {
  readonly kind: ErrorKind;
  readonly problems: readonly Problem[];
  readonly retryAfterS: number | undefined;

  constructor(
    kind: ErrorKind,
    message: string,
    more: { problems?: readonly Problem[]; retryAfterS?: number; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.name = 'AppError';
    this.kind = kind;
    this.problems = firstProblems(more.problems ?? []);
    this.retryAfterS = more.retryAfterS;
  }

  get status(): number {
    return errorKinds[this.kind].status;
  }

  /** Headers of an HTTP answer with this error (RFC 9110, 10.2.3 and 12.5.3). */
  get headers(): Record<string, string> {
    return {
      ...(this.retryAfterS !== undefined && { 'Retry-After': String(this.retryAfterS) }),
      ...(this.kind === 'encoded' && { 'Accept-Encoding': 'identity' }),
    };
  }
}

/** The line after the listed problems. */
export function furtherProblems(count: number): Problem {
  return { path: '', message: `and ${count} more` };
}

/** The first problems, and how many more there are. A list that ends with that line already stays as it is. */
function firstProblems(problems: readonly Problem[]): readonly Problem[] {
  const most = /^and \d+ more$/.test(problems.at(-1)?.message ?? '') ? mostProblems + 1 : mostProblems;
  if (problems.length <= most) return problems.map(shortProblem);
  return [...problems.slice(0, mostProblems).map(shortProblem), furtherProblems(problems.length - mostProblems)];
}

/** An invalid input, with its problems. */
export function invalid(problems: readonly Problem[], what = 'The input is not valid'): AppError {
  const list = firstProblems(problems)
    .map((p) => (p.path ? `${p.path}: ${p.message}` : p.message))
    .join('; ');
  return new AppError('invalid', `${what}: ${list}`, { problems });
}

/** Why a caller was refused. With `forbidden` the credential is valid but does not permit the request. */
export type Refusal = 'missing' | 'invalid' | 'forbidden';

/** No valid credential for an MCP endpoint; rendered as 401 (or 403) with `WWW-Authenticate`. */
export class Unauthenticated extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal, message: string) {
    super(message);
    this.name = 'Unauthenticated';
    this.refusal = refusal;
  }

  get status(): 401 | 403 {
    return this.refusal === 'forbidden' ? 403 : 401;
  }
}

/** A message as `error_description`: printable ASCII without quotes and backslashes (RFC 6749, 4.1.2.1 and 5.2; RFC 6750, 3). */
export function errorDescription(text: string): string {
  return text.replaceAll(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "'");
}

/** RFC 6749 5.2 and 4.1.2.1, RFC 7591 3.2.2, RFC 8707 2. */
export const oauthErrorStatus = {
  invalid_request: 400,
  invalid_client: 401,
  invalid_grant: 400,
  invalid_scope: 400,
  invalid_target: 400,
  unauthorized_client: 400,
  unsupported_grant_type: 400,
  unsupported_response_type: 400,
  unsupported_token_type: 400,
  access_denied: 400,
  server_error: 500,
  temporarily_unavailable: 503,
  invalid_redirect_uri: 400,
  invalid_client_metadata: 400,
  slow_down: 429,
} as const;

export type OAuthErrorCode = keyof typeof oauthErrorStatus;

/** The code by which the endpoints of OAuth tell an error of another part of the service. */
export function oauthCodeOf({ kind }: AppError): OAuthErrorCode {
  if (kind === 'unavailable') return 'temporarily_unavailable';
  return kind === 'internal' ? 'server_error' : 'invalid_request';
}

/**
 * An error of the OAuth proxy. `message` is for the client and the person; `detail` goes only to the log. `said` is the
 * provider's own sentence, redacted, for the person, the log and the audit.
 */
export class OAuthError extends Error {
  readonly code: OAuthErrorCode;
  readonly detail: string | undefined;
  readonly said: string | undefined;

  constructor(code: OAuthErrorCode, message: string, detail?: string, said?: string) {
    super(message);
    this.name = 'OAuthError';
    this.code = code;
    this.detail = detail;
    this.said = said;
  }
}

/**
 * Why a request to an upstream got no answer. Nothing was sent with `blocked` (the address guard), `circuit_open` (an
 * upstream that fails), `own_credential` (a key or a token of ours was in it) and `no_connection` (the workspace uses its
 * share of connections). With `busy` an answer came that was not decoded, because too many others wait for that. With
 * `no_memory` the workspace held most of the memory that others needed, so the request was given up while its answer was
 * due.
 */
export type OutboundReason =
  | 'blocked'
  | 'dns'
  | 'unreachable'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'truncated'
  | 'malformed'
  | 'oversize'
  | 'busy'
  | 'circuit_open'
  | 'own_credential'
  | 'no_connection'
  | 'no_memory'
  | 'stopped'
  | 'cancelled';

/**
 * A failed request to an upstream. Only the HTTP client and what is wrapped around it throw it.
 * `message` is a sentence without address, path or query.
 */
export class OutboundError extends Error {
  readonly reason: OutboundReason;
  /** The message as a call record keeps it: without a host that the upstream chose. */
  readonly forRecord: string;

  constructor(reason: OutboundReason, message: string, forRecord = message) {
    super(message);
    this.name = 'OutboundError';
    this.reason = reason;
    this.forRecord = forRecord;
  }
}

/** How a call ended, as its record says. The agent gets every outcome except `ok` as an `isError` result. */
export const outcomes = [
  'ok',
  'invalid_arguments',
  'upstream_status',
  'redirect',
  'timeout',
  'unreachable',
  'blocked',
  'oversize',
  'malformed',
  'transform',
  'secret_missing',
  'no_token',
  'limited',
  'circuit_open',
  'unavailable',
  'cancelled',
  'internal',
] as const;

export type Outcome = (typeof outcomes)[number];

/** A failed tool call whose message the model should read and may recover from. */
export class ToolFailure extends Error {
  readonly outcome: Outcome;
  /** Problems of single arguments; empty unless arguments caused the failure. */
  readonly problems: readonly Problem[];
  /**
   * The message as a call record keeps it: no value of an argument, no text that the caller or the upstream chose.
   * Undefined where the outcome has to suffice.
   */
  readonly forRecord: string | undefined;

  constructor(outcome: Outcome, message: string, problems: readonly Problem[] = [], forRecord?: string) {
    super(message);
    this.name = 'ToolFailure';
    this.outcome = outcome;
    this.problems = problems;
    this.forRecord = forRecord;
  }
}

/** A failure whose message has nothing in it that a caller or an upstream chose, so that the record keeps all of it. */
export function plainFailure(outcome: Outcome, message: string, problems: readonly Problem[] = []): ToolFailure {
  return new ToolFailure(outcome, message, problems, message);
}

/** Why a job gave no result. A `refused` one got no thread, or a busy machine kept it from running; it may succeed later. */
export type JobReason = 'refused' | 'timeout' | 'memory' | 'cancelled' | 'failed';

/** Thrown by the thread pool. `message` gives the reason, for use inside a longer sentence. */
export class JobError extends Error {
  readonly reason: JobReason;

  constructor(reason: JobReason, message: string) {
    super(message);
    this.name = 'JobError';
    this.reason = reason;
  }
}

/** Whether trying again later may help. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.kind === 'unavailable';
}

/** The message of any thrown value, for logs. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
