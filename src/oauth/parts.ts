import type { OwnHosts } from '../domain/http/own-hosts.ts';
import type { Random } from '../domain/ids.ts';
import type { Lookup } from '../domain/visit.ts';
import type { HttpClient } from '../outbound/http-client.ts';
import type { Db } from '../store/db.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { OAuthClient } from './clients.ts';
import type { HandedOutTokens } from './passthrough.ts';
import type { UnsavedTokens } from './provider-tokens.ts';
import type { RefreshRefusals } from './refresh-refusals.ts';

/** Answer of a provider's token endpoint. `expiresAt` is in epoch ms, undefined when the provider did not state it. */
export type ProviderTokens = {
  accessToken: string;
  refreshToken: string | undefined;
  expiresAt: number | undefined;
  scope: string | undefined;
};

/**
 * Result of a finished login: tokens of the provider for a hosted server, a user for the management server. `person` is for
 * people who look at logins, as the provider named them.
 */
export type LoginResult = {
  tokens: ProviderTokens;
  person: string | undefined;
  userId: string | undefined;
  workspaceId: string;
};

/** The provider that a login goes to. */
export type Provider = {
  /** Host of the provider, shown on the consent page. */
  host: string;
  /** Hosts that will receive the provider's token, shown on the consent page. */
  audience: readonly string[];
  /** The provider's error code, or undefined when it may not be shown (`shownCode` in `provider.ts`). */
  shownCode(error: string): string | undefined;
  /** The provider's own sentence about an error, without credentials. */
  shownSentence(description: string | null): string | undefined;
  /** `scope` is the one shown to the person. */
  authorizationUrl(request: { state: string; verifier: string; scope: string }): Promise<URL>;
  /** @throws OAuthError server_error, temporarily_unavailable */
  exchange(answer: {
    code: string;
    parameters: URLSearchParams;
    state: string;
    verifier: string;
  }): Promise<LoginResult>;
  /** Undefined where the provider offers no refresh. @throws OAuthError invalid_grant when it refuses */
  refresh(refreshToken: string): Promise<ProviderTokens>;
};

/** What people are shown of a view before they agree to a login for it. */
export type LoginView = { name: string; title: string; tools: readonly { name: string; reads: boolean }[] };

/** A server that agents log in to: every hosted server with `oauth`, and the management server. */
export type LoginServer = {
  id: string;
  workspaceId: string;
  slug: string;
  name: string;
  /** Name of its operator, for people, where that is not the workspace. */
  operator?: string;
  /** Where the login acts, for people, when that is no property of the server. */
  actsIn?: string;
  /** Both issuer and resource: `{base_url}/mcp/{slug}`, in local mode under the name that was asked. */
  issuer: string;
  /** The resource under the other names of this machine. */
  aliases?: readonly string[];
  /** A second address of the resource, on a host of its own. */
  ownAddress?: string | undefined;
  /** URL of the REST API, for the management server: both take the same tokens. */
  apiAddress?: string | undefined;
  scopes: readonly string[];
  mode: 'issued' | 'passthrough';
  /** Hash that changes with the hosts and endpoints that the person agreed to. */
  agreement: string;
  /** The view whose address a request came to; undefined for the whole server. */
  view?: string | undefined;
  /** Names of its views; a login may be limited to one. */
  views: readonly string[];
  findView: (name: string) => LoginView | undefined;
  provider: Provider;
};

/** Dependencies of the OAuth proxy. */
export type OAuthParts = {
  db: Db;
  keyring: Keyring;
  http: HttpClient;
  /** Whether clients may describe themselves by a document. */
  takesDocuments: boolean;
  /** A client that describes itself by a document, which is fetched for an address of a stranger. @throws OAuthError */
  findDocument: (clientId: string, network: string) => Promise<OAuthClient>;
  handedOut: HandedOutTokens;
  unsaved: UnsavedTokens;
  refusals: RefreshRefusals;
  /** Refreshes under way of tokens that agents hold themselves, by the hash of the refresh token. */
  refreshing: Map<string, Promise<TokenAnswer>>;
  random: Random;
  /** Epoch milliseconds. */
  now: () => number;
  baseUrl: string;
  /** Hosts where no client waits for an answer. */
  ownHosts: OwnHosts;
  /** A server with a login; the name of its operator is left out. `look` queries the store for a slug not seen before. */
  findServer: (slug: string, look?: Lookup) => Promise<LoginServer | undefined>;
  /** Applies recorded changes in this process at once, instead of at the next poll. */
  onCommitted: () => Promise<void>;
  log: (message: string, fields: { [key: string]: unknown }) => void;
  /** Called with the id of the grant of each valid access token that was presented. */
  onUse: (grantId: string) => void;
  /** Counts events for the metrics. */
  onEvent: (event: LoginEvent) => void;
};

/** Reports a fault of this program. */
export type FaultReport = { onUnexpected: (error: unknown, requestId: string) => void };

/** An event of a login for the audit log; `detail` holds no secret. */
export type LoginRecord = {
  server: LoginServer;
  /** At the management server that of the person, once they are known. */
  workspaceId: string;
  name: 'login' | 'loginFailed' | 'loginRevoked';
  detail: { [key: string]: unknown };
  requestId: string;
};

/** The same for one request, with the address of its sender, who chooses the addresses of documents. */
export type RequestParts = OAuthParts & { network: string };

/** Events of logins. Refreshes are those at the provider. */
export const loginEvents = ['started', 'finished', 'failed', 'refreshed', 'refresh_failed'] as const;
export type LoginEvent = (typeof loginEvents)[number];

/** Answer to a browser: a page, or with a location a redirect to the client, whose page is shown until that has loaded. */
export type OAuthAnswer = { status: number; html: string; location?: string; cookies?: string[] };

/** The answer of a token endpoint (RFC 6749, 5.1). */
export type TokenAnswer = {
  access_token: string;
  token_type: string;
  expires_in?: number;
  refresh_token?: string;
  scope?: string;
};

/** Spans in ms. */
export const spans = {
  /** How long the token endpoint of a provider is waited for. */
  askProvider: 10_000,
  consent: 10 * 60_000,
  login: 10 * 60_000,
  code: 60_000,
  access: 60 * 60_000,
  refresh: 30 * 24 * 60 * 60_000,
  /** How long the previous refresh token is still accepted, for clients whose answer got lost. */
  grace: 30_000,
} as const;

/** Not advertised: clients would request it on their own, and the server decides whether there is a refresh token. */
export const offlineScope = 'offline_access';
