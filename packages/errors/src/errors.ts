/**
 * Errors that Toolhost throws on purpose. They may be thrown anywhere and are rendered once per entry point: REST as
 * `application/problem+json` (RFC 9457), MCP as a JSON-RPC error, tool failures as `isError` results.
 */

/** One problem in an input: its path, and a message with the value found and the values allowed. */
export type Problem = { path: string; message: string };

/** Maximum number of listed problems; the remaining ones are only counted. */
export const maxListedProblems = 20;

export const maxPathLength = 200;
const maxMessageLength = 2000;

/** Shortens both texts of a problem, because names in an input may have any length. */
export function shortenProblem({ path, message }: Problem): Problem {
  return { path: truncateText(path, maxPathLength), message: truncateText(message, maxMessageLength) };
}

export function truncateText(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength).toWellFormed()}…` : text;
}

/** HTTP status, machine-readable code, and human-readable title of each kind of error. */
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

/** An error that a person or an agent may read. `message` never contains a secret, an address, or a query string. */
export class AppError extends Error {
  readonly kind: ErrorKind;
  readonly problems: readonly Problem[];
  readonly retryAfterS: number | undefined;

  constructor(
    kind: ErrorKind,
    message: string,
    options: { problems?: readonly Problem[]; retryAfterS?: number; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'AppError';
    this.kind = kind;
    this.problems = limitProblems(options.problems ?? []);
    this.retryAfterS = options.retryAfterS;
  }

  get status(): number {
    return errorKinds[this.kind].status;
  }

  /** Headers of an HTTP response with this error (RFC 9110, 10.2.3 and 12.5.3). */
  get headers(): Record<string, string> {
    return {
      ...(this.retryAfterS !== undefined && { 'Retry-After': String(this.retryAfterS) }),
      ...(this.kind === 'encoded' && { 'Accept-Encoding': 'identity' }),
    };
  }
}

/** Returns the line that follows the listed problems. */
export function remainingProblemsLine(count: number): Problem {
  return { path: '', message: `and ${count} more` };
}

/**
 * Returns the first problems and a count of the others. A list that already ends with a count is not shortened again.
 */
function limitProblems(problems: readonly Problem[]): readonly Problem[] {
  const limit = /^and \d+ more$/.test(problems.at(-1)?.message ?? '') ? maxListedProblems + 1 : maxListedProblems;
  if (problems.length <= limit) return problems.map(shortenProblem);
  return [
    ...problems.slice(0, maxListedProblems).map(shortenProblem),
    remainingProblemsLine(problems.length - maxListedProblems),
  ];
}

/** Returns an error for an invalid input, with its problems. */
export function invalidInputError(problems: readonly Problem[], summary = 'The input is not valid'): AppError {
  const list = limitProblems(problems)
    .map((p) => (p.path ? `${p.path}: ${p.message}` : p.message))
    .join('; ');
  return new AppError('invalid', `${summary}: ${list}`, { problems });
}

/** Reason for refusing a caller. With `forbidden` the credential is valid but does not permit the request. */
export type Refusal = 'missing' | 'invalid' | 'forbidden';

/** Thrown when an MCP endpoint gets no valid credential; rendered as 401 or 403 with `WWW-Authenticate`. */
export class Unauthenticated extends Error {
  readonly refusal: Refusal;
  /** Scopes to log in with, if they are not those of the server. */
  readonly scopes: readonly string[] | undefined;

  constructor(refusal: Refusal, message: string, scopes?: readonly string[]) {
    super(message);
    this.name = 'Unauthenticated';
    this.refusal = refusal;
    this.scopes = scopes;
  }

  get status(): 401 | 403 {
    return this.refusal === 'forbidden' ? 403 : 401;
  }
}

/**
 * Formats a message as `error_description`: printable ASCII without quotes and backslashes (RFC 6749, 4.1.2.1 and 5.2;
 * RFC 6750, 3).
 */
export function errorDescription(text: string): string {
  return text.replaceAll(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "'");
}

/** HTTP status of each OAuth error code (RFC 6749, 5.2 and 4.1.2.1; RFC 7591, 3.2.2; RFC 8707, 2). */
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

/** Returns the code with which OAuth endpoints report an error from another part of the service. */
export function toOAuthErrorCode({ kind }: AppError): OAuthErrorCode {
  if (kind === 'unavailable') return 'temporarily_unavailable';
  return kind === 'internal' ? 'server_error' : 'invalid_request';
}

/**
 * An error of the OAuth proxy. `message` is for the client and the person; `detail` goes only to the log.
 * `providerMessage` is the provider's own error text, redacted, for the person, the log, and the audit.
 */
export class OAuthError extends Error {
  readonly code: OAuthErrorCode;
  readonly detail: string | undefined;
  readonly providerMessage: string | undefined;

  constructor(code: OAuthErrorCode, message: string, detail?: string, providerMessage?: string) {
    super(message);
    this.name = 'OAuthError';
    this.code = code;
    this.detail = detail;
    this.providerMessage = providerMessage;
  }
}

/**
 * Reason why a request to an upstream failed. Four reasons mean that nothing was sent: `blocked` (the address guard
 * refused the address), `circuit_open` (the upstream keeps failing), `own_credential` (the request contained a Toolhost
 * key or token), and `no_connection` (the workspace uses its share of connections). With `busy` a response arrived but
 * was not decoded, because too many others are queued for decoding. With `no_memory` the workspace used most of the
 * memory that others needed, so the request was canceled while it waited for its response.
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
 * A failed request to an upstream. Only the HTTP client and its wrappers throw it. `message` is a sentence without an
 * address, a path, or a query.
 */
export class OutboundError extends Error {
  readonly reason: OutboundReason;
  /** Message for the call record: without a host that the upstream chose. */
  readonly recordMessage: string;

  constructor(reason: OutboundReason, message: string, recordMessage = message) {
    super(message);
    this.name = 'OutboundError';
    this.reason = reason;
    this.recordMessage = recordMessage;
  }
}

/** Cause of a failed call: the API, the agent's request, or the setup, which a person has to correct. */
export type FailureGroup = 'api' | 'agent' | 'setup';

/**
 * Outcomes of a call, as stored in its record, and the group of each failure; `byStatus` depends on the response. The
 * agent gets every outcome except `ok` as an `isError` result.
 */
const outcomeGroups = {
  ok: undefined,
  invalid_arguments: 'agent',
  upstream_status: 'byStatus',
  redirect: 'setup',
  timeout: 'api',
  unreachable: 'api',
  blocked: 'setup',
  oversize: 'setup',
  malformed: 'api',
  transform: 'setup',
  secret_missing: 'setup',
  no_token: 'setup',
  limited: 'setup',
  circuit_open: 'api',
  unavailable: 'setup',
  cancelled: 'agent',
  internal: 'setup',
} as const satisfies Record<string, FailureGroup | 'byStatus' | undefined>;

export type Outcome = keyof typeof outcomeGroups;

export const outcomes = Object.keys(outcomeGroups) as [Outcome, ...Outcome[]];

/** Statuses of responses that a person has to resolve: a credential, its rights, or a limit of the API. */
const setupStatuses = [401, 403, 429];

/** Returns the group of a failed call; undefined if it succeeded. */
export function getFailureGroup(outcome: Outcome, upstreamStatus = 500): FailureGroup | undefined {
  const group = outcomeGroups[outcome];
  if (group !== 'byStatus') return group;
  if (setupStatuses.includes(upstreamStatus)) return 'setup';
  return upstreamStatus < 500 ? 'agent' : 'api';
}

/** A failed tool call with a message that the model should read and may recover from. */
export class ToolFailure extends Error {
  readonly outcome: Outcome;
  /** Problems with individual arguments; empty unless arguments caused the failure. */
  readonly problems: readonly Problem[];
  /**
   * Message for the call record, without argument values and without text that the caller or the upstream chose.
   * Undefined where the outcome is enough.
   */
  readonly recordMessage: string | undefined;

  constructor(outcome: Outcome, message: string, problems: readonly Problem[] = [], recordMessage?: string) {
    super(message);
    this.name = 'ToolFailure';
    this.outcome = outcome;
    this.problems = problems;
    this.recordMessage = recordMessage;
  }
}

/**
 * Returns a failure whose message contains no text from a caller or an upstream, so the call record stores all of it.
 */
export function recordableFailure(outcome: Outcome, message: string, problems: readonly Problem[] = []): ToolFailure {
  return new ToolFailure(outcome, message, problems, message);
}

/**
 * Reason why a job returned no result. A `refused` job got no thread, or a busy machine kept it from running. A retry
 * may succeed.
 */
export type JobReason = 'refused' | 'timeout' | 'memory' | 'cancelled' | 'failed';

/** Thrown by the thread pool. `message` gives the reason as a phrase for a longer sentence. */
export class JobError extends Error {
  readonly reason: JobReason;

  constructor(reason: JobReason, message: string) {
    super(message);
    this.name = 'JobError';
    this.reason = reason;
  }
}

/** Returns true if a retry may succeed. */
export function isUnavailableError(error: unknown): boolean {
  return error instanceof AppError && error.kind === 'unavailable';
}

/** Returns the message of any thrown value, for logs. */
export function getErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
