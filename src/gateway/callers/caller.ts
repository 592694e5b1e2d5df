import { hash } from 'node:crypto';
import type { CallerKind } from '../../domain/config/server-wide.ts';
import type { LimitedKey } from '../../domain/limits.ts';
import type { Lookup, Visit } from '../../domain/visit.ts';
import type { MaybePromise } from '../../domain/work/next-turn.ts';
import type { AppError } from '../../errors.ts';
import type { VerifiedKey } from '../../store/api-keys.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';

/** The caller of a hosted server, and the token that the upstream will receive, if any. */
export type Caller = {
  kind: CallerKind;
  /** The API key, the grant of a login, or the key or user behind a try-out; it vouches for the caller. */
  keyId: string | undefined;
  /** Identifies the credential for limits; undefined where any credential is accepted. */
  id: string | undefined;
  /** The widest network around the address of the request; undefined for API keys and try-outs, which are their workspace's. */
  network: string | undefined;
  /** Whether a key or a login vouches for the caller, or the upstream has lately answered its credential with success. */
  isKnown: boolean;
  /** The API key and those it was made with, as far as they have limits. */
  limits?: readonly LimitedKey[] | undefined;
  /** Learns from the upstream's answers; undefined where the upstream does not check the caller. */
  known?: KnownCallers | undefined;
  /** A digest of the token, for callers that bring a token of the upstream. */
  tokenDigest?: string;
  /** The token that the caller brought, or that of its login; undefined where only stored credentials are sent. */
  token: string | undefined;
  /** Undefined where the token is not that of a login. */
  login?: Login | undefined;
};

/** The login behind a token that the OAuth proxy issued for a server. */
export type Login = {
  grantId: string;
  token: string;
  /**
   * Renews the refused token. `isSent` is false where no request will be sent with the new one now. Resolves with undefined
   * when the person must log in again.
   */
  renew: (isSent: boolean) => Promise<string | undefined>;
  /** Drops a renewed token that was refused too: the next request makes the agent log in again. */
  giveUp: (refused: string) => Promise<void>;
  /** Notes that the upstream took the token; undefined unless it was renewed and not sent yet. */
  onTaken: (() => void) | undefined;
};

export type CallerOptions = {
  verifyApiKey: (key: string, look: Lookup) => MaybePromise<VerifiedKey | undefined>;
  /** Undefined for everything except a live token of this server. */
  findLogin: (server: HostedServer, bearer: string, look: Lookup) => Promise<Login | undefined>;
  /** Whether the agent got the bearer by a login, before the server changed where it sends such tokens. */
  isOutdated: (server: HostedServer, bearer: string, look: Lookup) => MaybePromise<boolean>;
  /** Counts a bearer that is not known for the address that sent it. Returns the refusal of one that is too long. */
  onUnknown: (visit: Visit, length: number) => AppError | undefined;
  known: KnownCallers;
  /** The widest network around the address of a request that one person may have: they are one caller. */
  networkOf: (visit: Visit) => string;
  /** Called when one of our API keys would have been forwarded to an upstream. */
  onMisdirectedKey: (server: HostedServer) => void;
};

/** What the upstreams' answers show of the credentials that callers bring. */
export type KnownCallers = {
  has(id: string): boolean;
  /** Learns from an answer of the upstream to a caller at a server of this workspace. */
  noteAnswer(caller: Caller, workspaceId: string, status: number): void;
};

/** How long a caller counts as known, and how long after its last call half of a server or workspace stays free for such. */
export const knownMs = 10 * 60_000;

/** A digest of a caller's identity, the same in every process. All callers whom nothing identifies have one. */
export function callerDigest({ kind, keyId, id }: Caller): string {
  return hash('sha256', JSON.stringify([kind, keyId ?? null, id ?? null]), 'base64url');
}
