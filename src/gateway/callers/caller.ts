import { hash } from 'node:crypto';
import type { CallerKind } from '../../domain/config/access.ts';
import type { KeyLimits } from '../../domain/limits.ts';
import type { UpstreamRequest } from '../../domain/request/upstream-request.ts';
import type { Lookup, Visit } from '../../domain/visit.ts';
import type { MaybePromise } from '../../domain/work/maybe-promise.ts';
import type { AppError } from '../../errors.ts';
import type { ApiKey } from '../../store/api-keys.ts';
import type { HostedServer, HostedTool } from '../hosted/hosted-server.ts';
import type { TokenIds } from './recent-digests.ts';

/** The caller of a hosted server, and the token that the upstream will receive, if any. */
export type Caller = {
  kind: CallerKind;
  /** The API key, the grant of a login, or the key or user behind a try-out. */
  keyId: string | undefined;
  /** Identifies the credential for limits; undefined where any credential is accepted. */
  id: string | undefined;
  /** The caller's address if its credential is not known to be good; otherwise undefined. */
  network: string | undefined;
  /** For a login: identifies the callers of its address together, because one person can log in many times. */
  party?: string;
  /** Limits of the API key. */
  limits?: KeyLimits | undefined;
  /** Knowledge about a credential that callers bring; undefined until the upstream has accepted it. */
  credential?: Credential | undefined;
  /** Whether the called tool is known to refuse other credentials. */
  isChecked?: boolean;
  /** Learns from the upstream's answers; undefined where the upstream does not check the caller. */
  known?: KnownCallers | undefined;
  /** Checks, once the credential is accepted, whether a login issued it. */
  askLogin?: (() => Promise<void>) | undefined;
  /** A digest of the token, for callers that bring a token of the upstream. */
  tokenDigest?: string;
  /** The token that the caller brought, or that of its login; undefined where only stored credentials are sent. */
  token: string | undefined;
  /** Renews the refused token of a login. Resolves with undefined when the person must log in again. */
  renew?: () => Promise<string | undefined>;
  /** Drops a renewed token that was refused too: the next request makes the agent log in again. */
  giveUp?: (refused: string) => Promise<void>;
};

/**
 * A caller who may call the server. The function describes the caller; only a tool call needs that, and it takes a
 * digest of the token.
 */
export type Admitted = () => Caller;

/** The login behind a token that the OAuth proxy issued for a server. */
export type Login = {
  grantId: string;
  token: string;
  renew: () => Promise<string | undefined>;
  giveUp: (refused: string) => Promise<void>;
};

export type CallerOptions = {
  verifyApiKey: (key: string, look: Lookup) => MaybePromise<ApiKey | undefined>;
  /** Undefined for everything except a live token of this server. */
  findLogin: (server: HostedServer, bearer: string, look: Lookup) => Promise<Login | undefined>;
  /** Whether the agent got the bearer by a login, before the server changed where it sends such tokens. */
  isOutdated: (server: HostedServer, bearer: string, look: Lookup) => MaybePromise<boolean>;
  /** Whether a login of the server issued the bearer, for the destinations that the server has now. */
  isHandedOut: (server: HostedServer, bearer: string, look: Lookup) => Promise<boolean>;
  /** Called when a bearer had to be looked up that no login issued and no upstream has accepted. */
  onUnknown: (visit: Visit) => void;
  /** Counts work for a request as if it were refused. Returns the refusal of an address above its limit. */
  charge: (visit: Visit) => AppError | undefined;
  known: KnownCallers;
  tokenIds: TokenIds;
  /** The widest network around the address of a request that one person may have: they are one caller. */
  networkOf: (visit: Visit) => string;
  /** Called when one of our API keys would have been forwarded to an upstream. */
  onMisdirectedKey: (server: HostedServer) => void;
};

/** A credential that callers bring and that an upstream has answered with success. */
export type Credential = {
  /** The workspace whose server was called; it owns the memory of the credential. */
  readonly workspaceId: string;
  /** Address of the request of its first success. */
  readonly network: string;
  /** Identifies all credentials and logins of that address together. */
  readonly party: string;
  /** Names of the tools that succeeded with it, in the order of their first success. Empty once it is proven. */
  readonly tools: Set<string>;
  /** Whether it is known to be good for any tool. */
  isProven: boolean;
  /** Monotonic ms. */
  usedAt: number;
};

/** Who called which tool of whose server; see `Call`. */
export type Called = {
  readonly caller: Caller;
  readonly tool: HostedTool;
  readonly server: { readonly workspaceId: string };
};

/** What the upstreams' answers prove about the credentials that callers bring. */
export type KnownCallers = {
  find(id: string): Credential | undefined;
  /**
   * Sets what is known of a caller of this tool. Success with one tool proves nothing for another, which may be the
   * first to check the credential.
   */
  grade(caller: Caller, tool: HostedTool): void;
  /** Learns from an answer of the upstream. Returns true if the credential is newly accepted. */
  noteAnswer(called: Called, request: UpstreamRequest, status: number): boolean;
  /** Notes that a login of the server has issued this credential. */
  vouch(id: string): void;
};

/** A digest of a caller's identity, the same in every process. All callers whom nothing identifies have one. */
export function callerDigest({ kind, keyId, id }: Caller): string {
  return hash('sha256', JSON.stringify([kind, keyId ?? null, id ?? null]), 'base64url');
}
