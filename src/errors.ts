/**
 * Every error that the product throws on purpose. Thrown anywhere, rendered once per door:
 * REST as `application/problem+json` (RFC 9457), MCP as a JSON-RPC error, tool failures as `isError` results.
 */

/** What is wrong with one place of an input: where, and what was found and is allowed. */
export type Problem = { path: string; message: string };

export const errorKinds = {
  invalid: { status: 400, title: 'The request is not valid' },
  unauthenticated: { status: 401, title: 'No valid credential' },
  forbidden: { status: 403, title: 'Not allowed' },
  notFound: { status: 404, title: 'Not found' },
  methodNotAllowed: { status: 405, title: 'Method not allowed' },
  conflict: { status: 409, title: 'Conflict' },
  tooLarge: { status: 413, title: 'Too large' },
  unsupported: { status: 415, title: 'Unsupported media type' },
  misdirected: { status: 421, title: 'Misdirected request' },
  tooMany: { status: 429, title: 'Too many requests' },
  internal: { status: 500, title: 'Internal error' },
  unavailable: { status: 503, title: 'Temporarily unavailable' },
  loop: { status: 508, title: 'Loop detected' },
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
    this.problems = more.problems ?? [];
    this.retryAfterS = more.retryAfterS;
  }

  get status(): number {
    return errorKinds[this.kind].status;
  }
}

/** An invalid input with everything that is wrong with it. */
export function invalid(problems: readonly Problem[], what = 'The input is not valid'): AppError {
  const list = problems.map((p) => (p.path ? `${p.path}: ${p.message}` : p.message)).join('; ');
  return new AppError('invalid', `${what}: ${list}`, { problems });
}

/** Why a caller was not let in. `forbidden` has a valid credential that may not do this. */
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
  access_denied: 400,
  server_error: 500,
  temporarily_unavailable: 503,
  invalid_redirect_uri: 400,
  invalid_client_metadata: 400,
  slow_down: 429,
} as const;

export type OAuthErrorCode = keyof typeof oauthErrorStatus;

/** An error of the OAuth proxy. `message` is for the client and the person; `detail` is for the log alone. */
export class OAuthError extends Error {
  readonly code: OAuthErrorCode;
  readonly detail: string | undefined;

  constructor(code: OAuthErrorCode, message: string, detail?: string) {
    super(message);
    this.name = 'OAuthError';
    this.code = code;
    this.detail = detail;
  }
}

/**
 * Why the way out gave no answer. `blocked` is the address guard, `circuit_open` an upstream that fails,
 * `no_connection` a workspace that has its share of connections in use; nothing was sent then.
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
  | 'circuit_open'
  | 'no_connection'
  | 'stopped'
  | 'cancelled';

/** Thrown by the outbound door, and what stands before it, alone. `message` is a sentence without address, path or query. */
export class OutboundError extends Error {
  readonly reason: OutboundReason;

  constructor(reason: OutboundReason, message: string) {
    super(message);
    this.name = 'OutboundError';
    this.reason = reason;
  }
}

/** How a call ended, as its record says. Everything but `ok` is shown to the agent as an `isError` result. */
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
  'limited',
  'circuit_open',
  'unavailable',
  'cancelled',
  'internal',
] as const;

export type Outcome = (typeof outcomes)[number];

/** A tool call that failed in a way the model should read and may recover from. */
export class ToolFailure extends Error {
  readonly outcome: Outcome;
  /** The arguments at fault, where the failure is about arguments. */
  readonly problems: readonly Problem[];

  constructor(outcome: Outcome, message: string, problems: readonly Problem[] = []) {
    super(message);
    this.name = 'ToolFailure';
    this.outcome = outcome;
    this.problems = problems;
  }
}

/** Why a job on a thread gave no result. `refused` was never begun. */
export type JobReason = 'refused' | 'timeout' | 'memory' | 'cancelled' | 'failed';

/** Thrown by the pool of threads. `message` says why, for whoever puts it into a sentence. */
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

/** The words of an unknown thrown value, for logs. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
