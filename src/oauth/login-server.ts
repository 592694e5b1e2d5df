/** Answer of a provider's token endpoint. `expiresAt` is in epoch ms, undefined when the provider did not state it. */
export type ProviderTokens = {
  accessToken: string;
  refreshToken: string | undefined;
  expiresAt: number | undefined;
  scope: string | undefined;
};

/** Result of a finished login: tokens of the provider for a hosted server, a person for the management server. */
export type LoginResult = { tokens: ProviderTokens; userId: string | undefined; workspaceId: string };

/** The provider that a login goes to. */
export type Provider = {
  /** Host of the provider, shown on the consent page. */
  host: string;
  /** Hosts that will receive the provider's token, shown on the consent page. */
  audience: readonly string[];
  /** The provider's error code, or undefined when it may not be shown (see `login/error-codes.ts`). */
  shownCode(error: string): string | undefined;
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
  /** Name of its operator, for people; empty where nobody sees it. */
  operator: string;
  /** Where the login acts, for people, when that is no property of the server. */
  actsIn?: string;
  /** Both issuer and resource: `{base_url}/mcp/{slug}`. */
  issuer: string;
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
