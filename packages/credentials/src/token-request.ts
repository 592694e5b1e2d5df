import type { MaybePromise } from '@toolhost/errors/yield-to-event-loop';

/** A request for an access token with client credentials (RFC 6749, 4.4), with all placeholders replaced. */
export type TokenRequest = {
  workspaceId: string;
  serverId: string;
  slug: string;
  /** Location of the credential within the server's configuration. */
  location: string;
  tokenUrl: string;
  clientId: string;
  clientSecret: string;
  clientAuth: 'basic' | 'body';
  /** Additional form parameters. */
  params: Readonly<Record<string, string>>;
};

/**
 * Access tokens that Toolhost obtains for itself. A request is identified by its object: its token is cached as long as
 * the object exists.
 */
export type ClientTokens = {
  /** @throws ToolFailure no_token */
  getToken(request: TokenRequest): MaybePromise<string>;
  /** Returns a newer token than one that the upstream refused; undefined if none is available now. */
  renewToken(request: TokenRequest, refusedToken: string): Promise<string | undefined>;
};
