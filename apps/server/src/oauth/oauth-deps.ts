import type { QueryCharge } from '@toolhost/credentials/client-request';
import type { Random } from '@toolhost/credentials/ids';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import type { ServiceHosts } from '../own-hosts.ts';
import type { Db } from '../store/db.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { OAuthClient } from './clients.ts';
import type { PassthroughTokens } from './passthrough.ts';
import type { People, ServerLogin, StoredIdentity } from './people.ts';
import type { PersonValuesStore } from './person-values.ts';
import type { UnsavedTokens } from './provider-tokens.ts';
import type { RefreshRefusals } from './refresh-refusals.ts';

/**
 * Tokens from a provider's token endpoint. `expiresAt` is in epoch ms, and undefined if the provider omits it. At a
 * server without a provider, the access token is empty.
 */
export type ProviderTokens = {
  accessToken: string;
  refreshToken: string | undefined;
  expiresAt: number | undefined;
  scope: string | undefined;
  /** Person who logged in. Undefined if no one names the person. */
  identity?: StoredIdentity | undefined;
  /**
   * Values that belong to this login, by name: `oauth.values`, and fields of an unidentified person. Those of an
   * identified person are stored for the person instead.
   */
  values?: Readonly<Record<string, string>> | undefined;
  /** Callback parameters that each refresh repeats (`oauth.callback_values`). */
  callbackValues?: Readonly<Record<string, string>> | undefined;
  /** Origin of the token endpoint, if the login determined it. */
  tokenOrigin?: string | undefined;
};

/** An account of the person at the provider, with the values that it stands for. The provider chose its texts. */
export type AccountChoice = { name: string; detail: string; values: Readonly<Record<string, string>> };

/**
 * Result of a finished login: the provider's tokens for a hosted server, or a user for the management server. `person`
 * is the provider's name for the person, for display.
 */
export type LoginResult = {
  tokens: ProviderTokens;
  person: string | undefined;
  userId: string | undefined;
  workspaceId: string;
  /** Accounts that the person chooses from. Undefined if there is nothing to choose. */
  choices?: readonly AccountChoice[];
};

/** Values that a person entered (`login.fields`), by name. */
export type FieldValues = Readonly<Record<string, string>>;

/** The provider of a login. */
export type Provider = {
  /** Host of the provider, as shown on the consent page. */
  host: string;
  /** True if the provider returns with a form that it sends from its own site, which needs cookies for such requests. */
  returnsForm: boolean;
  /** Callback parameter with the code. */
  codeParameter: string;
  /** Returns the provider's error code, or undefined if it must not be shown (`getDisplayedCode` in `provider.ts`). */
  getDisplayedCode(error: string): string | undefined;
  /** Returns the provider's own message about an error, without credentials. */
  getDisplayedMessage(description: string | null): string | undefined;
  /** Builds the provider's authorization URL. `scope` is the one shown to the person. @throws OAuthError server_error */
  buildAuthorizationUrl(request: { state: string; verifier: string; scope: string; fields: FieldValues }): Promise<URL>;
  /** Exchanges a code for tokens. @throws OAuthError server_error, temporarily_unavailable */
  exchange(callbackResponse: {
    code: string;
    parameters: URLSearchParams;
    state: string;
    verifier: string;
    fields: FieldValues;
  }): Promise<LoginResult>;
  /**
   * Refreshes tokens. The result contains the values of the login. @throws OAuthError invalid_grant if the provider
   * refuses, or if a value is no longer allowed
   */
  refresh(tokens: ProviderTokens): Promise<ProviderTokens>;
};

/** Tool, as described to people before they agree to a login. */
export type LoginTool = { name: string; isReadOnly: boolean };
/** Description of a view that people see before they agree to a login for it. */
export type LoginView = { name: string; title: string; tools: readonly LoginTool[] };

/** A server that agents log in to: every hosted server with `oauth` or `login`, and the management server. */
export type LoginServer = {
  id: string;
  workspaceId: string;
  slug: string;
  name: string;
  /** Display name of its operator, if that is not the workspace. */
  operator?: string;
  /** Display text of where the login acts, if the server does not determine that. */
  actsIn?: string;
  /** Both issuer and resource: `{base_url}/mcp/{slug}`. In local mode it has the host name of the request. */
  issuer: string;
  /** URLs of the resource under the other names of this machine. */
  aliases?: readonly string[];
  /** Second URL of the resource, on the server's own host. */
  serverHostUrl?: string | undefined;
  /** URL of the REST API, which accepts the same tokens. Only for the management server. */
  apiUrl?: string | undefined;
  scopes: readonly string[];
  /** Tokens that agents get: those of this service, or with passthrough the provider's own. */
  mode: 'issued' | 'passthrough';
  /** Hash of the hosts and endpoints that the person agrees to. It changes when they change. */
  agreement: string;
  /** View whose URL received the request. Undefined for the whole server. */
  view?: string | undefined;
  /** Names of its views. A login may be limited to one of them. */
  views: readonly string[];
  findView: (name: string) => LoginView | undefined;
  /** Returns the tools of the whole server. */
  listTools: () => readonly LoginTool[];
  /** Hosts that the tools call. They receive the provider's token, or the values of the person. */
  audience: readonly string[];
  /** Undefined for a server with `login` and without `oauth`. */
  provider: Provider | undefined;
  /** Rules for people, and the values that they bring. */
  login: ServerLogin | undefined;
};

