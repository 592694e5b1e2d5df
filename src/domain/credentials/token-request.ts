import type { MaybePromise } from '../work/next-turn.ts';

/** A request for an access token with client credentials (RFC 6749, 4.4), all placeholders filled. */
export type TokenRequest = {
  workspaceId: string;
  serverId: string;
  slug: string;
  /** Which of the credentials of the server it is. */
  location: string;
  tokenUrl: string;
  clientId: string;
  clientSecret: string;
  clientAuth: 'basic' | 'body';
  /** Further parameters of the form. */
  params: Readonly<Record<string, string>>;
};

/**
 * Access tokens that the service gets for itself. The object of a request identifies it: its token is remembered as long
 * as the object is.
 */
export type ClientTokens = {
  /** @throws ToolFailure no_token */
  find(request: TokenRequest): MaybePromise<string>;
  /** A newer token than one that the upstream refused; undefined when there is none for now. */
  renew(request: TokenRequest, refused: string): Promise<string | undefined>;
};
