import type { AppError } from '@toolhost/errors/errors';

/** Fields of a request that identify its sender; Node's requests have this form. */
export type ClientRequest = {
  readonly headers: RequestHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined };
};

/**
 * Charges a database query that depends on input an unverified caller may have invented, such as a key or a slug,
 * before the query is made. Undefined for callers that are not limited.
 * @throws AppError tooMany
 */
export type QueryCharge = (() => void) | undefined;

/** Rate limits for addresses whose requests are refused repeatedly. */
export type UnverifiedCallerLimits = {
  /** Returns the charge for database queries that depend on the content of a request. Cached values need none. */
  getQueryCharge(request: ClientRequest): QueryCharge;
  /**
   * Records the status with which an unauthenticated request was refused. Returns the error to send in its place once
   * the address exceeds its limit.
   */
  recordRefusal(request: ClientRequest, status: number): AppError | undefined;
  /**
   * Charges a bearer token that may be invented, by its length, whether or not its request succeeds. Returns the error
   * with which to refuse a long one once the address exceeds its limit.
   */
  chargeUnknownBearer(request: ClientRequest, length: number): AppError | undefined;
  /**
   * Charges data sent to a caller without a verified key: 64 KiB count as one refused request. Returns the error to
   * send in its place once the address exceeds its limit.
   */
  chargeSentBytes(request: ClientRequest, bytes: number): AppError | undefined;
};

/**
 * Identifies who is charged for work and memory: a workspace and, unless an API key identifies the caller, the caller's
 * IP network within it.
 */
export type TenantKey = { readonly workspaceId: string; readonly network?: string | undefined };

/** Request headers as Node provides them, with lowercase names. */
export type RequestHeaders = { readonly [name: string]: string | string[] | undefined };
