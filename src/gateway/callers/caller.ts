import type { CallerKind } from '../../domain/config/access.ts';
import type { KeyLimits } from '../../domain/limits.ts';
import type { MaybePromise } from '../../domain/maybe-promise.ts';
import type { UpstreamRequest } from '../../domain/request/request-template.ts';
import type { Lookup, Visit } from '../../domain/visit.ts';
import type { ApiKey } from '../../store/api-keys.ts';
import type { HostedServer, HostedTool } from '../hosted/hosted-server.ts';
import type { TokenIds } from './token-ids.ts';

/** Who calls a hosted server, and the token that an upstream origin will receive, if any. */
export type Caller = {
  kind: CallerKind;
  /** The API key, the grant of a login, or the key or user that tries out. */
  keyId: string | undefined;
  /** Stands for the credential under limits and circuits; undefined where anything is taken for one. */
  id: string | undefined;
  /** Where a caller comes from whose credential is not known to be good; undefined for all others. */
  network: string | undefined;
  /** What the API key is limited to. */
  limits?: KeyLimits | undefined;
  /** What is known of a credential that callers bring; undefined until the upstream has accepted it. */
  credential?: Credential | undefined;
  /** Whether the tool that is called is known to refuse other credentials. */
  isJudged?: boolean;
  /** What such answers are told to; undefined where the upstream does not judge the caller. */
  known?: KnownCallers | undefined;
  /** Asks, once the credential is accepted, whether a login gave it out. */
  askLogin?: (() => Promise<void>) | undefined;
  /** A digest of the token, of those who bring one of the upstream. */
  tokenDigest?: string;
  token: (origin: string) => string | undefined;
  /** After the upstream refused the token of a login: a new one, or undefined when the person must log in again. */
  renew?: () => Promise<string | undefined>;
  /** After the upstream refused the renewed token too: the next request makes the agent log in again. */
  giveUp?: (refused: string) => Promise<void>;
};

/** What one of the tokens that the OAuth proxy issued for a server stands for. */
export type Login = {
  grantId: string;
  token: string;
  renew: () => Promise<string | undefined>;
  giveUp: (refused: string) => Promise<void>;
};

export type CallerOptions = {
  verifyApiKey: (key: string, look: Lookup) => MaybePromise<ApiKey | undefined>;
  /** Undefined for everything but a live token of this very server. */
  findLogin: (server: HostedServer, bearer: string, look: Lookup) => Promise<Login | undefined>;
  /** Whether the agent got the bearer by a login, before the server changed where it sends such tokens. */
  isOutdated: (server: HostedServer, bearer: string) => MaybePromise<boolean>;
  /** Whether a login of the server gave the bearer out, for what it agrees to now. */
  isHandedOut: (server: HostedServer, bearer: string) => Promise<boolean>;
  known: KnownCallers;
  tokenIds: TokenIds;
  /** The address of a request, as limits count it. */
  networkOf: (visit: Visit) => string;
  /** Told when one of our API keys was about to reach a stranger's upstream. */
  onMisdirectedKey: (server: HostedServer) => void;
};

/** A credential that a tool's upstream has answered with success, of a server whose callers bring their own. */
export type Credential = {
  /** Where its first success was asked for from. */
  readonly network: string;
  /** All accepted credentials of that address together, for circuits. */
  readonly party: string;
  /** Names of the tools that succeeded with it. */
  readonly tools: Set<string>;
  /** Whether it is known to be good, whatever is called with it. */
  isProven: boolean;
  /** Whether its last call was a failure of the upstream, as circuits count them. */
  isFailing: boolean;
  /** Monotonic ms. */
  usedAt: number;
};

/** What upstreams have told of the credentials that callers bring. */
export type KnownCallers = {
  find(id: string): Credential | undefined;
  /**
   * Sets what is known of a caller who calls this tool. Success with one tool says nothing about another, which may be
   * the first to look at the credential.
   */
  judge(caller: Caller, tool: HostedTool): void;
  /** Takes an answer of the upstream into account. True when the credential is accepted from now on. */
  noteAnswer(caller: Caller, tool: HostedTool, request: UpstreamRequest, status: number): boolean;
  /** Notes that a login of the server has given this credential out. */
  vouch(id: string): void;
};
