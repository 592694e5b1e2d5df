/** What a provider's token endpoint gave. `expiresAt` is epoch ms, undefined when the provider did not say. */
export type ProviderTokens = {
  accessToken: string;
  refreshToken: string | undefined;
  expiresAt: number | undefined;
  scope: string | undefined;
};

/** What a finished login proved: tokens of the provider for a hosted server, a person for the management server. */
export type LoginResult = { tokens: ProviderTokens; userId: string | undefined; workspaceId: string };

/** The other side of a login. */
export type Provider = {
  /** Host that people are sent to, for the consent page. */
  host: string;
  /** Hosts that will get what the login gives, for the consent page. */
  audience: readonly string[];
  /** The provider's own error code when it may be shown: a word that holds no secret. */
  shownCode(error: string): string | undefined;
  /** `scope` is what the person was shown. */
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

/** A server that agents log in to: every hosted server with `oauth`, and the management server. */
export type LoginServer = {
  id: string;
  workspaceId: string;
  slug: string;
  name: string;
  /** Who operates it, as people know them. */
  operator: string;
  /** Issuer and resource at once: `{base_url}/mcp/{slug}`. */
  issuer: string;
  scopes: readonly string[];
  mode: 'issued' | 'passthrough';
  /** Changes whenever hosts or endpoints change that the person agreed to. */
  agreement: string;
  provider: Provider;
};