/** A server with `login`. */
export type PeopleLoginServer = LoginServer & { login: ServerLogin };

/** Dependencies of the OAuth proxy. */
export type OAuthDeps = {
  db: Db;
  keyring: Keyring;
  http: HttpClient;
  /** True if clients may describe themselves by a document. */
  acceptsDocuments: boolean;
  /**
   * Finds a client that describes itself by a document. The fetch is charged to `network`, which is that of an
   * unverified caller. @throws OAuthError
   */
  findDocument: (clientId: string, network: string) => Promise<OAuthClient>;
  passthroughTokens: PassthroughTokens;
  unsavedTokens: UnsavedTokens;
  refreshRefusals: RefreshRefusals;
  /** Refreshes in progress for tokens that agents hold themselves (passthrough), by the hash of the refresh token. */
  refreshesInProgress: Map<string, Promise<TokenResponse>>;
  random: Random;
  /** Returns epoch ms. */
  now: () => number;
  baseUrl: string;
  /** Hosts where no client waits for a response. */
  ownHosts: ServiceHosts;
  /**
   * Finds a server with a login, without the name of its operator. `chargeQuery` charges the query for a slug that is
   * not cached.
   */
  findServer: (slug: string, chargeQuery?: QueryCharge) => Promise<LoginServer | undefined>;
  /** Applies recorded changes in this process immediately, instead of at the next poll. */
  onCommitted: () => Promise<void>;
  log: (message: string, fields: { [key: string]: unknown }) => void;
  /** Called with the grant id of each valid access token that is presented. */
  onTokenUse: (grantId: string) => void;
  people: People;
  /**
   * Checks that a browser is signed in to the dashboard, before the person of local mode logs in. Undefined if everyone
   * who reaches the service is that person. @throws OAuthError access_denied
   */
  requireLocalPerson: ((cookieHeader: string | undefined) => Promise<void>) | undefined;
  personValues: PersonValuesStore;
  /** Counts events for the metrics. */
  onEvent: (event: LoginEvent) => void;
};

/** Reports an internal error. */
export type ErrorReporter = { onUnexpected: (error: unknown, requestId: string) => void };

/** A login event for the audit log. `detail` contains no secret. */
export type LoginRecord = {
  server: LoginServer;
  /** At the management server, the workspace of the person, if it is known. */
  workspaceId: string;
  name: 'login' | 'loginFailed' | 'loginRevoked';
  detail: { [key: string]: unknown };
  requestId: string;
};

/** OAuth dependencies for one request, with the network of its sender, who chooses the URLs of documents. */
export type RequestDeps = OAuthDeps & { network: string };

/** Events of logins. Refreshes are those at the provider. */
export const loginEvents = ['started', 'finished', 'failed', 'refreshed', 'refresh_failed'] as const;
export type LoginEvent = (typeof loginEvents)[number];

/**
 * Response to a browser: a page or, with a location, a redirect to the client. The page is shown until the redirect has
 * loaded.
 */
export type BrowserResponse = { status: number; html: string; location?: string; cookies?: string[] };

/** Response of a token endpoint (RFC 6749, 5.1). */
export type TokenResponse = {
  access_token: string;
  token_type: string;
  expires_in?: number;
  refresh_token?: string;
  scope?: string;
};

/** Durations, in ms. */
export const durations = {
  /** Timeout of requests to a provider's token endpoint. */
  providerTimeout: 10_000,
  /** Lifetimes of a consent form, of a login in progress, and of our codes and tokens. */
  consent: 10 * 60_000,
  login: 10 * 60_000,
  code: 60_000,
  access: 60 * 60_000,
  /** Maximum duration of a login whose identity provider issued no refresh token, so that it cannot be asked again. */
  uncheckedLogin: 12 * 60 * 60_000,
  refresh: 30 * 24 * 60 * 60_000,
  /** Time for which the previous refresh token is still accepted, for clients whose response got lost. */
  refreshGrace: 30_000,
} as const;

/**
 * Scope that is not advertised. Clients would request it on their own, although the server decides if there is a
 * refresh token.
 */
export const offlineScope = 'offline_access';
