import type { AppError } from '../errors.ts';

/** The part of a request that identifies its sender; Node's requests have this form. */
export type Visit = {
  readonly headers: RequestHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined };
};

/**
 * Counts a query of the store about something that a stranger may have made up, such as a key or a slug, before it is made.
 * Undefined for whom no such queries are counted.
 * @throws AppError tooMany
 */
export type Lookup = (() => void) | undefined;

/** Limits for addresses whose requests are refused again and again. */
export type Strangers = {
  /** What queries of the store for the content of a request are counted with. Cached values need none. */
  lookFor(visit: Visit): Lookup;
  /**
   * Records the status with which an unauthenticated request was refused. Returns the error to answer with instead once
   * its address is above its limit.
   */
  onRefused(visit: Visit, status: number): AppError | undefined;
  /**
   * Counts a bearer that may be made up, by its length, whether its request succeeds or not. Returns the error to refuse a
   * long one with once its address is above its limit.
   */
  onUnknown(visit: Visit, length: number): AppError | undefined;
  /**
   * Counts what is sent to a caller that no key vouches for: 64 KiB as a refused request. Returns the error to answer with
   * instead once its address is above its limit.
   */
  onSent(visit: Visit, bytes: number): AppError | undefined;
};

/**
 * Whom work is done for, and whose something is that a client makes the service hold: a workspace, and within it the
 * network of the address, unless the credential proves whose the request is.
 */
export type Party = { readonly workspaceId: string; readonly network?: string | undefined };

/** Request headers as Node gives them: lower-case names. */
export type RequestHeaders = { readonly [name: string]: string | string[] | undefined };
