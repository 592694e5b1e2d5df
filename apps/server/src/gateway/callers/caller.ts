import { hash } from 'node:crypto';
import type { ClientRequest, QueryCharge } from '@toolhost/credentials/client-request';
import type { AppError } from '@toolhost/errors/errors';
import type { MaybePromise } from '@toolhost/errors/yield-to-event-loop';
import type { LimitedKey } from '@toolhost/limits/call-limits';
import type { CallerKind } from '@toolhost/tool-config/server-wide';
import type { VerifiedKey } from '../../store/api-keys.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';

/** The caller of a hosted server, and the token that the upstream will receive, if any. */
export type Caller = {
  kind: CallerKind;
  /** Id of the API key, the login's grant, or the key or user behind a try-out. It identifies the caller. */
  keyId: string | undefined;
  /** Identifies the credential for limits. Undefined if any credential is accepted. */
  id: string | undefined;
  /**
   * Widest network that contains the request's address. Undefined for API keys and try-outs, which are charged to their
   * workspace.
   */
  network: string | undefined;
  /** True if a key or a login identifies the caller, or if the upstream has recently accepted its credential. */
  isVerified: boolean;
  /** The API key and the keys that it was created with, if they have limits. */
  limitedKeys?: readonly LimitedKey[] | undefined;
  /** Records the upstream's responses. Undefined if the upstream does not authenticate the caller. */
  verifiedCallers?: VerifiedCallers | undefined;
  /** Digest of the token. Present for callers that bring a token of the upstream. */
  tokenDigest?: string;
  /** Token that the caller sent, or that of its login. Undefined if only stored credentials are sent. */
  token: string | undefined;
  /** Undefined if the token does not belong to a login. */
  login?: Login | undefined;
  /** Undefined unless the caller is a person, or a key of one, at a server with `login`. */
  person?: CallingPerson | undefined;
};

/** Person who calls a server with `login`. */
export type CallingPerson = {
  /** View that the rules for people give them at every URL of the server. Undefined if they give none. */
  view: string | undefined;
  /** Returns a value that the person brought. Undefined if they brought none with this name. */
  getValue: (name: string) => string | undefined;
  /** Reason why there are no values, for the result of a call that needs one. */
  missingReason: string;
  /** Marks values that a call has sent as refused by the API, so that the person is asked again. */
  markRefused: (names: readonly string[]) => Promise<void>;
};

/** The login behind a token that the OAuth proxy issued for a server. */
export type Login = {
  grantId: string;
  token: string;
  /** Scopes that the person agreed to, and those that the provider says it granted. Separated by spaces. */
  scope: string;
  providerScope: string | undefined;
  /**
   * Renews the refused token. `isSent` is false if the new token is not used for this call. Resolves with undefined if
   * the person must log in again.
   */
  renew: (isSent: boolean) => Promise<string | undefined>;
  /** Discards a renewed token that was also refused. The next request makes the agent log in again. */
  discardToken: (refused: string) => Promise<void>;
  /** Records that the upstream accepted the token. Undefined unless the token was renewed and not sent yet. */
  onAccepted: (() => void) | undefined;
};

/** A login at a server. `login` is undefined if it has no token of a provider. */
export type FoundLogin = { grantId: string; login: Login | undefined; person: CallingPerson | undefined };

export type CallerOptions = {
  verifyApiKey: (key: string, chargeQuery: QueryCharge) => MaybePromise<VerifiedKey | undefined>;
  /**
   * Finds the login of a live token of this server. Resolves with undefined for any other token, and for a person who
   * may no longer call the server, or must enter values again.
   */
  findLogin: (server: HostedServer, bearer: string, chargeQuery: QueryCharge) => Promise<FoundLogin | undefined>;
  /** Finds the values of the member who created an API key. */
  findKeyPerson: (server: HostedServer, key: VerifiedKey, chargeQuery: QueryCharge) => Promise<CallingPerson>;
  /**
   * Returns true if the agent got the bearer token from a login, and the server has since changed the destinations of
   * such tokens.
   */
  isOutdated: (server: HostedServer, bearer: string, chargeQuery: QueryCharge) => MaybePromise<boolean>;
  /** Charges an unverified bearer token to its address. Returns the error for a token that is too long. */
  chargeUnknownBearer: (request: ClientRequest, length: number) => AppError | undefined;
  verifiedCallers: VerifiedCallers;
  /**
   * Returns the widest network around a request's address that a single person may control, which counts as one caller.
   */
  getNetwork: (request: ClientRequest) => string;
  /** Called when one of our API keys would have been forwarded to an upstream. */
  onMisdirectedKey: (server: HostedServer) => void;
};

/** Callers whose credential an upstream has recently accepted. */
export type VerifiedCallers = {
  has(id: string): boolean;
  /** Records the upstream's response to a caller at a server of this workspace. */
  recordResponse(caller: Caller, workspaceId: string, status: number): void;
};

/**
 * Time for which a caller counts as verified, and for which half of a server or workspace remains reserved for verified
 * callers after their last call, in ms.
 */
export const verifiedTtlMs = 10 * 60_000;

/** Returns a digest of a caller's identity, which is equal in all processes. All anonymous callers share one digest. */
export function toCallerDigest({ kind, keyId, id }: Caller): string {
  return hash('sha256', JSON.stringify([kind, keyId ?? null, id ?? null]), 'base64url');
}
